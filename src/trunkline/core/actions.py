"""What the turn machine wants done, in order. `core.turns` gives these out, `core.performer` carries them out."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.agent import Decision
from trunkline.core.events import Event, UserMessage


class Action(Value):
    """What the session must do next."""


class Emit(Action):
    """Stamp, log and show an event."""

    turn: int
    event: Event


class Begin(Action):
    """Let the agent answer a message."""

    turn: int
    message: UserMessage


class GoOn(Action):
    """Let the agent go on with a turn that an earlier process did not live to end."""

    turn: int
    message: UserMessage


class Decide(Action):
    """Tell the agent a decision, then report `resolved`."""

    turn: int
    call_id: str
    decision: Decision


class Cancel(Action):
    """Ask the agent to stop, and report `expired` if it has not ended in time."""

    turn: int


class Abandon(Action):
    """The turn is over, and the agent does not know yet: do not listen to it any longer."""

    turn: int
