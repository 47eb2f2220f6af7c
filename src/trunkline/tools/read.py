"""The Read tool: text with line numbers, pictures, the text of PDF files, the cells of notebooks."""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, AnyStr, Literal

from trunkline.base.process_errors import SpawnError
from trunkline.base.redact import Masked, Redactor
from trunkline.base.values import Value
from trunkline.core.events import Category
from trunkline.tools import pictures
from trunkline.tools.client_side import ClientSide, client_state, read_text
from trunkline.tools.files import (
    BINARY_PROBE,
    LARGEST_FILE,
    FileMemory,
    FileProblem,
    FileState,
    Part,
    failure,
    is_binary,
    open_regular,
    read_bytes,
    state_of,
)
from trunkline.tools.notebooks import BrokenNotebook, is_notebook, show_notebook
from trunkline.tools.pdf import is_pdf, pdf_text
from trunkline.tools.threads import StopFlag, in_thread, reporting
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import Clip, one_line
from trunkline.tools.workspace import Workspace

#: The longest result, in characters.
READ_LIMIT = 100_000
#: What stands for a part that the model has before its eyes already.
UNCHANGED = "File unchanged since last read. Use what the earlier Read of it returned."
EMPTY = "(empty file)"

#: How long the way to a line may take in a file that is too large for memory: some 10 GB.
_SEEK_SECONDS = 10.0
_SEEK_CHUNK = 1024 * 1024
#: What is searched for line feeds one by one, where counting them has shown that the wanted one is there.
_SEARCHED = 64 * 1024
#: A line's number is written with at least so many characters, and a tab behind it.
_NUMBER_WIDTH = 6

_Kind = Literal["text", "picture", "pdf", "binary"]


class Read:
    """Shows files to the model."""

    name = "Read"
    category: Category = "info"
    limit = READ_LIMIT
    concurrent = True
    description = (
        "Read a file. Text comes with line numbers, which are not part of the file: each line is its number, a tab, "
        "and the line. Long files: give `offset` and `limit`. Pictures (PNG, JPEG, GIF, WebP) are shown to you as "
        "pictures, PDF files as text, Jupyter notebooks as cells with their outputs; to edit a notebook, read its own "
        "text with `offset` and `limit`."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The file, absolute or from the workspace."},
            "offset": {"type": "integer", "minimum": 0, "description": "How many lines to skip. Default 0."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read. Default: all."},
        },
        "required": ["file_path"],
    }
    aliases: Mapping[str, str] = {"path": "file_path"}

    def __init__(
        self,
        workspace: Workspace,
        memory: FileMemory,
        redactor: Redactor | None = None,
        client: ClientSide | None = None,
    ) -> None:
        self._workspace = workspace
        self._memory = memory
        self._redactor = Redactor() if redactor is None else redactor
        self._client = client or ClientSide()

    def describe(self, args: Mapping[str, Any]) -> str:
        return one_line(f"Read {args['file_path']}")

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._workspace.reads_outside(args["file_path"])

    def place(self, args: Mapping[str, Any]) -> str:
        return self._workspace.place(args["file_path"])

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        shown_path = args["file_path"]
        path = self._workspace.resolve(shown_path)
        part: Part = (args.get("offset", 0), args.get("limit"))
        try:
            found = await reporting(self._find(shown_path, path, part), report, f"Reading {shown_path}")
            if found.state and self._memory.was_shown(found.real_path, found.state, part):
                return ToolOutput(UNCHANGED, foreign=True)
            output = await self._show(found, shown_path, part, report)
        except (OSError, ValueError) as error:
            return failure("read", shown_path, error)
        if output.status != "success":
            return output
        if found.state:
            self._memory.note(found.real_path, found.state, part)
        return output.replace(foreign=True)

    async def _find(self, shown_path: str, path: str, part: Part) -> _Found:
        files = await self._client.files_for(self._workspace, shown_path, read=True)
        if files is None:
            return await in_thread(lambda stop: _look(path, part, stop))
        data = await read_text(files, path)
        return _Found("text", self._workspace.place(path), len(data), data, client_state(data))

    async def _show(self, found: _Found, path: str, part: Part, report: Report) -> ToolOutput:
        if found.kind == "binary":
            return ToolOutput(f"(binary file, {found.size} bytes)")
        if found.kind == "picture":
            return _show_picture(found.data, path)
        if found.kind == "pdf":
            try:
                text = await reporting(pdf_text(found.real_path), report, f"Reading {path}")
            except SpawnError as error:
                raise FileProblem(str(error)) from None
            return await in_thread(lambda _: self._number(text, part, path))
        if is_notebook(path) and found.is_all and part == (0, None) and found.data.strip():
            return await in_thread(lambda _: self._show_notebook(found, path))
        return await in_thread(lambda _: self._show_text(found, part, path))

    def _show_notebook(self, found: _Found, path: str) -> ToolOutput:
        try:
            shown = show_notebook(found.data, self._redactor.text)
        except BrokenNotebook as error:
            output = self._show_text(found, (0, None), path)
            return output.replace(text=f"(Not shown as a notebook: {error}.)\n{output.text}")
        return ToolOutput(shown.text, metadata={"file_path": path}, images=shown.images)

    def _show_text(self, found: _Found, part: Part, path: str) -> ToolOutput:
        encoding = "utf-8-sig" if found.is_all or part[0] == 0 else "utf-8"
        text = found.data.decode(encoding, "replace")
        if found.is_all:
            return self._number(text, part, path)
        if found.cut:
            note = f"\n(cut: these lines have more than {LARGEST_FILE} bytes)"
            whole, feed, last = text.rpartition("\n")
            masked = Masked(self._redactor.lines(whole) + feed + self._redactor.beginning(last))
            return ToolOutput(_numbered(masked, part[0] + 1, note))
        return ToolOutput(_numbered(self._redactor.lines(text), part[0] + 1))

    def _number(self, text: str, part: Part, path: str) -> ToolOutput:
        """The lines asked for, each behind its number."""
        if not text:
            return ToolOutput(EMPTY)
        text = text.removesuffix("\n")
        offset, limit = part
        begin = _behind(text, "\n", offset)
        if begin < 0:
            lines = text.count("\n") + 1
            return ToolOutput(f"There is no line after offset {offset}: {path} has {lines} lines.", status="error")
        behind = -1 if limit is None else _behind(text, "\n", limit, begin)
        wanted = text[begin : behind - 1 if behind >= 0 else None]
        return ToolOutput(_numbered(self._redactor.lines(wanted), offset + 1))


class _Found(Value):
    """A file that can be shown. `data` is all of it, or for a file over `LARGEST_FILE` the lines asked for."""

    kind: _Kind
    real_path: str
    size: int
    data: bytes = b""
    state: FileState | None = None
    is_all: bool = True
    cut: bool = False


def _look(path: str, part: Part, stop: StopFlag) -> _Found:
    """Open a file, see what it is, and read what is needed of it."""
    fd, status = open_regular(path)
    try:
        real = os.path.realpath(path)
        start = read_bytes(fd, BINARY_PROBE, stop)
        kind = _kind(start)
        if kind == "binary":
            return _Found(kind, real, max(status.st_size, len(start)))
        if kind == "pdf":
            # Read by another program, which has limits of its own.
            return _Found(kind, real, status.st_size, state=FileState(status.st_mtime_ns, status.st_size))
        if status.st_size <= LARGEST_FILE:
            # Files of the system say that they are empty, and some have no end.
            data = read_bytes(fd, LARGEST_FILE + 1, stop, start)
            if len(data) <= LARGEST_FILE:
                return _Found(kind, real, len(data), data, state_of(data, status))
        if kind != "text" or part[1] is None:
            raise FileProblem(_too_large(kind, status.st_size))
        os.lseek(fd, 0, os.SEEK_SET)
        lines, cut = _read_part(fd, part[0], part[1], stop)
        state = FileState(status.st_mtime_ns, status.st_size)
        return _Found(kind, real, status.st_size, lines, state, is_all=False, cut=cut)
    finally:
        os.close(fd)


def _kind(start: bytes) -> _Kind:
    if pictures.media_type(start):
        return "picture"
    if is_pdf(start):
        return "pdf"
    return "binary" if is_binary(start) else "text"


def _too_large(kind: str, size: int) -> str:
    if kind == "text":
        return (
            f"it has {size} bytes, and at most {LARGEST_FILE} are read at once. "
            "Give `offset` and `limit`, or use Grep to find the lines that matter"
        )
    return f"it has {size} bytes; the limit for a {kind} is {LARGEST_FILE}. Make a smaller copy and read that"


def _read_part(fd: int, offset: int, limit: int, stop: StopFlag) -> tuple[bytes, bool]:
    """Some lines of a large file without the last one's ending, in bounded memory, and whether they were cut."""
    data = read_bytes(fd, LARGEST_FILE, stop, _skip_lines(fd, offset, stop))
    if not data:
        raise FileProblem(f"there are no lines after offset {offset}")
    behind = _behind(data, b"\n", limit)
    if behind >= 0:
        return data[: behind - 1], False
    return data.removesuffix(b"\n"), len(data) >= LARGEST_FILE


def _skip_lines(fd: int, count: int, stop: StopFlag) -> bytes:
    """Read past some lines, and give what was read behind them; nothing at the file's end."""
    deadline = time.monotonic() + _SEEK_SECONDS
    while count > 0:
        stop.check()
        if time.monotonic() > deadline:
            raise FileProblem("these lines are too far from its beginning; use Bash, for instance `tail`")
        chunk = os.read(fd, _SEEK_CHUNK)
        breaks = chunk.count(b"\n")
        if breaks >= count:
            return chunk[_behind(chunk, b"\n", count) :]
        if not chunk:
            break
        count -= breaks
    return b""


def _show_picture(data: bytes, path: str) -> ToolOutput:
    picture = pictures.inspect(data)
    if picture is None:
        raise FileProblem("it was changed while it was read; try again")
    if wrong := pictures.problem(picture, len(data)):
        raise FileProblem(wrong)
    image = (picture.media_type, b64encode(data).decode("ascii"))
    return ToolOutput(
        f"Image loaded from {path}",
        shown=image[1],
        output_type="image",
        metadata={"file_path": path, "media_type": image[0]},
        images=(image,),
    )


def _behind(text: AnyStr, line_feed: AnyStr, count: int, start: int = 0) -> int:
    """Where the text goes on behind that many line feeds after `start`; -1 if it has fewer."""
    position = start
    while position < len(text):
        # Counting is many times faster than finding.
        some = text.count(line_feed, position, position + _SEARCHED)
        if some >= count:
            break
        count -= some
        position += _SEARCHED
    for _ in range(count):
        position = text.find(line_feed, position) + 1
        if not position:
            return -1
    return position


def _numbered(masked: Masked, first: int, note: str = "") -> str:
    """The lines of a text, numbered from `first`, within the limit. What will not be seen is counted and not made."""
    text = masked.removesuffix("\r").replace("\r\n", "\n")
    clip = Clip(READ_LIMIT)
    clip.feed(Masked(f"{first:>{_NUMBER_WIDTH}}\t"))
    seen, rest = text[:READ_LIMIT], text[READ_LIMIT:]
    clip.feed(Masked(_number_breaks(seen, first + 1)))
    number = first + 1 + seen.count("\n")
    if len(rest) > READ_LIMIT:
        unseen, rest = rest[:-READ_LIMIT], rest[-READ_LIMIT:]
        breaks = unseen.count("\n")
        clip.skip(len(unseen.encode("utf-8", "surrogatepass")) + _numbers_size(number + breaks) - _numbers_size(number))
        number += breaks
    clip.feed(Masked(_number_breaks(rest, number)))
    clip.feed(Masked(note))
    return clip.text()


def _number_breaks(text: str, number: int) -> str:
    """The text with a number behind each line feed, the first one being `number`."""
    start, *lines = text.split("\n")
    return start + "".join(f"\n{each:>{_NUMBER_WIDTH}}\t{line}" for each, line in enumerate(lines, number))


def _numbers_size(end: int) -> int:
    """How many characters the numbers from 1 have that are less than `end`, each with its tab."""
    size = (_NUMBER_WIDTH + 1) * (end - 1)
    for digits in range(_NUMBER_WIDTH, len(str(end))):
        # All numbers from here on have one digit more.
        size += max(0, end - 10**digits)
    return size
