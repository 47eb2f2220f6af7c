"""A message as the blocks of a prompt: words, pictures, and files as far as the agent takes them.

What an agent does not take as a block is named to it as a link: it is on the same machine, and can look for itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import quote

from trunkline.base.regular import NotRegular, read_regular
from trunkline.core.events import UserMessage
from trunkline.tools import pictures
from trunkline.tools.threads import in_thread
from trunkline.wires.acp.messages_content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceContents,
    ResourceLinkBlock,
    TextBlock,
)
from trunkline.wires.acp.messages_start import PromptCapabilities

#: Files of one message. More is a directory that somebody dropped; the agent can look at the rest.
MAX_FILES = 100
#: What is put into the prompt of one text, in bytes; longer ones are named.
MAX_TEXT_BYTES = 100_000
#: What is put into one prompt in all, so that it stays below the longest line that agents read.
MAX_EMBEDDED_BYTES = 8 * 1024 * 1024
#: A NUL in the first bytes tells binary from text.
_PROBE = 8192


async def blocks(
    message: UserMessage, context: Sequence[str], workspace: str, able: PromptCapabilities
) -> tuple[ContentBlock, ...]:
    """A message with what was said before it, as far as the agent was not told."""
    found: list[ContentBlock] = [TextBlock(text) for text in context]
    if message.text or not message.files:
        found.append(TextBlock(message.text))
    files = tuple(dict.fromkeys(message.files))[:MAX_FILES]
    if files:
        found += await in_thread(lambda stop: _attached(files, workspace, able))
    return tuple(found)


def _attached(files: Sequence[str], workspace: str, able: PromptCapabilities) -> list[ContentBlock]:
    """The files that are there."""
    found: list[ContentBlock] = []
    room = MAX_EMBEDDED_BYTES
    for file in files:
        path = os.path.abspath(os.path.join(workspace, file)) if file and "\0" not in file else ""
        if path and os.path.exists(path):
            block, size = _block(path, able, room)
            room -= size
            found.append(block)
    return found


def _block(path: str, able: PromptCapabilities, room: int) -> tuple[ContentBlock, int]:
    """A file as a block, and how many bytes of it are in that."""
    name = os.path.basename(path) or path
    uri = "file://" + quote(path, errors="surrogateescape")
    link = ResourceLinkBlock(uri, name)
    if os.path.isdir(path):
        return link, 0
    try:
        data = read_regular(path, min(room, pictures.LARGEST_PICTURE) + 1)
    except (OSError, NotRegular):
        return link, 0
    picture = pictures.inspect(data.data)
    if picture is not None:
        fits = able.image and data.size <= room and pictures.problem(picture, data.size) is None
        return (ImageBlock(data.data, picture.media_type, uri), data.size) if fits else (link, 0)
    if not able.embedded_context or data.size > min(room, MAX_TEXT_BYTES) or b"\0" in data.data[:_PROBE]:
        return link, 0
    try:
        text = data.data.decode("utf-8")
    except UnicodeDecodeError:
        return link, 0
    return ResourceBlock(ResourceContents(uri, "text/plain", text)), data.size
