"""A chat platform in a cluster: one node serves it, another takes over, and nothing is doubled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from tests.support.cluster_world import ClusterWorld
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.telegram_server import TelegramServer
from trunkline.chat.chat_session import ChatSession
from trunkline.chat.delivery.database import Fence
from trunkline.chat.delivery.shared import SharedChat
from trunkline.chat.turn_view import UNKNOWN_END
from trunkline.core.agent import Approve
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, StoreUnavailable
from trunkline.core.session import Session
from trunkline.exchange.api.app import application
from trunkline.exchange.cluster import places
from trunkline.exchange.cluster.followed_live import FollowedLive
from trunkline.exchange.cluster.wire_place import WirePlace
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import bridge
from trunkline.exchange.settings import WireSettings

pytestmark = pytest.mark.process


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


def says(server: TelegramServer, text: str) -> None:
    server.world.says(chat=7, sender=7, text=text)


async def heard(server: TelegramServer, *texts: str) -> None:
    """Wait until the chat has heard exactly these, in this order."""
    await server.until(lambda: [shown.text for shown in server.world.said(7)] == list(texts))


@asynccontextmanager
async def serving(node: Exchange, server: TelegramServer) -> AsyncIterator[None]:
    """A node that has the wire, for the duration of the block."""
    keys = {"allow": ["telegram:7"], "verbosity": "quiet", "token": server.token, "api_url": server.url}
    stop = asyncio.Event()
    line = bridge.service(node, WireSettings("telegram", ("helper",), keys))
    service = asyncio.create_task(line.run(stop, lambda: None))
    try:
        yield
    finally:
        stop.set()
        await service


def serves(node: Exchange) -> bool:
    assert node.cluster is not None
    return "telegram" in node.cluster.wires


async def metric(node: Exchange) -> str:
    """What a node tells of the platforms that it serves."""
    transport = httpx.ASGITransport(application(node))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4400") as client:
        text = (await client.get("/metrics")).text
    return next(line for line in text.splitlines() if line.startswith("trunkline_cluster_wire_served"))


async def test_one_of_the_nodes_serves_and_the_next_takes_over_when_it_ends(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.nodes("a", "b") as (a, b), AsyncExitStack() as second:
        async with serving(a, telegram):
            await until(lambda: serves(a))
            await second.enter_async_context(serving(b, telegram))
            says(telegram, "say one")
            await heard(telegram, "one")
            assert not serves(b)
            assert await metric(a) == 'trunkline_cluster_wire_served{wire="telegram"} 1'
        says(telegram, "say two")
        await heard(telegram, "one", "two")
        assert serves(b)
        assert not serves(a)
        # The chat is the same session, which is still the first node's.
        (row,) = await b.switchboard.rows()
        assert (await b.switchboard.find(row.id)).is_followed
        assert telegram.called("getUpdates")


async def test_a_node_that_is_drained_hands_the_platform_over(world: ClusterWorld, telegram: TelegramServer) -> None:
    async with world.nodes("a", "b") as (a, b), serving(a, telegram):
        await until(lambda: serves(a))
        async with serving(b, telegram):
            says(telegram, "say one")
            await heard(telegram, "one")
            assert a.cluster is not None
            await a.cluster.nodes.update(draining=True)
            await until(lambda: serves(b))
            says(telegram, "say two")
            await heard(telegram, "one", "two")


async def test_a_node_that_was_overtaken_answers_nothing_and_sends_nothing(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.nodes("a", "b") as (a, b), serving(a, telegram):
        says(telegram, "say one")
        await heard(telegram, "one")
        # It does not know that it lost its lease, as if it had been suspended.
        assert a.cluster is not None
        assert b.cluster is not None
        held = a.cluster.wires["telegram"]
        taken = await b.cluster.ownership.claim("wire/telegram", held, "b", b.cluster.me.run)
        assert taken is not None
        async with serving(b, telegram):
            # It introduces itself to the platform when the database is its own.
            await telegram.until(lambda: len(telegram.called("getMe")) == 2)
            says(telegram, "say two")
            await heard(telegram, "one", "two")
            await until(lambda: not serves(a))
            says(telegram, "say three")
            await heard(telegram, "one", "two", "three")
            assert world.agents["helper"].heard == ["say one", "say two", "say three"]


async def test_a_message_that_waited_on_a_node_that_died_is_answered_by_the_next(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.node("b") as b:
        async with world.node("a") as a, serving(a, telegram):
            says(telegram, "wait; say one")
            says(telegram, "say two")
            await until(lambda: world.agents["helper"].heard == ["wait; say one"])
        async with serving(b, telegram):
            # Nobody knows what became of the first one: the chat is told, and it is not asked again.
            await telegram.until(lambda: [each.text for each in telegram.world.said(7)][-1:] == ["two"])
            assert world.agents["helper"].heard == ["wait; say one", "say two"]


async def test_the_chat_hears_the_end_of_a_turn_whose_owner_is_another_node_that_dies(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.node("b") as b, AsyncExitStack() as owner:
        a = await owner.enter_async_context(world.node("a"))
        assert b.cluster is not None
        await b.cluster.nodes.look()
        async with serving(a, telegram):
            says(telegram, "say one")
            await heard(telegram, "one")
        async with serving(b, telegram):
            says(telegram, "wait; say two")
            await until(lambda: world.agents["helper"].heard == ["say one", "wait; say two"])
            (row,) = await b.switchboard.rows()
            assert (await b.switchboard.find(row.id)).is_followed
            # Nobody hears from it any more; what it does now is refused.
            assert a.cluster is not None
            a.cluster.nodes._lose("for a test")
            taken = await b.cluster.ownership.find(row.id)
            await b.cluster.ownership.claim(row.id, taken, "b", b.cluster.me.run)
            says(telegram, "say three")
            await telegram.until(lambda: [each.text for each in telegram.world.said(7)][-1:] == ["three"])
            texts = [each.text for each in telegram.world.said(7)]
            assert texts[-2:] == [UNKNOWN_END, "three"], texts
            assert world.agents["helper"].heard == ["say one", "wait; say two", "say three"]


async def test_the_chat_sees_all_of_a_turn_that_is_over_on_another_node_before_its_number_is_known(
    world: ClusterWorld, telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = FollowedLive.submit_once

    async def slowly(live: FollowedLive, message: UserMessage) -> int:
        turn = await ask(live, message)
        await until(lambda: live.session.state.turns >= turn and not live.session.state.open_turns)
        return turn

    monkeypatch.setattr(FollowedLive, "submit_once", slowly)
    async with world.nodes("a", "b") as (a, b):
        async with serving(a, telegram):
            says(telegram, "say one")
            await heard(telegram, "one")
        async with serving(b, telegram):
            says(telegram, "say two")
            await heard(telegram, "one", "two")


async def test_a_chat_goes_on_when_its_session_is_moved_away_in_the_middle_of_a_question(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.nodes("a", "b") as (a, b), serving(a, telegram):
        says(telegram, "say one; tool t1; say two")
        await telegram.until(lambda: any("t1" in each.text or each.buttons for each in telegram.world.said(7)))
        (live,) = a.switchboard.at_work
        await a.switchboard.move(live)
        # Both want it now, the other node and the chat, and one of them has it.
        moved = await b.switchboard.find(live.id)
        await until(lambda: bool(moved.session.waiting))
        moved.session.answer("t1", Approve(), "ana")
        await telegram.until(lambda: any("two" in each.text for each in telegram.world.said(7)))
        assert world.agents["helper"].ran[live.id, "t1"] == 1


async def test_a_platform_is_served_again_after_the_database_or_the_platform_was_away(
    world: ClusterWorld, telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, tries = SharedChat.opened, 0

    def away_at_first(url: str, platform: str, fence: Fence) -> SharedChat:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConfigError("The PostgreSQL database cannot be used.", retryable=True)
        return opened(url, platform, fence)

    monkeypatch.setattr(SharedChat, "opened", away_at_first)
    monkeypatch.setattr(bridge, "LONGEST_DELAY_SECONDS", 0.05)
    telegram.fail("getMe", 401, "Unauthorized")
    async with world.nodes("a") as (a,), serving(a, telegram):
        says(telegram, "say one")
        await heard(telegram, "one")
        assert tries == 3


async def test_a_wire_that_is_held_by_a_node_that_is_not_to_serve_it_is_let_go_of(world: ClusterWorld) -> None:
    async with world.nodes("a", "b") as (a, b):
        assert a.cluster is not None
        assert b.cluster is not None
        assert await a.cluster.serve("telegram") is not None
        await a.cluster.nodes.update(draining=True)
        stop = asyncio.Event()
        standing_by = asyncio.create_task(WirePlace(a.cluster, "telegram").taken(stop))
        await until(lambda: not serves(a))
        # Its record follows.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await b.cluster.serve("telegram") is None:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)
        stop.set()
        assert await standing_by is None


async def test_a_message_waits_while_its_session_moves(
    world: ClusterWorld, telegram: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, refused = ChatSession.opened, 0

    async def counted(session: ChatSession) -> Session:
        nonlocal refused
        try:
            return await opened(session)
        except StoreUnavailable:
            refused += 1
            raise

    monkeypatch.setattr(ChatSession, "opened", counted)
    monkeypatch.setattr(places, "MOST_TRIES", 1)
    async with world.node("b") as b, AsyncExitStack() as owner:
        a = await owner.enter_async_context(world.node("a"))
        assert a.cluster is not None
        assert b.cluster is not None
        await b.cluster.nodes.look()
        async with serving(a, telegram):
            says(telegram, "say one")
            await heard(telegram, "one")
        async with serving(b, telegram):
            # It counts as alive, and does not hear what it is asked.
            await a.cluster.calls.close()
            says(telegram, "say two")
            await until(lambda: refused >= 2)
            await owner.aclose()
            await heard(telegram, "one", "two")
            assert world.agents["helper"].heard == ["say one", "say two"]


async def test_a_message_that_waited_in_a_session_whose_owner_died_does_not_keep_the_chat_waiting(
    world: ClusterWorld, telegram: TelegramServer
) -> None:
    async with world.node("b") as b, AsyncExitStack() as owner:
        a = await owner.enter_async_context(world.node("a"))
        assert a.cluster is not None
        assert b.cluster is not None
        await b.cluster.nodes.look()
        async with serving(a, telegram):
            says(telegram, "say one")
            await heard(telegram, "one")
        async with serving(b, telegram):
            (row,) = await b.switchboard.rows()
            theirs = await b.switchboard.find(row.id)
            await b.switchboard.submit(theirs, UserMessage("wait; say of others", sender="ana"))
            await until(lambda: world.agents["helper"].heard == ["say one", "wait; say of others"])
            says(telegram, "say two")
            await until(lambda: bool(a.switchboard.live(row.id)) and _queued(a, row.id) == 1)
            a.cluster.nodes._lose("for a test")
            taken = await b.cluster.ownership.find(row.id)
            await b.cluster.ownership.claim(row.id, taken, "b", b.cluster.me.run)
            says(telegram, "say three")
            await telegram.until(lambda: [each.text for each in telegram.world.said(7)][-1:] == ["three"])
            assert world.agents["helper"].heard == ["say one", "wait; say of others", "say three"]
            assert UNKNOWN_END in [each.text for each in telegram.world.said(7)]


def _queued(node: Exchange, session: str) -> int:
    live = node.switchboard.live(session)
    return len(live.session._turns.queue) if live is not None else 0
