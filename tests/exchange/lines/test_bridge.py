"""Chats whose sessions are those of the exchange."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.attached import asking, client, echo, exchange, recorded
from tests.support.chat_platform import ME, MemoryPlatform
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.attach import AttachHeader
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import Envelope, StopAsked, ToolAnswered, TurnEnded, TurnStarted, UserMessage
from trunkline.core.faults import ConfigError
from trunkline.exchange.budgets import SessionMeter
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import bridge
from trunkline.exchange.settings import WireSettings


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def served(
    running: Exchange, monkeypatch: pytest.MonkeyPatch, platform: MemoryPlatform, *people: str
) -> AsyncIterator[MemoryPlatform]:
    platform.name = "telegram"
    monkeypatch.setattr(bridge, "made", lambda *_: platform)
    allow = [f"telegram:{id}" for id in people or (ME,)]
    wire = WireSettings("telegram", ("a",), {"allow": allow, "verbosity": "quiet", "token_env": "T"})
    service = bridge.service(running, wire)
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(service.run(stop, reachable.set))
    try:
        await until(reachable.is_set)
        yield platform
    finally:
        stop.set()
        await task


async def test_a_chat_is_a_session_of_the_exchange_and_goes_on_after_the_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Hello", at=None)
            await until(lambda: platform.sees("Hello"))
            (row,) = await running.switchboard.rows()
            assert row.agent == "a"
            assert row.by_person.startswith("telegram-")
            async with client(running, AttachHeader("jsonstream", resume=row.id)) as host:
                await host.until("ready")
                platform.says("Again", at=None)
                await host.until("stream_end")
                host.send(type="message", msg_id="m1", input="Not for the chat")
                await host.until("stream_end")
            await until(lambda: platform.sees("Again"))
            assert not platform.sees("Not for the chat")
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Once more", at=None, id="later")
            await until(lambda: platform.sees("Once more"))
            assert len(await running.switchboard.rows()) == 1


async def test_what_is_asked_is_asked_in_the_chat_and_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Go", at=None)
            await until(lambda: platform.sees("make"))
            await running.switchboard.written()
            (row,) = await running.switchboard.approvals.found("pending")
            # Only the exchange can make it expire.
            assert not platform.sees("without an answer")
            platform.presses("Approve")
            await until(lambda: platform.sees("after"))
            await running.switchboard.written()
            found = await running.switchboard.approvals.get(row.id)
            assert found is not None
            assert (found.state, found.decided_by) == ("approved", f"telegram:{ME}")


async def test_who_was_first_elsewhere_is_shown_in_the_chat_and_told_to_whoever_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Go", at=None)
            await until(lambda: platform.sees("/approve"))
            deny, message = platform.last().buttons[-1].data, platform.last().id
            (live,) = running.switchboard.at_work
            await live.written()
            (row,) = await running.switchboard.approvals.found("pending")
            await live.decide(row, Approve(), "ana")
            await until(lambda: platform.sees("Approved by `ana`."))
            platform.presses_data(deny, message)
            await until(lambda: platform.sees("This question is over: approved by `ana`."))


async def test_a_turn_of_a_chat_is_known_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dies(*_: object) -> None:
        """The process does not live to write that it has begun."""

    monkeypatch.setattr(SessionMeter, "turn_began", dies)
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Go", at=None)
            await until(lambda: platform.sees("make"))
            (row,) = await running.switchboard.rows()
            assert await running.switchboard._tallies.uncounted() == [(row.id, "a")]


async def test_a_chat_whose_session_was_removed_goes_on_in_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Hello", at=None)
            await until(lambda: platform.sees("Hello"))
            (row,) = await running.switchboard.rows()
            await running.switchboard.remove(row.id)
            platform.says("Still there?", at=None, id="later")
            await until(lambda: platform.sees("Still there?"))
            assert (await running.switchboard.rows())[0].id != row.id


async def test_a_session_that_was_recorded_elsewhere_is_played_in_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(tmp_path, a=recorded(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Anything", at=None)
            await until(lambda: platform.sees("after {{it}}"))
            assert platform.sees("before")


def asked_in(platform: MemoryPlatform) -> set[str]:
    """The numbers of the questions."""
    return set(re.findall(r"Approval (\d+)", "\n".join(platform.shown())))


async def test_who_writes_answers_and_stops_in_a_chat_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, ben = "1001", "1002"
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform(), ana, ben) as platform:
            platform.says("Go", at=None, sender=ana)
            await until(lambda: platform.sees("make"))
            (number,) = asked_in(platform)
            platform.says(f"/deny {number}", at=None, sender=ben, id="no")
            await until(lambda: platform.sees("after"))
            platform.says("Once more", at=None, sender=ben, id="again")
            await until(lambda: len(asked_in(platform)) == 2)
            platform.says("/stop", at=None, sender=ana, id="stop")
            await until(lambda: platform.sees("stopped"))
            (row,) = await running.switchboard.rows()
            # The chat is told before the turn has ended, and only then is it counted.
            live = await running.switchboard.find(row.id)
            await live.session.at_rest()
            await live.written()
        events = [each.event for each in running.switchboard.peek(row.id).records if isinstance(each, Envelope)]
        assert [each.message.sender for each in events if isinstance(each, TurnStarted)] == [
            f"telegram:{ana}",
            f"telegram:{ben}",
        ]
        assert [each.by for each in events if isinstance(each, ToolAnswered)] == [f"telegram:{ben}"]
        assert [each.by for each in events if isinstance(each, StopAsked)] == [f"telegram:{ana}"]
        assert {each["person"] for each in await running.budgets.usage("person")} == {
            f"telegram:{ana}",
            f"telegram:{ben}",
        }


async def test_a_stop_in_a_chat_withdraws_its_own_message_and_leaves_others_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with exchange(tmp_path, a=asking(tmp_path)) as running:
        async with served(running, monkeypatch, MemoryPlatform()) as platform:
            platform.says("Go", at=None)
            await until(lambda: bool(asked_in(platform)))
            (row,) = await running.switchboard.rows()
            live = await running.switchboard.find(row.id)
            live.session.stop("cleo")
            await live.session.at_rest()
            theirs = await running.switchboard.submit(live, UserMessage("Theirs", sender="cleo"))
            await until(lambda: bool(live.session.waiting))
            platform.says("Mine", at=None, id="mine")
            await until(lambda: live.session.latest > theirs)
            platform.says("/stop", at=None, id="stop")
            await until(lambda: live.session.turn_of("mine") > 0 and bool(_withdrawn(running, row.id)))
            assert live.session.turn == theirs
            live.session.answer(live.session.waiting[0].call_id, Deny("no"), "cleo")
            await live.session.at_rest()
        ends = [each.event for each in running.switchboard.peek(row.id).records if isinstance(each, Envelope)]
        outcomes = [each.outcome for each in ends if isinstance(each, TurnEnded)]
        assert outcomes == ["cancelled", "success", "cancelled"]


def _withdrawn(running: Exchange, session: str) -> list[str]:
    found = [each.event for each in running.switchboard.peek(session).records if isinstance(each, Envelope)]
    return [id for event in found if isinstance(event, StopAsked) for id in event.dropped]


async def test_without_an_agent_there_is_nobody_to_talk_to(tmp_path: Path) -> None:
    async with exchange(tmp_path) as running:
        with pytest.raises(ConfigError, match="no agent"):
            bridge.service(running, WireSettings("telegram"))
