"""What somebody who follows the work from outside is told: sessions and their turns, and questions to models.

Nobody follows it unless `tracer` is set, before the first session is opened. A session, a server and a question to a
model look once whether somebody does; nothing else is paid then. `trunkline.telemetry` is who does, where it is
switched on. No word of a conversation is told here but in the events of a session, which a tracer sees as all sinks do.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from trunkline.core.events import Outcome
from trunkline.core.feed import SessionWatcher
from trunkline.core.usage import Usage


class SessionTrace(SessionWatcher):
    """Follows one session: a sink that is also told what events do not tell."""

    def expected(self, turn: int) -> None:
        """A message was taken in. Where we are now is where its turn belongs, however long it waits."""
        raise NotImplementedError

    def entered(self, turn: int) -> None:
        """Called in the task in which the agent answers: what it asks and begins is part of the turn."""
        raise NotImplementedError


class TurnTrace(Protocol):
    """Follows one turn that belongs to no session."""

    def entered(self) -> None:
        """Called in the task in which it is answered."""

    def ended(self, outcome: Outcome, usage: Usage | None, fault: str = "") -> None:
        """How it went; `fault` is the kind of what failed it."""


class ModelTrace(Protocol):
    """Follows one question to a model."""

    def here(self) -> AbstractContextManager[None]:
        """A block in which what is sent is part of the question."""

    def heard(self) -> None:
        """A piece of the answer is there. Only the first is of interest."""

    def answered(self, usage: Usage | None, stop: str) -> None:
        """It is answered, as far as this; `stop`: why the answer ended, as far as that is known."""

    def ended(self, error: BaseException | None) -> None:
        """Nothing more will come. To be called once."""


class Tracer(Protocol):
    """Who follows it."""

    def session(self, session: str, agent: str) -> SessionTrace:
        """A session is opened."""

    def turn(self, conversation: str, agent: str) -> TurnTrace:
        """A turn begins that belongs to no session."""

    def chat(self, provider: str, model: str) -> ModelTrace:
        """A model is asked."""


tracer: Tracer | None = None


def is_on() -> bool:
    """Whether somebody does."""
    return tracer is not None


def follow(who: Tracer | None) -> None:
    """Let somebody follow the work from now on; None: nobody."""
    global tracer
    tracer = who
