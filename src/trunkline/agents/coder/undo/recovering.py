"""What a process that was killed has changed and not recorded: what was there before its last calls is compared with
what is there now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trunkline.agents.coder.undo import scanning
from trunkline.agents.coder.undo.checkpoints import PATIENCE_SECONDS, Checkpoints
from trunkline.agents.coder.undo.faults import NoCheckpoint
from trunkline.agents.coder.undo.opened import OpenCall, OpenCalls
from trunkline.agents.coder.undo.states import look
from trunkline.agents.coder.undo.turns import RecordedChange, TurnChanges


class _Left(NamedTuple):
    """What a call has left."""

    call: OpenCall
    changes: Sequence[RecordedChange] = ()
    unknown: Sequence[str] = ()
    """Why some of that is not known."""


class Recovery:
    """The whole of a session's changes: those that are recorded, and those of calls that are still open.

    To be made in a thread, by whoever has the store for himself if there are open calls.
    """

    def __init__(self, checkpoints: Checkpoints, session: str) -> None:
        self._record = checkpoints.record(session)
        self._left = list(_look(checkpoints, self._record.calls)) if self._record.calls.exists else []

    def turns(self) -> list[TurnChanges]:
        """All of them, oldest first."""
        found = {turn.id: turn for turn in self._record.read()}
        for call, changes, unknown in self._left:
            turn = found.setdefault(call.turn, TurnChanges(call.turn, call.at))
            turn.changes += changes
            turn.uncovered += unknown
        return list(found.values())

    def settle(self) -> None:
        """Have it recorded. Only if no process is at work on the session.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        for call, changes, unknown in self._left:
            self._record.begin(call.turn, call.at)
            if changes:
                self._record.change(call.turn, [change.what for change in changes], named=call.paths is not None)
            for why in unknown:
                self._record.uncovered(call.turn, why)
        if self._record.calls.exists:
            self._record.calls.remove()


def all_turns(checkpoints: Checkpoints, session: str) -> list[TurnChanges]:
    """What a session has changed so far, for somebody who only looks. To be called in a thread.

    Raises:
        NoCheckpoint: the store is in use.
    """
    record = checkpoints.record(session)
    if not record.calls.exists:
        return record.read()
    with checkpoints.store.locked(PATIENCE_SECONDS):
        return Recovery(checkpoints, session).turns()


def _look(checkpoints: Checkpoints, opened: OpenCalls) -> Iterator[_Left]:
    calls = opened.read()
    commands = [call for call in calls if call.paths is None]
    for call in calls:
        try:
            if call.paths is not None:
                yield _Left(call, list(_named(checkpoints, call)))
            elif call is commands[0]:
                # It was the first: the others are within what it may have changed.
                yield _Left(call, *_anywhere(checkpoints, opened.manifest))
        except NoCheckpoint as problem:
            yield _Left(call, unknown=[str(problem)])


def _named(checkpoints: Checkpoints, call: OpenCall) -> Iterator[RecordedChange]:
    with checkpoints.store.keeping() as keeper:
        for path, before in (call.paths or {}).items():
            after, data = look(checkpoints.full(path))
            if before == after:
                continue
            for state, content in ((before, call.content), (after, data)):
                if state is not None and state.is_kept and state.blob:
                    keeper.keep(state.blob, content)
            yield RecordedChange(path, before, after, is_named=True)


def _anywhere(checkpoints: Checkpoints, manifest: str) -> tuple[list[RecordedChange], list[str]]:
    before = scanning.read(manifest)
    after = scanning.scan(checkpoints.root, before, checkpoints.store, checkpoints.excluded, lambda: None)
    changes = [RecordedChange(*change) for change in scanning.changed(before, after)]
    return changes, scanning.not_known(before, after)
