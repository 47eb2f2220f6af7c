"""Attachments that lie elsewhere, brought here for the time of the turn.

    async with brought(turn, images=True) as message: ...

Images and files behind `http:` and `https:` are fetched, within limits, and never from this machine or its network
unless that is allowed. The agent learns the address of each in any case, and why one could not be had.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline.core.events import UserMessage
from trunkline.wires.agentproc.messages import Attachment, TurnRequest
from trunkline.wires.agentproc.serve import user_message

logger = logging.getLogger(__name__)

#: More than people attach to one message.
MOST_FILES = 10
#: As much as an agent reads of one file.
MOST_BYTES = 10 * 1024 * 1024
#: A person waits for the answer. All are fetched at once.
SECONDS = 30.0
#: What is kept of a name: less than the 255 that file systems allow, with room for a number. Its end says its kind.
_MOST_NAME_BYTES = 200
_UNSAFE = re.compile(r"[^\w.-]+")
#: What agents can look at. Nothing hears or watches what is only attached.
_TYPES = ("image", "file")


@asynccontextmanager
async def brought(
    turn: TurnRequest, *, images: bool, private: bool = False, enabled: bool = True
) -> AsyncIterator[UserMessage]:
    """The message of a turn with its files here, until the end of the block.

    Args:
        images: whether the agent can see pictures.
        private: whether files may lie on this machine or its network.
        enabled: whether anything is fetched at all.

    Raises:
        RemoteProtocolError: it says nothing and brings nothing.
    """
    wanted = [each for each in turn.attachments if enabled and _is_wanted(each, images)]
    if not wanted:
        yield user_message(turn)
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="trunkline-attached-", ignore_cleanup_errors=True) as folder:
        bringing = [_bring(each, folder, number, private) for number, each in enumerate(wanted)]
        found = await asyncio.gather(*bringing)
        paths = [path for path, _ in found if path is not None]
        why = {each.url: problem for each, (_, problem) in zip(wanted, found, strict=True) if problem}
        message = user_message(turn, why)
        yield message.replace(files=(*message.files, *paths))


def _is_wanted(attachment: Attachment, images: bool) -> bool:
    is_far = attachment.url.lower().startswith(("http://", "https://"))
    return is_far and attachment.type in _TYPES and (images or attachment.type != "image")


async def _bring(attachment: Attachment, folder: str, number: int, private: bool) -> tuple[str | None, str]:
    """The path of the file here, or why there is none."""
    from trunkline.base.http_public import NotFetched, fetch

    if number >= MOST_FILES:
        return None, f"only the first {MOST_FILES} are fetched"
    try:
        data = await fetch(attachment.url, most=MOST_BYTES, seconds=SECONDS, private=private)
        path = os.path.join(folder, f"{number + 1}-{_name(attachment)}")
        _write(path, data)
    except NotFetched as error:
        problem = str(error)
    except OSError as error:
        problem = f"it cannot be kept: {error.strerror or error}"
    else:
        return path, ""
    logger.warning("an attachment was not fetched: %s", problem)
    return None, problem


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _name(attachment: Attachment) -> str:
    """What is harmless of its name, or of the end of its address."""
    given = attachment.name or attachment.url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    # File systems count bytes, of which a letter may need four.
    kept = _UNSAFE.sub("-", given).encode(errors="ignore")[-_MOST_NAME_BYTES:].decode(errors="ignore")
    return kept.strip(".-") or attachment.type
