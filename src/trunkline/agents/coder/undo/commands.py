"""`/undo`, `/rewind` and `/diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trunkline.agents.coder.commands import HELP, Commands, TypedCommand, always
from trunkline.agents.coder.compaction import Say
from trunkline.agents.coder.history import History
from trunkline.agents.coder.undo.recorder import ChangeRecorder
from trunkline.base.redact import Redactor
from trunkline.core.faults import Mistyped
from trunkline.tools.threads import in_thread

if TYPE_CHECKING:
    from trunkline.agents.coder.undo.turns import TurnChanges
    from trunkline.agents.coder.undo.undoing import Choose

#: The longest diff that is shown.
MOST_DIFF_CHARS = 100_000
_NUMBER = "[N]"


class UndoCommands:
    """Those of one conversation."""

    def __init__(self, changes: ChangeRecorder, history: History, redactor: Redactor) -> None:
        self._changes = changes
        self._history = history
        self._redactor = redactor

    def add_to(self, commands: Commands) -> None:
        """Have them typed."""
        for word, run in (("/undo", self._undo), ("/rewind", self._rewind)):
            commands.add(word, TypedCommand(HELP[word], run, _NUMBER, needs_approver=always))
        commands.add("/diff", TypedCommand(HELP["/diff"], self._diff, _NUMBER))

    async def _undo(self, rest: str, say: Say) -> str:
        from trunkline.agents.coder.undo.undoing import last_turns

        count = _count("/undo", rest)
        return await self._undone(lambda turns: last_turns(turns, count), count)

    async def _rewind(self, rest: str, say: Say) -> str:
        count = _count("/rewind", rest)
        turns = list(self._history.turns)
        if not turns:
            return (
                "There is no turn to go back to: nothing was said yet, or it was summarised or cleared. `/undo` puts "
                "files back."
            )
        first = turns[-count:][0]
        gone = set(turns[-count:])

        def choose(recorded: Sequence[TurnChanges]) -> list[TurnChanges]:
            # Those of which the conversation does not know came after the ones that it knows.
            begin = next((at for at, turn in enumerate(recorded) if turn.id in gone), len(recorded))
            return [turn for turn in recorded[begin:] if not turn.is_undone]

        told = await self._undone(choose)
        self._history.rewind(first)
        # The model does not remember what was undone.
        self._changes.untold()
        back = f"The conversation went back by {_turns(len(gone))}."
        if count > len(gone):
            back += " What was before was summarised, cleared or never there."
        return f"{back}\n{told}"

    async def _undone(self, choose: Choose, asked: int = 0) -> str:
        from trunkline.agents.coder.undo import telling, undoing

        await self._changes.settled()
        checkpoints, session = self._changes.checkpoints, self._changes.session
        outcome = await in_thread(lambda _: undoing.undo(checkpoints, session, choose))
        return "\n".join(telling.lines(outcome, asked))

    async def _diff(self, rest: str, say: Say) -> str:
        from trunkline.agents.coder.undo import diffs, recovering
        from trunkline.agents.coder.undo.undoing import last_turns
        from trunkline.tools.truncation import truncate

        count = _count("/diff", rest) if rest else None
        await self._changes.settled()
        checkpoints, session = self._changes.checkpoints, self._changes.session

        def work(_: object) -> str:
            turns = recovering.all_turns(checkpoints, session)
            return diffs.diff(checkpoints, last_turns(turns, len(turns) if count is None else count))

        # Cleaned before it is cut: half of a secret would not be known for one.
        found = self._redactor.text(await in_thread(work))
        where = "this session" if count is None else "the last turn" if count == 1 else f"the last {count} turns"
        return truncate(found, MOST_DIFF_CHARS) if found else f"No changes of files are recorded in {where}."


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _count(word: str, rest: str) -> int:
    """The number behind a command.

    Raises:
        Mistyped: there is something else.
    """
    if not rest:
        return 1
    if rest.isascii() and rest.isdecimal() and 0 < int(rest[:9]) == int(rest):
        return int(rest)
    raise Mistyped(f"`{word}` takes a number of turns, such as `{word} 2`.")
