"""What a session tells those who follow it, and what is known of a line that is logged in a turn."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.base import log_context
from trunkline.core import tracing
from trunkline.core.agent import OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.tracing import ModelTrace, SessionTrace, TurnTrace

pytestmark = pytest.mark.virtual_time


class Noted(SessionTrace):
    """Notes all that it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def expected(self, turn: int) -> None:
        self.told.append(f"expected {turn}")

    def entered(self, turn: int) -> None:
        self.told.append(f"entered {turn}")

    def show(self, envelopes: Sequence[Envelope]) -> None:
        self.told += [f"{type(each.event).__name__} {each.turn}" for each in envelopes]

    def close(self) -> None:
        self.told.append("close")


class Follower:
    """A `Tracer`."""

    def __init__(self) -> None:
        self.sessions: list[tuple[str, str]] = []
        self.noted = Noted()

    def session(self, session: str, agent: str) -> SessionTrace:
        self.sessions.append((session, agent))
        return self.noted

    def turn(self, conversation: str, agent: str) -> TurnTrace:
        raise NotImplementedError

    def chat(self, provider: str, model: str) -> ModelTrace:
        raise NotImplementedError


@pytest.fixture
def follower() -> Iterator[Follower]:
    follower = Follower()
    tracing.follow(follower)
    yield follower
    tracing.follow(None)


async def test_a_session_tells_where_a_turn_belongs_before_it_begins_and_its_end_last(follower: Follower) -> None:
    agent = FakeAgent()
    session = await Session.open(agent, MemoryLog("s1"), Policy(), called="helper")
    session.submit(UserMessage("one"))
    await until(lambda: agent.busy)
    agent.say(TurnEnded("success"))
    await session.at_rest()
    await session.close()
    assert follower.sessions == [("s1", "helper")]
    assert follower.noted.told == ["expected 1", "TurnStarted 1", "entered 1", "TurnEnded 1", "close"]


async def test_an_agent_goes_by_its_own_name_where_it_has_no_other(follower: Follower) -> None:
    session = await Session.open(FakeAgent(), MemoryLog("s1"), Policy())
    await session.close()
    assert follower.sessions == [("s1", "fake")]


class Crashing(FakeAgent):
    """Logs what it does, and whatever it is asked."""

    async def open(self, request: OpenRequest) -> FakeAgent:
        logging.getLogger("trunkline.test").warning("opening")
        return await super().open(request)


async def test_a_line_that_is_logged_for_a_session_says_so_and_in_a_turn_which(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known: list[tuple[str, dict[str, str | int]]] = []

    def note(record: logging.LogRecord) -> bool:
        known.append((record.getMessage(), log_context.known(record.name)))
        return True

    caplog.handler.addFilter(note)
    agent = Crashing()
    session = await Session.open(agent, MemoryLog("s1"), Policy())
    session.submit(UserMessage("one"))
    await until(lambda: agent.busy)
    agent.crash(ValueError("boom"))
    await session.at_rest()
    await session.close()
    assert known == [("opening", {"session": "s1"}), ("the agent crashed in turn 1", {"session": "s1", "turn": 1})]
    assert log_context.known("") == {}
