"""`/bashes`: the commands that run in the background, for people: how each is doing, and an end to it."""

from __future__ import annotations

import time

from trunkline.agents.coder.commands import HELP, TypedCommand
from trunkline.agents.coder.compaction import Say
from trunkline.core.faults import Mistyped
from trunkline.tools.bash_background import BackgroundCommand, BackgroundCommands
from trunkline.tools.truncation import one_line

#: Of a command, in a list.
_SHOWN_CHARS = 200


class BackgroundListing:
    """The command, for the background of one conversation."""

    def __init__(self, background: BackgroundCommands) -> None:
        self._background = background
        self.command = TypedCommand(HELP["/bashes"], self._run, "[kill ID|kill all]", needs_approver=bool)
        """`/bashes`."""

    async def _run(self, rest: str, say: Say) -> str:
        if rest:
            return await self._kill(rest)
        lines = [f"{each.bash_id}: {_state(each)}: {one_line(each.text, _SHOWN_CHARS)}" for each in self._background]
        return "\n".join(lines) or "No command was started in the background."

    async def _kill(self, rest: str) -> str:
        verb, _, name = rest.partition(" ")
        found = [each for each in self._background if name.strip() in (each.bash_id, "all")]
        if verb != "kill" or not name.strip():
            raise Mistyped(f"`/bashes {rest}` was not understood.", hint="Say `/bashes kill ID`; /bashes lists them.")
        if not found and name.strip() != "all":
            raise Mistyped(f"There is no background command `{name.strip()}`.", hint="/bashes lists them.")
        ended = [each.bash_id for each in found if each.runs]
        for each in found:
            await each.kill("the user")
        return f"Ended: {', '.join(ended)}." if ended else "Nothing was running any more."


def _state(command: BackgroundCommand) -> str:
    if command.runs:
        return f"running for {int(time.monotonic() - command.began)} s"
    return f"ended by {command.killed_by}" if command.killed_by else f"exit code {command.code}"
