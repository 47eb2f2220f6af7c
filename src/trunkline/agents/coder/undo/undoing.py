"""Undoes turns: each path that is still as the last of them left it becomes what it was before the first.

What somebody else has changed meanwhile is left as it is, and named: after these turns, or between two of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from trunkline.agents.coder.undo.checkpoints import PATIENCE_SECONDS, Checkpoints
from trunkline.agents.coder.undo.recovering import Recovery
from trunkline.agents.coder.undo.restoring import NO_WAY, Restorer
from trunkline.agents.coder.undo.states import PathState, changed_at
from trunkline.agents.coder.undo.turns import RecordedChange, TurnChanges
from trunkline.base.values import Value

#: Why a path was left.
CHANGED_SINCE = "changed since by somebody else"
NOT_KEPT = "what it held is not kept: it was too large or could not be read"
NOT_EMPTY = "not empty: others have put something into it"
OLDER = "what it holds is not kept, and older than the turn: it may have been moved here"
AT_THE_SAME_TIME = "another session, which was at work at the same time, may have changed it"
#: What is not known of a turn that did not come to its end.
BROKEN_OFF = "The agent's process was ended in the middle of a turn, and may have left a command running."


class LeftAsIs(Value):
    """A path that was not put back, and why."""

    path: str
    why: str


class UndoOutcome(Value):
    """What came of an undo."""

    turns: int
    """How many were undone."""
    restored: tuple[str, ...] = ()
    left: tuple[LeftAsIs, ...] = ()
    uncovered: tuple[str, ...] = ()
    """Why changes of commands were not known."""


class PathChange:
    """What some turns together made of a path."""

    def __init__(self, change: RecordedChange) -> None:
        self.before = change.before
        self.after = change.after
        self.is_ours = True
        """Whether nobody else has changed it between."""
        self._steps = {change}
        self._seen = {change.before, change.after}

    def then(self, change: RecordedChange) -> None:
        """A later change. Two commands that ran at the same time may both have seen the same one."""
        self.is_ours = self.is_ours and change.before in self._seen
        self.after = change.after
        self._steps.add(change)
        self._seen |= {change.before, change.after}

    def doubtful(self) -> frozenset[object]:
        """The changes that somebody else may have made at the same time. What a call named may be seen by others."""
        named = {step.what for step in self._steps if step.is_named}
        return frozenset(step.what for step in self._steps if step.what not in named)


def together(turns: Iterable[TurnChanges]) -> dict[str, PathChange]:
    """What these turns, oldest first, have changed, by path."""
    found: dict[str, PathChange] = {}
    for turn in turns:
        for change in turn.changes:
            if change.path in found:
                found[change.path].then(change)
            else:
                found[change.path] = PathChange(change)
    return found


def last_turns(turns: Sequence[TurnChanges], count: int) -> list[TurnChanges]:
    """The last of those that were not undone yet, oldest first."""
    return [turn for turn in turns if not turn.is_undone][-count:]


#: Picks some out of all turns that are recorded.
Choose = Callable[[Sequence[TurnChanges]], list[TurnChanges]]


def undo(checkpoints: Checkpoints, session: str, choose: Choose) -> UndoOutcome:
    """Undo the turns that `choose` picks out of all that are recorded. To be called in a thread.

    Raises:
        NoCheckpoint: the store cannot be used; nothing was changed.
    """
    record = checkpoints.record(session)
    if not record.used:
        return UndoOutcome(0)
    with checkpoints.store.locked(PATIENCE_SECONDS):
        recovery = Recovery(checkpoints, session)
        turns = choose(recovery.turns())
        if not turns:
            return UndoOutcome(0)
        recovery.settle()
        began = turns[0].at
        others = (other.read() for other in checkpoints.others(session, began))
        theirs = frozenset(
            change.what for recorded in others for turn in recorded if not turn.is_undone for change in turn.changes
        )
        work = _Undoing(checkpoints, began, theirs)
        work.run(together(turns))
        left = tuple(LeftAsIs(path, why) for path, why in sorted(work.left.items()))
        record.undo([turn.id for turn in turns], list(work.left))
    uncovered = tuple(dict.fromkeys(why for turn in turns for why in _unknown(turn)))
    return UndoOutcome(len(turns), tuple(sorted(work.restored)), left, uncovered)


def _unknown(turn: TurnChanges) -> list[str]:
    return turn.uncovered if turn.is_over else [*turn.uncovered, BROKEN_OFF]


class _Undoing:
    """One undo: `began` is when the first of its turns did, and `theirs` is what other sessions have recorded since."""

    def __init__(self, checkpoints: Checkpoints, began: float, theirs: frozenset[object]) -> None:
        self._checkpoints = checkpoints
        self._began = began
        self._theirs = theirs
        self._disk = Restorer(checkpoints.root)
        self._now: dict[str, PathState | None] = {}
        self.restored: list[str] = []
        self.left: dict[str, str] = {}

    def run(self, changes: dict[str, PathChange]) -> None:
        todo = {path: change.before for path, change in changes.items() if self._may(path, change)}
        moves = self._moves(todo)
        for path in self.left:
            todo.pop(path, None)
        if changes and all(change.after is None for change in changes.values()):
            # The workspace may have gone with all that was in it.
            with suppress(OSError):
                os.makedirs(self._checkpoints.root, exist_ok=True)
        self._put_back(todo, moves)
        self.restored = [path for path in todo if path not in self.left]

    def _put_back(self, todo: Mapping[str, PathState | None], moves: Mapping[str, str]) -> None:
        # The inner ones go first, and come last.
        inward = sorted(todo, key=_depth)
        moved = set(moves.values())
        gone = [path for path in reversed(inward) if path not in moved and self._must_go(path, todo[path])]
        folders = [path for path in inward if _is_folder(todo[path])]
        # Before anything is touched: a content that is not there must not leave half of it undone.
        with self._checkpoints.store.reading() as read:
            contents = {
                path: read(state.blob)
                for path in inward
                if (state := todo[path]) is not None and state.kind in ("file", "link") and path not in moves
            }
        # Whoever takes something out of a directory, or puts it in, needs the rights to; it gets its own at the end.
        for path in inward:
            if _is_folder(self._now[path]):
                self._try(self._disk.make_directory, path)
        self._remove(path for path in gone if not _is_folder(self._now[path]))
        for path in folders:
            self._try(self._disk.make_directory, path)
        for path, source in moves.items():
            self._try(self._disk.move, path, todo[path], source)
        self._remove(path for path in gone if _is_folder(self._now[path]))
        for path, data in contents.items():
            self._try(self._disk.write, path, todo[path], data)
        for path in reversed(folders):
            self._try(self._disk.set_mode, path, todo[path])

    def _may(self, path: str, change: PathChange) -> bool:
        """Whether a path is to be put back; if somebody else has a say in it, it is named."""
        try:
            now = self._disk.now(path)
        except OSError as error:
            self.left[path] = _reason(error)
            return False
        self._now[path] = now
        if now == change.before:
            return False
        if now != change.after or not change.is_ours:
            self.left[path] = CHANGED_SINCE
        elif change.doubtful() & self._theirs:
            self.left[path] = AT_THE_SAME_TIME
        return path not in self.left

    def _moves(self, todo: dict[str, PathState | None]) -> dict[str, str]:
        """Where the files are now whose contents are not kept, by where they were. Those that are nowhere are named,
        and so is what came from elsewhere and would be lost."""
        came = {
            now.blob: path
            for path, before in todo.items()
            if before is None and (now := self._now[path]) is not None and now.kind == "file" and not now.is_kept
        }
        moves: dict[str, str] = {}
        for path, before in todo.items():
            if before is None or before.is_kept:
                continue
            if self._now[path] is None and before.blob in came:
                moves[path] = came.pop(before.blob)
            else:
                self.left[path] = NOT_KEPT
        for blob, path in came.items():
            if changed_at(blob) < self._began:
                self.left[path] = OLDER
        return moves

    def _must_go(self, path: str, before: PathState | None) -> bool:
        now = self._now[path]
        if now is None:
            return False
        return before is None or (before.kind != now.kind and "directory" in (before.kind, now.kind))

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._try(self._disk.remove, path, self._now[path])

    def _try(self, step: Callable[..., None], path: str, *more: object) -> None:
        if path in self.left:
            return
        try:
            step(path, *more)
        except OSError as error:
            self.left[path] = _reason(error)


def _is_folder(state: PathState | None) -> bool:
    return state is not None and state.kind == "directory"


def _depth(path: str) -> tuple[int, str]:
    return path.count(os.sep), path


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return NOT_EMPTY
    if error.errno in NO_WAY:
        return "a directory on the way is a link or a file by now"
    return os.strerror(error.errno) if error.errno is not None else str(error)
