"""What `core.turns` remembers of one message and the calls of its turn."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from trunkline.core.events import ToolRequested, UserMessage
from trunkline.core.faults import Fault


class CallState(Enum):
    """Where a tool call is. `DENYING`: denied, and the agent has not been told yet."""

    PENDING = "pending"
    ALLOWED = "allowed"
    RUNNING = "running"
    DENYING = "denying"
    CLOSED = "closed"


#: Calls that somebody was shown and that are not over.
OPEN_CALLS = (CallState.PENDING, CallState.ALLOWED, CallState.RUNNING, CallState.DENYING)


class TurnRecord:
    """A message on its way: waiting, or being answered."""

    def __init__(self, number: int, message: UserMessage, refusal: Fault | None) -> None:
        self.number = number
        self.message = message
        self.refusal = refusal
        self.calls: dict[str, CallState] = {}
        self.pending: dict[str, None] = {}
        self.denying: dict[str, None] = {}
        """The calls in those two states, in order: asked for after every event, however many calls there were."""
        self.requests: dict[str, ToolRequested] = {}
        self.reasons: dict[str, str] = {}
        self.shown: set[str] = set()
        self.asked_before: set[str] = set()
        """The calls about which an earlier process asked, and which the agent has not named again yet."""
        self.failed = False
        self.dropped = False

    def put(self, call_id: str, call: CallState) -> None:
        """Move a call to where it is now."""
        self.calls[call_id] = call
        for where, members in ((CallState.PENDING, self.pending), (CallState.DENYING, self.denying)):
            if call is where:
                members[call_id] = None
            else:
                members.pop(call_id, None)


def dropped(queue: Iterable[TurnRecord], only: int | None = None) -> list[UserMessage]:
    """Drop what waits in a queue, or that turn of it; gives the messages that were to be answered until now."""
    found = [turn for turn in queue if only in (None, turn.number) and not turn.dropped]
    for turn in found:
        turn.dropped = True
    return [turn.message for turn in found]
