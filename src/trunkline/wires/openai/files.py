"""Pictures and files that come with a message: what is in them, and what they are called."""

from __future__ import annotations

import asyncio
import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from trunkline.wires.openai.errors import bad
from trunkline.wires.openai.messages import FilePart

#: More than people attach to one message.
MOST_FILES = 20
#: As much as an agent reads of one file.
MOST_BYTES = 20 * 1024 * 1024
#: As much as all of a message's may have together: several large ones, within what a process can hold for a request.
MOST_ALL_BYTES = 64 * 1024 * 1024
#: Fetched at the same time: what arrives counts only when it is there.
AT_ONCE = 3
#: How long all that has to be fetched may take: a person waits for the answer.
SECONDS = 30.0
#: What is kept of a name: less than file systems allow. Its end says its kind.
_MOST_NAME_CHARS = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_ENDINGS = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
    "application/pdf": ".pdf", "text/plain": ".txt", "text/markdown": ".md", "application/json": ".json",
}  # fmt: skip
#: How pictures begin: their addresses often do not say what they are.
_SIGNS = ((b"\x89PNG\r\n", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"), (b"RIFF", ".webp"), (b"%PDF", ".pdf"))


async def bring(parts: Sequence[FilePart]) -> list[tuple[str, bytes]]:
    """The name and the contents of each, wherever it is.

    Raises:
        OpenAIRefused: one cannot be had, is too large, or there are too many.
    """
    if len(parts) > MOST_FILES:
        raise bad(parts[MOST_FILES].param, f"A message may have {MOST_FILES} pictures and files at most.")
    room, size = asyncio.Semaphore(AT_ONCE), 0

    async def contents(part: FilePart) -> tuple[str, bytes]:
        nonlocal size
        async with room:
            found = await _contents(part)
        size += len(found[1])
        if size > MOST_ALL_BYTES:
            raise bad(part.param, f"The files of a message may have {MOST_ALL_BYTES} bytes at most, all together.")
        return found

    bringing = [asyncio.create_task(contents(part), name="a file of a message") for part in parts]
    try:
        async with asyncio.timeout(SECONDS):
            found = await asyncio.gather(*bringing)
    except TimeoutError:
        late = next(part for part, task in zip(parts, bringing, strict=True) if task.cancelled() or not task.done())
        told = f"`{late.param}` could not be fetched within {SECONDS:g} s. Send it as a `data:` URL."
        raise bad(late.param, told, "invalid_image_url") from None
    finally:
        # One that cannot be had is enough: nobody waits for the others.
        for task in bringing:
            task.cancel()
        await asyncio.gather(*bringing, return_exceptions=True)
    return [(_name(part, media, data), data) for part, (media, data) in zip(parts, found, strict=True)]


async def _contents(part: FilePart) -> tuple[str, bytes]:
    """The media type, if it is known, and the bytes."""
    if part.url[:5].lower() == "data:":
        head, comma, data = part.url[5:].partition(",")
        if not comma:
            raise bad(part.param, f"`{part.param}`: the `data:` URL has no data.")
        media, _, coding = head.partition(";")
        is_base64 = coding.lower().endswith("base64")
        return media.lower(), _decoded(part, data) if is_base64 else _within(part, unquote_to_bytes(data))
    if part.url:
        return "", await _fetched(part)
    return "", _decoded(part, part.data)


def _decoded(part: FilePart, data: str) -> bytes:
    if len(data) // 4 * 3 > MOST_BYTES + 4:
        raise _too_large(part)
    try:
        return _within(part, b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise bad(part.param, f"`{part.param}`: the data is not base64.") from None


async def _fetched(part: FilePart) -> bytes:
    from trunkline.base.http_public import NotFetched, fetch

    try:
        return await fetch(part.url, most=MOST_BYTES, seconds=SECONDS)
    except NotFetched as error:
        hint = "Send it as a `data:` URL."
        raise bad(part.param, f"`{part.param}` could not be fetched: {error}. {hint}", "invalid_image_url") from None


def _within(part: FilePart, data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise _too_large(part)
    return data


def _too_large(part: FilePart) -> Exception:
    return bad(part.param, f"`{part.param}` may have {MOST_BYTES} bytes at most.")


def _name(part: FilePart, media: str, data: bytes) -> str:
    """What is harmless of its name, with an ending that says what it is."""
    given = part.name or ("" if part.url[:5].lower() == "data:" else part.url.partition("?")[0].rpartition("/")[2])
    kept = _UNSAFE.sub("-", given)[-_MOST_NAME_CHARS:].strip(".-")
    ending = next((ending for sign, ending in _SIGNS if data.startswith(sign)), _ENDINGS.get(media, ""))
    kept = kept or ("image" if part.is_image else "file")
    return kept if not ending or "." in kept else kept + ending
