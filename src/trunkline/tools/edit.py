"""The Edit tool: a piece of a file is replaced by another.

The model must have read the file, and nobody may have changed it since: an edit made from memory of another content
goes wrong where nobody looks. Bytes that are no UTF-8 come through untouched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.base.values import Value
from trunkline.core.client_tools import ClientFiles
from trunkline.core.events import Category
from trunkline.tools.atomic import replace_file, writing
from trunkline.tools.client_side import ClientSide, client_state, read_text, write_text
from trunkline.tools.diffs import unified_diff
from trunkline.tools.files import (
    FileMemory,
    FileProblem,
    digest_of,
    failure,
    is_binary,
    read_whole,
    state_of,
)
from trunkline.tools.replacing import NoReplacement, TextChange, find_replacements, replaced
from trunkline.tools.threads import StopFlag, in_thread
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import one_line
from trunkline.tools.workspace import Workspace, printable
from trunkline.tools.write import count_lines, encode

EDIT_LIMIT = 10_000

_NOTHING_EMPTY = (
    "old_string is empty, which is only for creating a file, and {path} has content. "
    "Give the text to be replaced, or use Write."
)


def must_read(path: str) -> str:
    """What is said to a model that has not read the file."""
    return f"You must Read {path} before editing it."


def changed_outside(path: str) -> str:
    """What is said when the file is not any more what the model has read."""
    return f"File {path} has been modified externally since last read. Read it again before editing."


class Edit:
    """Replaces a piece of a file. The model is told in a sentence, people are shown a diff.

    An empty `old_string` creates the file, or fills an empty one.
    """

    name = "Edit"
    category: Category = "edit"
    limit = EDIT_LIMIT
    concurrent = False
    description = (
        "Replace text in a file that you have read. `old_string` must be in the file exactly as Read shows it, white "
        "space included, without the line numbers, and with enough lines around it to be there only once; or set "
        "`replace_all`. Line endings are taken care of. An empty `old_string` creates the file."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The file, absolute or from the workspace."},
            "old_string": {"type": "string", "description": "The text to be replaced."},
            "new_string": {"type": "string", "description": "The text to put there."},
            "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
        },
        "required": ["file_path", "old_string", "new_string"],
    }
    aliases: Mapping[str, str] = {"path": "file_path"}

    def __init__(self, workspace: Workspace, memory: FileMemory, client: ClientSide | None = None) -> None:
        self._workspace = workspace
        self._memory = memory
        self._client = client or ClientSide()

    def describe(self, args: Mapping[str, Any]) -> str:
        return one_line(f"Edit {args['file_path']}")

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._workspace.guards(args["file_path"])

    def place(self, args: Mapping[str, Any]) -> str:
        return self._workspace.place(args["file_path"])

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        path, old = args["file_path"], args["old_string"]
        new = self._workspace.fit_to_keep(path, args["new_string"])
        every = args.get("replace_all", False)
        resolved = self._workspace.resolve(path)
        try:
            # What a model gives must be text; what the file has need not be.
            encode(old, "old_string")
            encode(new, "new_string")
            files = await self._client.files_for(self._workspace, path, read=True, write=True)
            if files is None:
                made = await in_thread(lambda stop: self._edit(resolved, path, (old, new, every), stop))
            else:
                async with self._client.writing:
                    made = await self._edit_through(files, resolved, path, (old, new, every))
        except NoReplacement as error:
            return ToolOutput(str(error), status="error")
        except (OSError, ValueError) as error:
            return failure("edit" if isinstance(error, FileProblem) else "read", path, error)
        return ToolOutput(made.sentence, shown=made.diff, output_type="diff", metadata={"file_path": resolved})

    def _edit(self, path: str, shown_path: str, wish: tuple[str, str, bool], stop: StopFlag) -> _Made:
        old, new, every = wish
        with writing(path):
            if not old and not _has_content(path):
                return self._create(path, shown_path, new, stop)
            data, status = read_whole(path, stop)
            self._guard(path, shown_path, data, old)
            text = data.decode("utf-8", "surrogateescape")
            changes = find_replacements(text, old, new, every)

            def check() -> None:
                stop.check()
                now = os.stat(path)
                if (now.st_mtime_ns, now.st_size, now.st_ino) != (status.st_mtime_ns, status.st_size, status.st_ino):
                    raise NoReplacement(changed_outside(shown_path))

            self._save(path, replaced(text, changes).encode("utf-8", "surrogateescape"), check)
        return self._edited(path, shown_path, text, changes)

    async def _edit_through(self, files: ClientFiles, path: str, shown_path: str, wish: tuple[str, str, bool]) -> _Made:
        """The same, in the file as the client has it."""
        old, new, every = wish
        try:
            data = await read_text(files, path)
        except FileProblem:
            if old or _has_content(path):
                raise
            data = b""
        if not old and not data:
            content = _content(new)
            created = await write_text(files, path, content)
            self._memory.note(self._workspace.place(path), client_state(content))
            return self._made(path, shown_path, new, created)
        self._guard(path, shown_path, data, old)
        text = data.decode("utf-8")
        changes = await in_thread(lambda _: find_replacements(text, old, new, every))
        changed = replaced(text, changes).encode("utf-8")
        await write_text(files, path, changed)
        self._memory.note(self._workspace.place(path), client_state(changed))
        return await in_thread(lambda _: self._edited(path, shown_path, text, changes))

    def _edited(self, path: str, shown_path: str, text: str, changes: Sequence[TextChange]) -> _Made:
        sentence = f"Edited {shown_path}: replaced {len(changes)} occurrence(s)"
        return _Made(sentence, self._diff(path, text, changes))

    def _create(self, path: str, shown_path: str, content: str, stop: StopFlag) -> _Made:
        created = self._save(path, _content(content), stop.check)
        return self._made(path, shown_path, content, created)

    def _made(self, path: str, shown_path: str, content: str, created: bool) -> _Made:
        verb = "Created" if created else "Updated"
        diff = self._diff(path, "", [TextChange(0, 0, content)], created)
        return _Made(f"{verb} {shown_path} ({count_lines(content)} lines)", diff)

    def _guard(self, path: str, shown_path: str, data: bytes, old: str) -> None:
        if not old:
            raise NoReplacement(_NOTHING_EMPTY.format(path=shown_path))
        if is_binary(data):
            raise FileProblem("it is binary; Edit works on text only")
        known = self._memory.state(os.path.realpath(path))
        if known is None:
            raise NoReplacement(must_read(shown_path))
        if known.digest != digest_of(data):
            raise NoReplacement(changed_outside(shown_path))

    def _save(self, path: str, data: bytes, check: Callable[[], None]) -> bool:
        created = replace_file(path, data, check, private=self._workspace.keeps(path))
        self._memory.note(os.path.realpath(path), state_of(data, os.stat(path)))
        return created

    def _diff(self, path: str, old: str, changes: Sequence[TextChange], created: bool = False) -> str:
        return printable(unified_diff(old, changes, self._workspace.relative(path), self.limit, created))


class _Made(Value):
    sentence: str
    diff: str


def _content(text: str) -> bytes:
    if not text:
        raise NoReplacement("old_string and new_string are both empty: there is nothing to do. Use Write.")
    return encode(text, "new_string")


def _has_content(path: str) -> bool:
    try:
        # Files of the system say that they are empty, and are not.
        return os.stat(path).st_size > 0 or not os.path.isfile(path)
    except FileNotFoundError:
        return False
