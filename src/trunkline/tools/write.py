"""The Write tool: a file gets a new content, in one step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trunkline.core.events import Category
from trunkline.tools.atomic import replace_file, writing
from trunkline.tools.client_side import ClientSide, client_state, write_text
from trunkline.tools.files import FileMemory, FileProblem, failure, state_of
from trunkline.tools.threads import StopFlag, in_thread
from trunkline.tools.tool import Report, ToolOutput
from trunkline.tools.truncation import one_line
from trunkline.tools.workspace import Workspace


class Write:
    """Creates files, and overwrites them. What it has written counts as read."""

    name = "Write"
    category: Category = "edit"
    limit = 10_000
    concurrent = False
    description = (
        "Write a file: create it, with the directories that it needs, or replace all of its content. "
        "To change a part of a file, use Edit instead. Read an existing file before you replace it."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The file, absolute or from the workspace."},
            "content": {"type": "string", "description": "The whole new content."},
        },
        "required": ["file_path", "content"],
    }
    aliases: Mapping[str, str] = {"path": "file_path"}

    def __init__(self, workspace: Workspace, memory: FileMemory, client: ClientSide | None = None) -> None:
        self._workspace = workspace
        self._memory = memory
        self._client = client or ClientSide()

    def describe(self, args: Mapping[str, Any]) -> str:
        return one_line(f"Write to {args['file_path']}")

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._workspace.guards(args["file_path"])

    def place(self, args: Mapping[str, Any]) -> str:
        return self._workspace.place(args["file_path"])

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        path = args["file_path"]
        content = self._workspace.fit_to_keep(path, args["content"])
        resolved = self._workspace.resolve(path)
        try:
            files = await self._client.files_for(self._workspace, path, write=True)
            if files is None:
                created = await in_thread(lambda stop: self._write(resolved, content, stop))
            else:
                data = encode(content, "content")
                async with self._client.writing:
                    created = await write_text(files, resolved, data)
                self._memory.note(self._workspace.place(path), client_state(data))
        except (OSError, ValueError) as error:
            return failure("write", path, error)
        verb = "Created" if created else "Updated"
        return ToolOutput(f"{verb} {path} ({count_lines(content)} lines)", metadata={"file_path": resolved})

    def _write(self, path: str, content: str, stop: StopFlag) -> bool:
        data = encode(content, "content")
        with writing(path):
            created = replace_file(path, data, stop.check, private=self._workspace.keeps(path))
            self._memory.note(os.path.realpath(path), state_of(data, os.stat(path)))
        return created


def encode(text: str, parameter: str) -> bytes:
    """The bytes of a text that a model gave.

    Raises:
        FileProblem: there are none.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileProblem(
            f"`{parameter}` holds half a character (a lone surrogate) at position {error.start}; give it without"
        ) from None


def count_lines(text: str) -> int:
    """How many lines a text has; what follows the last line feed counts if there is anything."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))
