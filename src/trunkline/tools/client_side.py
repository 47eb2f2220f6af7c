"""The files and the terminal of the client that is being answered, where it has some: an editor's.

Text in the workspace is then read and written through the client, so that what is not saved yet is seen, and what
changes is shown where it is edited. What a client could not give back as it is stays with the disk: files outside the
workspace, pictures, PDF, what is binary or no UTF-8, and what is too large.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from trunkline.core.client_tools import ClientFiles, ClientTerminal
from trunkline.core.faults import ToolError
from trunkline.tools.atomic import writing
from trunkline.tools.files import LARGEST_FILE, FileProblem, FileState, digest_of, is_binary, read_whole
from trunkline.tools.pdf import is_pdf
from trunkline.tools.pictures import media_type
from trunkline.tools.threads import StopFlag, in_thread
from trunkline.tools.workspace import Workspace

#: How long a client may take to read or write a file: an editor may have to ask its user, or a server far away.
CLIENT_SECONDS = 30.0

T = TypeVar("T")


class ClientSide:
    """What the client of the turn in progress offers. Without anything, tools use the disk and their own processes."""

    def __init__(self) -> None:
        self._files: ClientFiles | None = None
        self.terminal: ClientTerminal | None = None
        self.writing = asyncio.Lock()
        """Held by whoever looks at a file and then changes it through the client: sub-agents work side by side."""

    def use(self, files: ClientFiles | None = None, terminal: ClientTerminal | None = None) -> None:
        """From now on, use this."""
        self._files = files
        self.terminal = terminal

    async def files_for(
        self, workspace: Workspace, path: str, *, read: bool = False, write: bool = False
    ) -> ClientFiles | None:
        """What to read and to write the file through, if not the disk. `path` is as the model gave it."""
        files = self._files
        if files is None or (read and not files.can_read) or (write and not files.can_write) or workspace.outside(path):
            return None
        resolved = workspace.resolve(path)
        return files if await in_thread(lambda stop: _is_text(resolved, stop)) else None


async def read_text(files: ClientFiles, path: str) -> bytes:
    """A file as the client has it.

    Raises:
        FileProblem: it cannot be had.
    """
    text = await _answered(files.read_text(path))
    data = text.encode("utf-8", "replace")
    if len(data) > LARGEST_FILE:
        raise FileProblem(f"it is larger than {LARGEST_FILE} bytes")
    return data


async def write_text(files: ClientFiles, path: str, data: bytes) -> bool:
    """Have the client write a file; true if there was none on the disk.

    Raises:
        FileProblem: it cannot be written.
    """
    if len(data) > LARGEST_FILE:
        raise FileProblem(f"the content has {len(data)} bytes; the limit is {LARGEST_FILE}. Write it in parts")
    created = await in_thread(lambda stop: _make_room(path))
    await _answered(files.write_text(path, data.decode("utf-8")))
    return created


def client_state(data: bytes) -> FileState:
    """The state of a content that a client has: when it was changed, nobody says."""
    return FileState(0, len(data), digest_of(data))


async def _answered(work: Coroutine[Any, Any, T]) -> T:
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            return await work
    except TimeoutError:
        raise FileProblem(f"the editor did not answer within {CLIENT_SECONDS:g} s") from None
    except ToolError as error:
        raise FileProblem(str(error)) from None


def _is_text(path: str, stop: StopFlag) -> bool:
    """Whether the client's text can be all of it. A file that is not there may be open and not saved yet."""
    try:
        data, _ = read_whole(path, stop)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        # The disk's own words say best what is wrong with it.
        return False
    if is_binary(data) or is_pdf(data) or media_type(data):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _make_room(path: str) -> bool:
    """Make the directories that a file needs; whether it is new."""
    with writing(path):
        if os.path.lexists(path):
            return False
        # The client's own error is the one that counts: its files may be elsewhere.
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return True
