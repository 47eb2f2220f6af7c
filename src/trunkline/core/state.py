"""What a session has come to: all that resuming needs, folded from its events.

The live session applies every event as it happens; resuming applies the events since the last checkpoint to the
state in that checkpoint. One fold for both, so that they cannot differ.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.events import (
    Category,
    Envelope,
    Granted,
    GrantRevoked,
    HistoryInjected,
    Journaled,
    JournalReplaced,
    ModeChanged,
    SessionIdentified,
    ToolAnswered,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.grants import Grant
from trunkline.core.usage import Usage


class Snapshot(Value):
    """A `SessionState` at rest, between turns, as a checkpoint keeps it."""

    turns: int = 0
    mode: Mode | None = None
    grants: tuple[Category, ...] = ()
    """Of whole categories, in the workspace: all that older checkpoints know of."""
    given: tuple[Grant, ...] | None = None
    """All of them, in the order in which they were given; counts alone where it is."""
    history: tuple[str, ...] = ()
    last: Usage | None = None
    usage: Usage | None = None
    agent_session: str | None = None
    journal: tuple[Any, ...] = ()
    mode_in: str | None = None
    """The directory that the mode was chosen for, where that was noted."""
    mode_before_plan: Mode | None = None
    """The mode to which an approved plan leads back, if it was chosen there, too."""


class OpenTurn:
    """A turn that has begun and not ended."""

    def __init__(self, message: UserMessage) -> None:
        self.message = message
        self.calls: dict[str, ToolRequested | None] = {}
        """The calls that are not over: what a person is asked, and None once there was an answer or a start."""

    @property
    def waiting(self) -> tuple[ToolRequested, ...]:
        """What a person is asked, if nothing else is open: then nothing is under way that nobody could know of."""
        asked = [call for call in self.calls.values() if call is not None]
        return tuple(asked) if len(asked) == len(self.calls) else ()


class SessionState:
    """The running account of one session."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        start = snapshot or Snapshot()
        self.turns = start.turns
        """The number of the latest turn."""
        self.mode: Mode | None = start.mode
        self._mode_in = start.mode_in or ""
        self._mode_before_plan: Mode | None = start.mode_before_plan
        self.grants: list[Grant] = list(map(Grant, start.grants) if start.given is None else start.given)
        """In the order in which they were given."""
        self.history: list[str] = list(start.history)
        self.last: Usage | None = start.last
        """What the latest turn used."""
        self.total: Usage | None = start.usage
        """What all turns used, as far as it is known."""
        self.agent_session: str | None = start.agent_session
        self.journal: list[Any] = list(start.journal)
        self.open_turns: dict[int, OpenTurn] = {}
        """The turns that have begun and not ended: after a crash, those that nobody finished."""

    @property
    def was_used(self) -> bool:
        """Whether anything was ever said in it."""
        return bool(self.turns or self.history or self.journal)

    def modes_in(self, workspace: str) -> tuple[Mode, ...]:
        """The mode that was chosen for a directory, or before it was noted for which; ahead of `plan`, the one to which
        an approved plan leads back. Nothing if none was."""
        if self.mode is None or self._mode_in not in ("", workspace):
            return ()
        return (self.mode,) if self._mode_before_plan is None else (self._mode_before_plan, self.mode)

    def grants_in(self, workspace: str) -> list[Grant]:
        """What was granted in a directory, or before it was noted where."""
        return [grant for grant in self.grants if grant.workspace in ("", workspace)]

    def apply(self, envelope: Envelope) -> None:  # noqa: C901  (one case per event)
        """Take one more event into account. Events that change nothing here are welcome."""
        match envelope.event:
            case TurnStarted(message=message):
                self.turns = max(self.turns, envelope.turn)
                self.open_turns[envelope.turn] = OpenTurn(message)
            case TurnEnded(usage=usage):
                self.open_turns.pop(envelope.turn, None)
                self.last = usage
                if usage is not None:
                    self.total = usage if self.total is None else self.total + usage
            case ToolRequested(call_id=call_id):
                if turn := self.open_turns.get(envelope.turn):
                    turn.calls[call_id] = envelope.event
            case ToolAnswered(call_id=call_id) | ToolStarted(call_id=call_id):
                if turn := self.open_turns.get(envelope.turn):
                    turn.calls[call_id] = None
            case ToolFinished(call_id=call_id) | ToolCancelled(call_id=call_id):
                if turn := self.open_turns.get(envelope.turn):
                    turn.calls.pop(call_id, None)
            case ModeChanged(mode=mode, workspace=workspace):
                known = self.modes_in(workspace)
                if known[-1:] != ("plan",) or mode != "plan":
                    self._mode_before_plan = known[-1] if mode == "plan" and known else None
                self.mode, self._mode_in = mode, workspace
            case Granted() | GrantRevoked():
                self._granted(envelope.event)
            case HistoryInjected(text=text):
                self.history.append(text)
            case SessionIdentified(session_id=session_id):
                self.agent_session = session_id
            case Journaled(record=record):
                self.journal.append(record)
            case JournalReplaced(records=records):
                self.journal[:] = records
            case _:
                pass

    def _granted(self, event: Granted | GrantRevoked) -> None:
        grant = Grant.of(event)
        if grant in self.grants:
            self.grants.remove(grant)
        if isinstance(event, Granted):
            self.grants.append(grant)

    def snapshot(self) -> dict[str, Any]:
        """The JSON object for a checkpoint. Only between turns: a turn in progress is not part of it."""
        return shapes.encode(
            Snapshot(
                self.turns,
                self.mode,
                (),
                tuple(self.grants),
                tuple(self.history),
                self.last,
                self.total,
                self.agent_session,
                tuple(self.journal),
                self._mode_in or None,
                self._mode_before_plan,
            )
        )

    @classmethod
    def from_snapshot(cls, data: Any) -> SessionState:
        """The state in a checkpoint.

        Raises:
            ShapeError: it is not one.
        """
        return cls(shapes.decode(Snapshot, data))
