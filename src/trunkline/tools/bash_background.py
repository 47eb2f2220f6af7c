"""Commands that run in the background: started by Bash, read with BashOutput, ended with KillBash.

They go on when a turn ends or is stopped, and end with the agent. Of each one the newest unread output is kept, and of
those that have ended their exit code, until newer ones take their place.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from trunkline.base.redact import Redactor
from trunkline.core.events import Category
from trunkline.tools.bash_live import UnreadOutput
from trunkline.tools.bash_process import ShellCommand
from trunkline.tools.tool import Report, ToolOutput

#: At once. Each holds a process tree and two pipes.
MAX_RUNNING = 16
#: Running and ended ones that are known. With what is unread of each, that is at most 8 MiB of text.
MAX_KNOWN = 64
#: Unread output that is kept of one: more than twice what a model is shown at once.
UNREAD_BYTES = 1 << 17

_LONGEST_RESULT = 50_000
#: What they are called, by their number. One with more digits is none of ours.
_ID = re.compile(r"bash_([1-9][0-9]{0,8})")


class BackgroundCommand:
    """One of them."""

    def __init__(self, bash_id: str, text: str, shell: ShellCommand, unread: UnreadOutput) -> None:
        self.bash_id = bash_id
        self.text = text
        """What was to be run."""
        self.began = time.monotonic()
        self.code: int | None = None
        """Its exit code, once it has one."""
        self.killed_by = ""
        """Who has ended it, if somebody did."""
        self.unread = unread
        self._shell = shell
        self._watching = asyncio.create_task(self._watch(), name=f"background command {bash_id}")

    @property
    def runs(self) -> bool:
        return self.code is None

    async def kill(self, by: str) -> None:
        """End it because somebody wants that. May be called again."""
        if self.runs:
            self.killed_by = self.killed_by or by
        await self.end()

    async def end(self) -> None:
        """End it and what it has started. May be called again."""
        await self._shell.end()
        await asyncio.shield(self._watching)

    async def _watch(self) -> None:
        code = await self._shell.wait()
        self.unread.finish()
        self.code = code
        if not await self._shell.left_behind():
            await self._shell.end()


class BackgroundCommands:
    """Those of one agent. Call `close` at the end."""

    def __init__(self, why: Callable[[str, bool], str] = lambda text, failed: "") -> None:
        """`why` knows what there is to add to the output of a command, given whether it has failed."""
        self.why = why
        self._known: dict[str, BackgroundCommand] = {}
        self._count = self._before = 0
        self._on_started: Callable[[int], None] = lambda count: None

    def go_on(self, before: int, on_started: Callable[[int], None]) -> None:
        """Go on where earlier processes of the session left off: they have started so many, and a model that knows
        their ids must not meet other commands under them. `on_started` hears how many there are by now."""
        self._count = self._before = before
        self._on_started = on_started

    def __iter__(self) -> Iterator[BackgroundCommand]:
        return iter(self._known.values())

    @property
    def running(self) -> list[str]:
        return [each.bash_id for each in self._known.values() if each.runs]

    @property
    def is_full(self) -> bool:
        """Whether no more can be started before one ends."""
        return len(self.running) >= MAX_RUNNING

    async def keep(self, text: str, shell: ShellCommand, unread: UnreadOutput) -> BackgroundCommand:
        """Watch over a command that was started."""
        self._count += 1
        self._on_started(self._count)
        command = BackgroundCommand(f"bash_{self._count}", text, shell, unread)
        self._known[command.bash_id] = command
        ended = [each for each in self._known.values() if not each.runs]
        for oldest in ended[: max(len(self._known) - MAX_KNOWN, 0)]:
            del self._known[oldest.bash_id]
            # What it had started with `&` may still run.
            await oldest.end()
        return command

    def find(self, bash_id: str) -> BackgroundCommand | None:
        return self._known.get(bash_id)

    async def close(self) -> None:
        """End them all. May be called again."""
        await asyncio.gather(*(command.end() for command in self._known.values()))

    def unknown(self, bash_id: str) -> ToolOutput:
        """What is said where there is no such command."""
        since = " since" if self._before else ""
        there = f"There are {', '.join(self._known)}." if self._known else f"None was started{since}."
        found = _ID.fullmatch(bash_id)
        if found is not None and int(found[1]) <= self._before:
            gone = "ended when the session was closed, before it was resumed. Its output is lost"
            return ToolOutput(f"The background command `{bash_id}` {gone}. {there}", "error")
        return ToolOutput(f"There is no background command `{bash_id}`. {there}", "error")


class _OfBackground:
    """What the two tools have in common. Nobody is asked: starting the command was approved."""

    category: Category = "info"
    asking: Literal["allow"] = "allow"
    limit = _LONGEST_RESULT
    concurrent = True

    #: Other names under which models send the parameter.
    aliases: Mapping[str, str] = {"shell_id": "bash_id", "id": "bash_id"}

    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"bash_id": {"type": "string", "description": "The `bash_id` that Bash has given"}},
        "required": ["bash_id"],
    }

    def __init__(self, commands: BackgroundCommands) -> None:
        self._commands = commands

    def outside(self, args: Mapping[str, Any]) -> bool:
        return False


class BashOutput(_OfBackground):
    """Gives what a background command has printed since the last time."""

    name = "BashOutput"
    description = (
        "Returns what a command in the background has printed since the last call of BashOutput, both streams in one, "
        "and its exit code once it has ended. Does not wait."
    )

    def describe(self, args: Mapping[str, Any]) -> str:
        return f"Read the output of {args['bash_id']}"

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        command = self._commands.find(args["bash_id"])
        if command is None:
            return self._commands.unknown(args["bash_id"])
        return ToolOutput(_told(command, self._commands.why), foreign=True)


class KillBash(_OfBackground):
    """Ends a background command."""

    name = "KillBash"
    description = "Ends a command in the background with everything that it has started; returns its last output."

    def describe(self, args: Mapping[str, Any]) -> str:
        return f"End {args['bash_id']}"

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        command = self._commands.find(args["bash_id"])
        if command is None:
            return self._commands.unknown(args["bash_id"])
        await command.kill(self.name)
        return ToolOutput(_told(command, self._commands.why), foreign=True)


def _told(command: BackgroundCommand, why: Callable[[str, bool], str]) -> str:
    text, dropped = command.unread.take()
    # With the time, so that to look again and again at a quiet one is not taken for a circle.
    running = f"Status: running for {time.monotonic() - command.began:.3f} s"
    headline = running if command.runs else f"Exit code: {command.code}"
    if command.killed_by:
        headline += f"\n[ended by {command.killed_by}]"
    mark = f"[{dropped} bytes before this were not kept]\n" if dropped else ""
    return f"bash_id: {command.bash_id}\n{headline}\nOUTPUT:\n{mark}{text or '(nothing new)'}" + why(
        text, bool(command.code)
    )


def started(command: BackgroundCommand) -> ToolOutput:
    """What Bash says of one."""
    return ToolOutput(
        f"The command runs in the background.\nbash_id: {command.bash_id}\n"
        "BashOutput gives its output and exit code, KillBash ends it; it ends with the session."
    )


def too_many(commands: BackgroundCommands) -> ToolOutput:
    """What Bash says when no more can be started."""
    return ToolOutput(
        f"Not started: {MAX_RUNNING} commands run in the background already ({', '.join(commands.running)}). "
        "End one with KillBash first.",
        "error",
    )


def unread_output(redactor: Redactor | None) -> UnreadOutput:
    """Room for the output of one."""
    return UnreadOutput(UNREAD_BYTES, redactor)
