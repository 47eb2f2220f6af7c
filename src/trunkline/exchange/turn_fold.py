"""Folds the events of a session into the rows of its turns: one for each turn that has ended."""

from __future__ import annotations

from trunkline.core.events import Envelope, Outcome, Steered, StopAsked, TextDelta, TurnEnded, TurnStarted
from trunkline.exchange.acts import Act
from trunkline.exchange.turn_causes import TurnCauses
from trunkline.exchange.turn_rows import TurnRow, held

#: Characters of a message, an answer, a cause and a name that are kept, and so found: what people remember is among
#: them, and the log has the rest.
MOST_OF_MESSAGE, MOST_OF_ANSWER, MOST_OF_CAUSE, MOST_OF_NAME = 4000, 8000, 1000, 200


class TurnFold:
    """The turn in progress, as far as it was heard."""

    def __init__(self, session: str, agent: str, forked: Act | None = None) -> None:
        """`forked`: where the session was forked from another, if it was."""
        self._session = session
        self._agent = agent
        self._causes = TurnCauses(forked)
        self._stops: dict[int, str] = {}
        self._start: Envelope | None = None
        self._sender = ""
        self._message = ""
        self._answer: list[str] = []
        self._room = 0

    def take(self, record: Envelope) -> TurnRow | None:
        """One more event. Gives the row of a turn that ends with it and was heard from its beginning."""
        event = record.event
        if isinstance(event, TextDelta):
            if self._room > 0:
                self._answer.append(event.text)
                self._room -= len(event.text)
            return None
        if isinstance(event, TurnEnded):
            return self._ended(record, event.outcome)
        self._causes.take(record)
        if isinstance(event, TurnStarted):
            self._start, self._sender, self._message = record, event.message.sender or "", event.message.text
            self._answer, self._room = [], MOST_OF_ANSWER
        elif isinstance(event, Steered):
            self._message = f"{self._message[:MOST_OF_MESSAGE]}\n{event.message.text}"
        return None

    def stopped(self, turn: int, by: str) -> None:
        """Somebody stops a turn whose events may not have been heard yet: for who is not told of that by an event."""
        self._stops[turn] = by

    def _ended(self, end: Envelope, outcome: Outcome) -> TurnRow | None:
        start, self._start, self._room = self._start, None, 0
        if by := self._stops.pop(end.turn, ""):
            self._causes.take(Envelope(end.session, end.seq, end.turn, end.at, StopAsked(by)))
        if start is None or start.turn != end.turn:
            return None
        # As exactly as the log has it: read from there, it is the same.
        began_at = round(start.at * 1000)
        return TurnRow(
            number=began_at * 1000,
            session=self._session,
            turn=end.turn,
            seq=start.seq,
            agent=self._agent,
            by_person=held(self._sender[:MOST_OF_NAME]),
            began_at=began_at,
            ended_at=round(end.at * 1000),
            outcome=outcome,
            cause=held(self._causes.of(end, outcome)[:MOST_OF_CAUSE]),
            message=held(self._message[:MOST_OF_MESSAGE]),
            answer=held("".join(self._answer)[:MOST_OF_ANSWER]),
        )
