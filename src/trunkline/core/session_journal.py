"""The records of an agent, in the log of its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trunkline.core.events import Journaled, JournalReplaced
from trunkline.core.recorder import Recorder
from trunkline.core.turns import Turns


class SessionJournal:
    """See `core.agent.Journal`."""

    def __init__(self, recorder: Recorder, turns: Turns) -> None:
        self._recorder = recorder
        self._turns = turns

    @property
    def records(self) -> Sequence[Any]:
        return tuple(self._recorder.state.journal)

    def append(self, record: Any) -> None:
        self._recorder.emit(self._turns.turn, Journaled(record))

    def replace(self, records: Sequence[Any]) -> None:
        self._recorder.emit(self._turns.turn, JournalReplaced(tuple(records)))
