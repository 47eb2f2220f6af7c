"""Two sessions out of one: what the agent of the new one remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.fake_model import FakeModel, Reply, call, calls, words
from tests.support.loop import until
from trunkline.agents.coder.agent import Coder
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.agent import Agent, Approve
from trunkline.core.events import (
    Envelope,
    Gap,
    HistoryInjected,
    JournalReplaced,
    TextDelta,
    ToolFinished,
    TurnEnded,
    UserMessage,
)
from trunkline.core.turns import State
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.forked_events import NoSuchEvent
from trunkline.exchange.forking import fork
from trunkline.exchange.settings import AgentSettings, ExchangeSettings
from trunkline.exchange.switchboard import Switchboard
from trunkline.models.messages import Text, ToolResultBlock
from trunkline.models.model import Request
from trunkline.models.providers import ModelSettings


@asynccontextmanager
async def board(tmp_path: Path, *replies: Reply) -> AsyncIterator[tuple[Switchboard, FakeModel]]:
    model = FakeModel(*replies)

    async def make(name: str, options: dict[str, Any]) -> Agent:
        return (
            Coder(CoderSettings(ModelSettings("anthropic"), "a test"), lambda _: model)
            if name == "coder"
            else FakeAgent()
        )

    place = tmp_path / "workspace"
    place.mkdir(exist_ok=True)
    agents = {
        "helper": AgentSettings("helper", "coder", str(place), allow=()),
        "program": AgentSettings("program", "jsonstream:some program", str(place)),
    }
    settings = ExchangeSettings("", str(tmp_path / "home"), agents=agents)
    async with Exchange.opened(settings, make=make) as exchange:
        yield exchange.switchboard, model


async def said(switchboard: Switchboard, id: str, text: str) -> None:
    live = await switchboard.find(id)
    await switchboard.submit(live, UserMessage(text))
    await live.session.at_rest()


def texts(request: Request) -> str:
    """All that the model was told, in words."""
    blocks = [block for message in request.messages for block in message.content]
    return " | ".join(block.text for block in blocks if isinstance(block, Text | ToolResultBlock))


def records(switchboard: Switchboard, id: str) -> list[Envelope]:
    return [record for record in switchboard.peek(id).records if isinstance(record, Envelope)]


async def test_the_coder_remembers_what_was_said_through_n_and_nothing_after_it(tmp_path: Path) -> None:
    replies = (words("Blue it is."), words("Green it is."), words("From the fork."), words("From the first."))
    async with board(tmp_path, *replies) as (switchboard, model):
        live = await switchboard.open("helper", by="ana")
        await said(switchboard, live.id, "My colour is blue")
        end = records(switchboard, live.id)[-1]
        assert isinstance(end.event, TurnEnded)
        await said(switchboard, live.id, "Now it is green")
        other = await fork(switchboard, live.id, end.seq, "ana")
        await said(switchboard, other.id, "Which one?")
        assert "My colour is blue" in texts(model.requests[2])
        assert "Blue it is." in texts(model.requests[2])
        assert "green" not in texts(model.requests[2]).lower()
        await said(switchboard, live.id, "And here?")
        assert "Green it is." in texts(model.requests[3])
        assert "Which one?" not in texts(model.requests[3])


async def test_a_call_that_waits_is_run_in_the_first_session_only_and_the_fork_can_go_on(tmp_path: Path) -> None:
    replies = (calls(call("Write", file_path="a.txt", content="one\n")), words("Fine."), words("Written."))
    async with board(tmp_path, *replies) as (switchboard, model):
        live = await switchboard.open("helper", by="ana")
        await switchboard.submit(live, UserMessage("Write it"))
        await until(lambda: live.session.status is State.AWAITING_APPROVAL)
        other = await fork(switchboard, live.id, None, "ana")
        woken = await switchboard.find(other.id)
        assert woken.session.status is State.IDLE
        await said(switchboard, other.id, "Leave it")
        assert "Leave it" in texts(model.requests[1])
        assert not (tmp_path / "workspace" / "a.txt").exists()
        live.session.answer(live.session.waiting[0].call_id, Approve())
        await live.session.at_rest()
        assert (tmp_path / "workspace" / "a.txt").read_text() == "one\n"
        assert not any(isinstance(each.event, ToolFinished) for each in records(switchboard, other.id))


async def test_a_program_that_remembers_by_itself_is_told_in_words_what_was_said(tmp_path: Path) -> None:
    async with board(tmp_path) as (switchboard, _):
        live = await switchboard.open("program", by="ana")
        live.session.submit(UserMessage("Hello"))
        live.session.stop()
        await live.session.at_rest()
        last = live.session.seq
        other = await fork(switchboard, live.id, None, "ana")
        forget, told = records(switchboard, other.id)[last:]
        assert forget.event == JournalReplaced(())
        assert isinstance(told.event, HistoryInjected)
        assert "User: Hello" in told.event.text


async def test_a_fork_outlives_the_process(tmp_path: Path) -> None:
    async with board(tmp_path, words("Blue it is.")) as (switchboard, _):
        live = await switchboard.open("helper", by="ana")
        await said(switchboard, live.id, "My colour is blue")
        other = await fork(switchboard, live.id, None, "ana")
    async with board(tmp_path, words("Blue.")) as (switchboard, model):
        await said(switchboard, other.id, "Which one?")
        assert "My colour is blue" in texts(model.requests[0])


async def test_events_that_are_damaged_are_as_missing_in_the_fork(tmp_path: Path) -> None:
    async with board(tmp_path, words("One."), words("Two.")) as (switchboard, _):
        live = await switchboard.open("helper", by="ana")
        await said(switchboard, live.id, "First")
        await said(switchboard, live.id, "Second")
        id = live.id
    (log,) = (tmp_path / "home" / "sessions").glob("*.log")
    lines = log.read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b'"seq"', b'"sEq"')
    log.write_bytes(b"\n".join(lines))
    async with board(tmp_path) as (switchboard, _):
        other = await fork(switchboard, id, None, "ana")
        old, new = (list(switchboard.peek(each).records) for each in (id, other.id))
        assert any(isinstance(record, Gap) for record in old)
        assert [record if isinstance(record, Gap) else record.event for record in new] == [
            record if isinstance(record, Gap) else record.event for record in old
        ]
        assert any(isinstance(record, Envelope) and record.event == TextDelta("Two.") for record in new)


@pytest.mark.parametrize("at", [-1, 1000])
async def test_nothing_is_left_of_a_fork_that_was_refused(tmp_path: Path, at: int) -> None:
    async with board(tmp_path, words("One.")) as (switchboard, _):
        live = await switchboard.open("helper", by="ana")
        await said(switchboard, live.id, "First")
        with pytest.raises(NoSuchEvent, match="its last one is"):
            await fork(switchboard, live.id, at, "ana")
        assert len(list((tmp_path / "home" / "sessions").glob("*.log"))) == 1
