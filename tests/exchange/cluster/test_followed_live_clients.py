"""Clients in the middle of a turn whose session is at work here no more, and those of agents on another node."""

from __future__ import annotations

import asyncio

import pytest

from tests.exchange.lines.test_tryll import served
from tests.support import attached
from tests.support.cluster_world import ClusterWorld
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import echo as graph
from trunkline.base import shapes
from trunkline.base.attach import AttachHeader
from trunkline.core.events import UserMessage
from trunkline.exchange.attach import attach_socket
from trunkline.exchange.cluster.followed_live import FollowedLive
from trunkline.wires.agentproc.messages import TurnRequest
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.errors import TryllError

pytestmark = pytest.mark.process

submit_once = FollowedLive.submit_once


async def submitted_late(live: FollowedLive, message: UserMessage) -> int:
    """The turn is over when its number is known."""
    turn = await submit_once(live, message)
    await until(lambda: live.session.state.turns >= turn and not live.session.state.open_turns)
    return turn


async def test_a_bridge_hears_that_its_session_is_another_nodes(world: ClusterWorld) -> None:
    turn = shapes.encode(TurnRequest("say one; wait"))
    async with world.nodes("a") as (a,), attach_socket(a):
        live = await a.switchboard.open("helper", "s1")
        header = AttachHeader("agentproc", resume="s1", dialect="0.4", turn=turn)
        async with attached.client(a, header) as client:
            await until(lambda: live.session.turn == 1)
            await a.switchboard.abandon()
            while await client.more():
                pass
            assert client.ending is not None
            assert client.ending.exit == 1


async def test_a_game_hears_that_its_session_is_another_nodes(world: ClusterWorld) -> None:
    async with world.nodes("a") as (a,), served(a) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper", diagnostics=True)
            asking = asyncio.ensure_future(agent.ask("say one; wait"))
            await until(lambda: any(live.session.turn for live in a.switchboard.at_work))
            await a.switchboard.abandon()
            with pytest.raises(TryllError, match="closed before it had answered"):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await asking


@pytest.mark.parametrize("late", [False, True])
async def test_a_game_hears_every_word_of_an_agent_on_another_node(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    if late:
        monkeypatch.setattr(FollowedLive, "submit_once", submitted_late)
    world.pinned["helper"] = ("b",)
    async with world.nodes("a", "b") as (a, _), served(a) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            for number in range(10):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    assert (await agent.ask(f"say one{number}; say two; say three")).text == f"one{number}twothree"
