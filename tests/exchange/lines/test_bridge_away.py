"""What becomes of an answer when its bridge ends, and comes back: with the exchange, or without it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.exchange.lines.test_bridge import served, until
from tests.support.attached import settings
from tests.support.chat_platform import ME, MemoryPlatform
from tests.support.exchange_world import CommandedAgent
from trunkline.chat.platform import NotNow
from trunkline.core.agent import Agent, Approve
from trunkline.core.events import Envelope, TurnEnded, UserMessage
from trunkline.core.turns import State
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import bridge as line
from trunkline.exchange.settings import AgentSettings, WireSettings


@asynccontextmanager
async def exchange_with(home: Path, agent: CommandedAgent) -> AsyncIterator[Exchange]:
    async def make(name: str, options: dict[str, object]) -> Agent:
        return agent

    (home / "exchange").mkdir(parents=True, exist_ok=True)
    told = settings(home, a=AgentSettings("", "commanded", str(home), allow=()))
    async with Exchange.opened(told, make=make) as running:
        yield running


async def asked(running: Exchange, platform: MemoryPlatform) -> None:
    """Wait until a question stands in the chat and in the rows."""
    await until(lambda: platform.sees("/approve"))
    await running.switchboard.written()


async def states(running: Exchange) -> list[str]:
    await running.switchboard.written()
    return [each.state for each in await running.switchboard.approvals.found()]


def count(platform: MemoryPlatform, text: str) -> int:
    return sum(each.count(text) for each in platform.shown())


def ends(running: Exchange, session: str) -> list[str]:
    found = [each.event for each in running.switchboard.peek(session).records if isinstance(each, Envelope)]
    return [each.outcome for each in found if isinstance(each, TurnEnded)]


async def test_a_question_outlives_a_restart_in_good_order_and_is_asked_again_in_its_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path, agent) as running, served(running, monkeypatch, platform):
        platform.says("say before; tool t1; say after", at=None)
        await asked(running, platform)
    assert platform.sees("No answer yet: the bridge was stopped. It still waits")
    assert not platform.sees("/approve")
    async with exchange_with(tmp_path, agent) as running:
        assert await states(running) == ["pending"]
        async with served(running, monkeypatch, platform):
            await asked(running, platform)
            assert await states(running) == ["pending"]
            platform.presses("Approve")
            await until(lambda: platform.sees("after"))
            await until(lambda: not running.switchboard.at_work[0].session.turn)
            assert await states(running) == ["approved"]
            (row,) = await running.switchboard.rows()
            assert ends(running, row.id) == ["success"]
            # The next message is the next turn.
            platform.says("say more", at=None)
            await until(lambda: platform.sees("more"))
    assert [count(platform, each) for each in ("before", "after", "more")] == [1, 1, 1]
    assert list(agent.ran.values()) == [1]
    assert not platform.sees("interrupted")


async def test_a_question_outlives_kill_and_is_asked_again_in_its_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path / "one", agent) as running, served(running, monkeypatch, platform):
        platform.says("say before; tool t1; say after", at=None)
        await asked(running, platform)
        # Nothing more is written: this is what a process that dies now leaves.
        await asyncio.to_thread(shutil.copytree, tmp_path / "one", tmp_path / "two")
    again = MemoryPlatform()
    async with exchange_with(tmp_path / "two", agent) as running, served(running, monkeypatch, again):
        await asked(running, again)
        again.presses("Approve")
        await until(lambda: again.sees("after"))
        assert await states(running) == ["approved"]
    assert count(again, "before") == 0
    assert not again.sees("interrupted")


async def test_what_was_answered_while_the_bridge_was_away_is_told_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path, agent) as running:
        async with served(running, monkeypatch, platform):
            platform.says("say before; tool t1; say between; tool t2; say after", at=None)
            await asked(running, platform)
        live = running.switchboard.at_work[0]
        for _ in range(2):
            await until(lambda: bool(live.session.waiting))
            await live.written()
            (row,) = await running.switchboard.approvals.found("pending")
            await live.decide(row, Approve(), "ana")
        await live.session.at_rest()
        async with served(running, monkeypatch, platform):
            await until(lambda: platform.sees("after"))
            platform.says("say more", at=None)
            await until(lambda: platform.sees("more"))
    assert [count(platform, each) for each in ("before", "between", "after", "more")] == [1, 1, 1, 1]
    # Neither of them is asked in the chat any more.
    assert not platform.sees("/approve")


async def test_an_answer_goes_on_when_its_wire_is_taken_away_and_the_rest_is_shown_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path, agent) as running:
        async with served(running, monkeypatch, platform):
            platform.says("say first; wait; say second", at=None)
            await until(lambda: platform.sees("first"))
        assert platform.sees("(the bridge was stopped; the rest follows when the bridge is back)")
        live = running.switchboard.at_work[0]
        assert live.session.status is State.RUNNING
        async with served(running, monkeypatch, platform):
            await until(lambda: live.clients > 0)
            agent.gate.set()
            await until(lambda: platform.sees("second"))
            await live.session.at_rest()
        assert ends(running, live.id) == ["success"]
    assert [count(platform, each) for each in ("first", "second", "stopped")] == [1, 1, 1]


async def test_an_answer_that_the_exchange_had_to_end_is_told_as_that_after_the_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path, agent) as running, served(running, monkeypatch, platform):
        platform.says("say first; wait; say second", at=None)
        await until(lambda: platform.sees("first"))
    async with exchange_with(tmp_path, agent) as running, served(running, monkeypatch, platform):
        await until(lambda: platform.sees("(stopped while the bridge was away; `/retry 1` asks again)"))
        (row,) = await running.switchboard.rows()
        assert ends(running, row.id) == ["cancelled"]
        agent.gate.set()
        platform.says("/retry 1", at=None)
        await until(lambda: platform.sees("second"))


async def test_a_message_that_waits_behind_others_is_answered_in_its_chat_when_the_bridge_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path, agent) as running:
        async with served(running, monkeypatch, platform):
            platform.says("say hello", at=None)
            await until(lambda: platform.sees("hello"))
            live = running.switchboard.at_work[0]
            await running.switchboard.submit(live, UserMessage("wait; say for others", sender="ana"))
            await until(lambda: bool(live.session.turn))
            turns = live.session._turns
            platform.says("say for the chat", at=None)
            await until(lambda: turns.latest == 3)
        async with served(running, monkeypatch, platform):
            await until(lambda: live.clients > 0)
            agent.gate.set()
            await until(lambda: platform.sees("for the chat"))
            assert not platform.sees("for others")
            assert not platform.sees("interrupted")


async def test_a_message_whose_process_died_over_it_is_not_run_again_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, platform = CommandedAgent(), MemoryPlatform()
    async with exchange_with(tmp_path / "one", agent) as running, served(running, monkeypatch, platform):
        platform.says("say first; wait; say second", at=None)
        await until(lambda: platform.sees("first"))
        await running.switchboard.written()
        await asyncio.to_thread(shutil.copytree, tmp_path / "one", tmp_path / "two")
    again = MemoryPlatform()
    async with exchange_with(tmp_path / "two", agent) as running, served(running, monkeypatch, again):
        await until(lambda: again.sees("The bridge was interrupted before this was answered"))
        agent.gate.set()
        again.presses("Ask again")
        await until(lambda: len(agent.heard) == 2)
    assert agent.heard == ["say first; wait; say second"] * 2


async def test_a_bridge_in_a_hurry_lets_go_of_its_platform_so_that_the_next_one_can_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreachable(MemoryPlatform):
        async def send(self, *args: object, **more: object) -> str:
            raise NotNow("throttled", 1000.0)

    agent = CommandedAgent()
    async with exchange_with(tmp_path, agent) as running:
        monkeypatch.setattr(line, "DRAIN_SECONDS", 1000.0)
        platform = Unreachable()
        platform.name = "telegram"
        monkeypatch.setattr(line, "made", lambda *_: platform)
        wire = WireSettings("telegram", ("a",), {"allow": [f"telegram:{ME}"], "token_env": "T"})
        reachable, stop = asyncio.Event(), asyncio.Event()
        running_line = asyncio.create_task(line.service(running, wire).run(stop, reachable.set))
        await until(reachable.is_set)
        platform.says("say hello", at=None)
        await until(lambda: bool(running.switchboard.at_work and running.switchboard.at_work[0].session.state.turns))
        await running.switchboard.at_work[0].session.at_rest()
        stop.set()
        await until(lambda: not running.switchboard.at_work[0].clients)
        running_line.cancel()
        await asyncio.wait({running_line})
        assert platform.closed
        async with served(running, monkeypatch, MemoryPlatform()) as again:
            await until(lambda: again.sees("hello"))
