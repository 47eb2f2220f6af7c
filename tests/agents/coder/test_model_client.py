"""What a model's calls cost is counted, and none is made that may not be paid."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.fake_model import USED, FakeModel, Reply, call, calls, words
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, Failed, TurnEnded, UserMessage
from trunkline.core.faults import BudgetExceeded
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.models.providers import ModelSettings


class Purse:
    """Money for so many calls of a model."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.told: list[tuple[Usage, str]] = []

    def admit(self) -> None:
        self.check()

    def check(self) -> None:
        if len(self.told) >= self.calls:
            raise BudgetExceeded("The budget is spent.")

    def spent(self, usage: Usage, model: str) -> None:
        self.told.append((usage, model))


class Paid:
    """A session with a fake model that somebody pays for."""

    def __init__(self, session: Session, log: MemoryLog) -> None:
        self._session = session
        self._log = log

    async def say(self, text: str) -> list[Event]:
        """What happens in the turn of a message."""
        turn = self._session.submit(UserMessage(text))
        await self._session.at_rest()
        return [item.event for item in self._log.read() if isinstance(item, Envelope) and item.turn == turn]


@asynccontextmanager
async def paid_by(purse: Purse, place: Path, *replies: Reply) -> AsyncIterator[Paid]:
    model, log = FakeModel(*replies), MemoryLog("s1")
    coder = Coder(CoderSettings(ModelSettings("anthropic"), "a test"), lambda _: model)
    session = await Session.open(coder, log, Policy("yolo"), workspace=str(place), meter=purse)
    try:
        yield Paid(session, log)
    finally:
        await session.close()
    assert not model.replies


async def test_every_call_is_counted_those_of_sub_agents_and_of_summaries_too(tmp_path: Path) -> None:
    purse = Purse(10)
    spawn = calls(call("Spawn", tasks=[{"name": "one", "prompt": "Look."}]))
    async with paid_by(purse, tmp_path, spawn, words("Seen."), words("Done."), words("All was seen.")) as paid:
        await paid.say("Let somebody look.")
        assert purse.told == [(USED, "fake")] * 3
        await paid.say("/compact")
        assert purse.told == [(USED, "fake")] * 4


async def test_a_turn_ends_before_a_call_that_may_not_be_paid(tmp_path: Path) -> None:
    write = calls(call("Write", file_path="a.txt", content="one\n"))
    async with paid_by(Purse(1), tmp_path, write) as paid:
        *_, failed, ended = await paid.say("Write a file, and tell me.")
        assert failed == Failed("budget", "The budget is spent.", retryable=True)
        assert ended == TurnEnded("error", USED)


async def test_a_message_that_may_not_be_paid_is_refused_and_the_agent_is_not_asked(tmp_path: Path) -> None:
    async with paid_by(Purse(0), tmp_path) as paid:
        *_, failed, ended = await paid.say("/help")
        assert failed == Failed("budget", "The budget is spent.", retryable=True)
        assert isinstance(ended, TurnEnded)
        assert ended.outcome == "error"
