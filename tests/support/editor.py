"""A client with files and a terminal of its own, as an editor has them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from trunkline.core.client_tools import CommandEnd, CommandOutput
from trunkline.core.faults import ToolError


class EditorFiles:
    """What is open in an editor, by path. Nothing of it is on the disk."""

    def __init__(self, **buffers: str) -> None:
        self.buffers = dict(buffers)
        self.asked: list[tuple[str, str]] = []
        self.answers = True
        self.can_read = self.can_write = True

    async def read_text(self, path: str) -> str:
        self.asked.append(("read", path))
        await self._answer()
        if path not in self.buffers:
            raise ToolError("the editor has no such file")
        return self.buffers[path]

    async def write_text(self, path: str, text: str) -> None:
        self.asked.append(("write", path))
        await self._answer()
        self.buffers[path] = text

    async def _answer(self) -> None:
        if not self.answers:
            await asyncio.Event().wait()


class EditorCommand:
    """A command that prints `text`, and ends when it is told to."""

    def __init__(self, text: str = "", end: CommandEnd | None = None) -> None:
        self.text = text
        self.end = end
        self.asked: list[str] = []
        self.cut = False
        self.lost = False
        self.ended = asyncio.Event()
        if end is not None:
            self.ended.set()

    async def output(self) -> CommandOutput:
        self.asked.append("output")
        return CommandOutput(self.text, self.cut, self.end)

    async def wait_for_exit(self) -> CommandEnd:
        self.asked.append("wait")
        await self.ended.wait()
        if self.lost:
            raise ToolError("the connection has ended")
        return self.end or CommandEnd()

    async def kill(self) -> None:
        self.asked.append("kill")
        self.end = self.end or CommandEnd(signal="SIGKILL")
        self.ended.set()

    async def release(self) -> None:
        self.asked.append("release")


class EditorTerminal:
    """Runs what it is given as the next of its commands."""

    def __init__(self, *commands: EditorCommand) -> None:
        self.commands = list(commands)
        self.created: list[tuple[Sequence[str], str, Mapping[str, str], int, str]] = []
        self.starts = asyncio.Event()
        self.starts.set()

    async def create(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output_limit: int, call_id: str = ""
    ) -> EditorCommand:
        self.created.append((argv, cwd, env, output_limit, call_id))
        await self.starts.wait()
        if not self.commands:
            raise ToolError("the editor shows no terminal")
        return self.commands.pop(0)
