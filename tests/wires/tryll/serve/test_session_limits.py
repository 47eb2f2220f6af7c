"""Limits that whoever runs a server sets for its clients."""

from __future__ import annotations

from pathlib import Path

from tests.support.loop import until
from tests.support.tryll_served import Served, echo, served
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.serve.figures import ServerFigures


async def test_a_client_too_many_is_told_so_and_closed_and_one_that_leaves_makes_room(tmp_path: Path) -> None:
    async with served(tmp_path, max_clients=1) as server:
        server.server.figures = ServerFigures()
        async with server.peer() as first:
            async with server.peer(configured=False) as second:
                refused = await second.get(m.ErrorResponse)
                assert refused.code == 2001
                assert "at most 1 connections" in refused.message
                assert await second.hear() is None
                # Its connection is still there, and it is nobody's session.
                assert len(server.server.connections) == 2
                assert server.server.health(0).sessions == 1
            # The refused one took nobody's place, and neither does it now that it is gone.
            assert server.server.clients == 1
            first.say(m.SendMessageRequest(3, await first.agent(), "still here"))
            assert (await first.turn())[1].status == m.TurnStatus.SUCCESS
            assert server.server.figures.refused["clients"] == 1
        await until(lambda: server.server.clients == 0)
        async with server.peer() as third:
            await third.ask(m.HealthRequest(4), m.HealthResponse)


async def test_clients_that_have_not_said_the_token_take_nobodys_place(tmp_path: Path) -> None:
    async with served(tmp_path, max_clients=1, token="right") as server, server.peer(configured=False) as stranger:
        await stranger.ask(m.HealthRequest(4), m.HealthResponse)
        async with server.peer(configured=False) as first, server.peer(configured=False) as second:
            await first.configure(token="right")
            # Once more is not one more.
            await first.configure(token="right")
            assert server.server.clients == 1
            second.say(m.ConfigureSessionRequest(7, token="right"))
            refused = await second.get(m.ErrorResponse)
            assert (refused.request_id, refused.code) == (7, 2001)
            assert "at most 1 connections" in refused.message
            assert await second.hear() is None
        await until(lambda: server.server.clients == 0)


async def test_with_a_token_a_session_that_nobody_configures_ends(tmp_path: Path) -> None:
    async with served(tmp_path, frame_seconds=0.1, token="right") as server:
        server.server.figures = ServerFigures()
        async with server.peer(configured=False) as stranger:
            refused = await stranger.get(m.ErrorResponse)
            assert (refused.code, refused.message) == (
                2002, "The session was not configured, with the token, within 0.1 s."
            )  # fmt: skip
            assert await stranger.hear() is None
        assert server.server.figures.refused["token"] == 1


async def test_a_session_that_is_configured_or_needs_no_token_stays(tmp_path: Path) -> None:
    def timers(server: Served) -> list[object]:
        return [connection._deadline for connection in server.server.connections]

    async with served(tmp_path, token="right") as server, server.peer(configured=False) as peer:
        assert timers(server) != [None]
        await peer.configure(token="right")
        assert timers(server) == [None]
    async with served(tmp_path) as server, server.peer(configured=False):
        assert timers(server) == [None]


async def test_a_connection_has_so_many_agents_at_once_and_stays_connected(tmp_path: Path) -> None:
    async with served(tmp_path, max_agents=2) as server, server.peer() as peer:
        first, _ = await peer.agent(), await peer.agent()
        peer.say(m.CreateAgentRequest(5, echo(), "any"))
        refused = await peer.get(m.ErrorResponse)
        assert (refused.request_id, refused.code) == (5, 3003)
        assert refused.message == "A session has at most 2 agents."
        await peer.ask(m.DestroyAgentRequest(6, first), m.Ack)
        await peer.agent()


async def test_a_connection_has_so_many_turns_in_a_minute_and_stays_connected(tmp_path: Path) -> None:
    async with served(tmp_path, turns_per_minute=2) as server, server.peer() as peer, server.peer() as other:
        agent = await peer.agent()
        for _ in range(2):
            peer.say(m.SendMessageRequest(3, agent, "x"))
            assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
        peer.say(m.SendMessageRequest(7, agent, "x"))
        refused = await peer.get(m.ErrorResponse)
        assert (refused.request_id, refused.code) == (7, 3004)
        assert "A connection has at most 2 turns in a minute: the next one in " in refused.message
        await peer.ask(m.HealthRequest(8), m.HealthResponse)
        # Each connection has its own.
        other.say(m.SendMessageRequest(3, await other.agent(), "x"))
        assert (await other.turn())[1].status == m.TurnStatus.SUCCESS


async def test_a_message_that_waits_for_a_change_is_one_turn(tmp_path: Path) -> None:
    async with served(tmp_path, turns_per_minute=2) as server, server.peer() as peer:
        agent = await peer.agent()
        peer.say(
            m.ChangeAgentParamRequest(5, agent, "say", m.GenerateParams(stream=False)),
            m.SendMessageRequest(6, agent, "one"),
        )
        await peer.get(m.Ack)
        assert (await peer.turn())[1].request_id == 6
        peer.say(m.SendMessageRequest(7, agent, "two"))
        assert (await peer.turn())[1].request_id == 7
        assert await peer.refused(m.SendMessageRequest(8, agent, "three")) == 3004
