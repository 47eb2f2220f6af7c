"""The record of what each turn of a session has changed: one line of JSON for each thing that happened, oldest first.

    {"turn": ID, "at": 1700000000}                      a turn began
    {"change": ID, "paths": {PATH: [BEFORE, AFTER]}}    these have changed while a call in it was run
    {..., "named": true}                                the call named the path: nobody else can have done it
    {"uncovered": ID, "why": "..."}                     a command ran in it whose changes are not known
    {"end": ID}                                         it is over
    {"undo": [ID, ...], "left": [PATH, ...]}            these turns were undone, but for some paths
    {"told": true}                                      the model knows of what was undone so far

Paths are from the workspace, or absolute if they are outside. A session in which nothing has changed yet has no record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from trunkline.agents.coder.undo import states
from trunkline.agents.coder.undo.lines import LineFile, ReadUpTo
from trunkline.agents.coder.undo.opened import OpenCalls
from trunkline.agents.coder.undo.states import PathState


class RecordedChange(NamedTuple):
    """What was at a path before a call, and after it."""

    path: str
    before: PathState | None
    after: PathState | None
    is_named: bool = False
    """The call named the path. Else somebody else may have changed it at the same time."""

    @property
    def what(self) -> tuple[str, PathState | None, PathState | None]:
        """The change, whoever has seen it."""
        return self[:3]


class TurnChanges:
    """One turn that is recorded."""

    def __init__(self, id: str, at: float) -> None:
        self.id = id
        self.at = at
        self.changes: list[RecordedChange] = []
        """Oldest first."""
        self.uncovered: list[str] = []
        """Why changes of commands are not known, if they are not."""
        self.is_over = False
        self.is_undone = False


class ChangeRecord(LineFile):
    """The record of one session: it is there once something has changed in the session. `place` is the beginning of
    its files' names."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}.jsonl")
        self.calls = OpenCalls(place)
        """What is not recorded yet."""

    @property
    def used(self) -> float:
        """When something was last added to it, or is about to be; 0 if that was never."""
        return max(super().used, self.calls.used)

    def begin(self, turn: str, at: float) -> None:
        self.add({"turn": turn, "at": int(at)})

    def change(
        self, turn: str, changes: Iterable[tuple[str, PathState | None, PathState | None]], *, named: bool = False
    ) -> None:
        told = {path: [states.to_json(before), states.to_json(after)] for path, before, after in changes}
        self.add({"change": turn, "paths": told, **({"named": True} if named else {})})

    def uncovered(self, turn: str, why: str) -> None:
        self.add({"uncovered": turn, "why": why})

    def end(self, turn: str) -> None:
        self.add({"end": turn})

    def undo(self, turns: Collection[str], left: Collection[str]) -> None:
        self.add({"undo": list(turns), "left": list(left)})

    def told(self) -> None:
        self.add({"told": True})

    def read(self) -> list[TurnChanges]:
        """All turns since the first that has changed something, oldest first."""
        found: dict[str, TurnChanges] = {}
        for line in self.lines()[0]:
            # What makes no sense is skipped like what cannot be read.
            with suppress(ValueError, TypeError):
                _apply(line, found)
        return list(found.values())

    def untold(self, since: ReadUpTo) -> tuple[bool, ReadUpTo]:
        """Whether something was undone, since it was read last, that the model does not know of; and up to where it is
        read now."""
        lines, end = self.lines(since)
        marks = [line for line in lines if "undo" in line or "told" in line]
        return bool(marks) and "undo" in marks[-1], end

    def remove(self) -> None:
        """Forget it, if it is there."""
        super().remove()
        self.calls.remove()

    def keep_newest(self, share: float) -> None:
        """Forget the oldest turns, so that this part of them is left.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        turns = [turn.id for turn in self.read()]
        gone = set(turns[: len(turns) - int(len(turns) * share)])
        if gone:
            # What is about others as well stays.
            self.rewrite(lambda lines: (line for line in lines if not (about := _turns_of(line)) or set(about) - gone))


def _turns_of(line: Mapping[str, Any]) -> list[str]:
    named = line.get("undo", ())
    return [str(line[word]) for word in ("turn", "change", "uncovered", "end") if word in line] + list(named)


def _apply(line: Mapping[str, Any], found: dict[str, TurnChanges]) -> None:
    match line:
        case {"turn": str(id)}:
            found.setdefault(id, TurnChanges(id, float(line.get("at", 0))))
        case {"change": str(id), "paths": dict(told)} if id in found:
            for path, (before, after) in told.items():
                both = states.from_json(before), states.from_json(after)
                found[id].changes.append(RecordedChange(path, *both, bool(line.get("named"))))
        case {"uncovered": str(id), "why": str(why)} if id in found:
            found[id].uncovered.append(why)
        case {"end": str(id)} if id in found:
            found[id].is_over = True
        case {"undo": list(ids)}:
            for id in ids:
                if id in found:
                    found[id].is_undone = True
        case _:
            return
