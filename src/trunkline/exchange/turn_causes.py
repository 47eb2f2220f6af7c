"""Why each turn of a session ended as it did, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.core.events import Envelope, Failed, Outcome, StopAsked, ToolCancelled, TurnStarted
from trunkline.core.turns import STOPPED
from trunkline.exchange.acts import Act

#: What the ends of turns are called, for people.
OUTCOME_WORDS: Mapping[Outcome, str] = {
    "success": "answered",
    "error": "failed",
    "cancelled": "stopped",
    "unknown": "cut off",
}

#: Of a turn that ended well.
FINISHED = "The agent had finished its answer."


class TurnCauses:
    """Follows the events of one session."""

    def __init__(self, forked: Act | None = None) -> None:
        """`forked`: where the session was forked from another, if it was."""
        self._forked = forked
        self._began = 0
        self._stopped_by = self._fault = self._why_cancelled = ""

    def take(self, record: Envelope) -> None:
        """One more event."""
        match record.event:
            case TurnStarted():
                self._began = record.seq
                self._stopped_by = self._fault = self._why_cancelled = ""
            case Failed(kind=kind, message=text):
                self._fault = f"{text} ({kind})"
            case ToolCancelled(reason=reason):
                self._why_cancelled = reason
            # In turn 0, somebody withdrew messages, and the turn in progress went on.
            case StopAsked(by=by) if record.turn:
                self._stopped_by = by

    def of(self, end: Envelope, outcome: Outcome) -> str:
        """The cause of the end of a turn, which is the latest event."""
        if outcome == "success":
            return FINISHED
        if outcome == "cancelled":
            return self._of_cancelled(end)
        if self._fault:
            return self._fault
        if outcome == "unknown":
            return "The process ended before the call did: its outcome is unknown."
        return "The agent said that it failed, and not why."

    def _of_cancelled(self, end: Envelope) -> str:
        if self._stopped_by:
            return f"{self._stopped_by} stopped it."
        if self._forked is not None and self._began <= self._forked.seq < end.seq:
            return f"{self._forked.person or 'Somebody'} forked the session here."
        if self._fault:
            return self._fault
        if self._why_cancelled and self._why_cancelled != STOPPED:
            return f"{self._why_cancelled}."
        return "It was stopped."
