"""Games whose graphs talk to agents of the exchange."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.support.attached import asking, client, echo, exchange, recorded
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import echo as graph
from trunkline.base.attach import AttachHeader
from trunkline.core.agent import Approve
from trunkline.core.faults import ConfigError
from trunkline.exchange.approvals import Approval
from trunkline.exchange.budgets import SessionMeter
from trunkline.exchange.config_schema import WIRES
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines import tryll
from trunkline.exchange.settings import WireSettings
from trunkline.wires.tryll.drive import Tryll
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import ConfigureSessionRequest


@asynccontextmanager
async def served(running: Exchange, agents: tuple[str, ...] | None = None, **keys: object) -> AsyncIterator[int]:
    service = tryll.service(running, WireSettings("tryll", agents, {"listen": "127.0.0.1:0", **keys}))
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(service.run(stop, reachable.set))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reachable.wait()
        yield int(service.address.rpartition(":")[2])
    finally:
        stop.set()
        await task


async def test_an_agents_name_in_a_graph_opens_a_session_that_others_can_join(tmp_path: Path) -> None:
    async with exchange(tmp_path, helper=echo(tmp_path)) as running, served(running) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            assert "Anybody?" in (await agent.ask("Anybody?")).text
            (row,) = await running.switchboard.rows()
            assert (row.agent, row.by_person) == ("helper", "tryll")
            async with client(running, AttachHeader("jsonstream", resume=row.id)) as host:
                await host.until("ready")
                assert "Again" in (await agent.ask("Again")).text
                assert (await host.until("stream_end"))[1]["message"] == "tryll: Again"
                host.send(type="message", msg_id="m1", input="Me, too")
                await host.until("stream_end")
            live = running.switchboard.live(row.id)
            assert live is not None
            assert live.clients
        async with asyncio.timeout(PATIENCE_SECONDS):
            while live.clients:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0)
        assert live.session.state.turns == 3


async def test_a_session_that_was_removed_meanwhile_fails_the_turn_and_says_so(tmp_path: Path) -> None:
    async with exchange(tmp_path, helper=echo(tmp_path)) as running, served(running) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper", diagnostics=True)
            await agent.ask("Anybody?")
            (row,) = await running.switchboard.rows()
            await running.switchboard.remove(row.id)
            with pytest.raises(TryllError, match=r"The session was removed\."):
                await agent.ask("Still there?")
            assert await running.switchboard.rows() == []


async def test_what_its_agent_asks_is_answered_by_somebody_else(tmp_path: Path) -> None:
    async with exchange(tmp_path, helper=asking(tmp_path)) as running, served(running) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            asked = asyncio.create_task(agent.ask("Go"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (rows := await running.switchboard.approvals.found("pending")):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0)
            live = await running.switchboard.find(rows[0].session)
            await live.decide(rows[0], Approve(), "ana")
            assert "after" in (await asked).text


async def test_what_is_asked_outlives_the_server_but_not_a_game_that_cancels(tmp_path: Path) -> None:
    async with exchange(tmp_path, helper=asking(tmp_path)) as running:
        board = running.switchboard

        async def asked() -> Approval:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (rows := await board.approvals.found("pending")):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0)
            return rows[0]

        async with AsyncExitStack() as server:
            port = await server.enter_async_context(served(running))
            async with Tryll("127.0.0.1", port) as game:
                agent = await game.create_agent(graph(), default_model="agent:helper")
                first = asyncio.create_task(agent.ask("Go"))
                await asked()
                first.cancel()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while await board.approvals.found("pending"):  # noqa: ASYNC110  (nobody tells)
                        await asyncio.sleep(0)
                agent = await game.create_agent(graph(), default_model="agent:helper")
                second = asyncio.create_task(agent.ask("Go"))
                await asked()
                await server.aclose()
                await asyncio.wait({first, second})
                assert second.result().cancelled
        (waiting,) = await board.approvals.found("pending")
        live = await board.find(waiting.session)
        await live.decide(waiting, Approve(), "ana")
        await live.session.at_rest()
        assert live.session.state.turns == 1


async def test_a_turn_of_a_game_is_known_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dies(*_: object) -> None:
        """The process does not live to write that it has begun."""

    monkeypatch.setattr(SessionMeter, "turn_began", dies)
    async with exchange(tmp_path, helper=asking(tmp_path)) as running, served(running) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            asked = asyncio.create_task(agent.ask("Go"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (rows := await running.switchboard.approvals.found("pending")):  # noqa: ASYNC110  (nobody tells)
                    await asyncio.sleep(0)
            assert await running.switchboard._tallies.uncounted() == [(rows[0].session, "helper")]
            await (await running.switchboard.find(rows[0].session)).decide(rows[0], Approve(), "ana")
            await asked


async def test_a_session_that_was_recorded_elsewhere_is_played_in_a_game(tmp_path: Path) -> None:
    async with exchange(tmp_path, helper=recorded(tmp_path)) as running, served(running) as port:
        async with Tryll("127.0.0.1", port) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            answer = (await agent.ask("Anything")).text
    assert answer.split() == ["before", "after", "{{it}}"]


async def test_only_the_agents_that_the_file_names_are_there(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running, served(running, ("a",)) as port:
        async with Tryll("127.0.0.1", port) as game:
            names = {each.name for each in await game.list_models()}
            assert {name for name in names if name.startswith("agent:")} == {"agent:a"}
            # Nor is there the server's own echo, which would have no session here.
            for other in ("agent:b", "agent:echo"):
                with pytest.raises(TryllError, match=other):
                    await game.create_agent(graph(), default_model=other)


async def test_an_address_that_is_taken_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running, served(running) as port:
        service = tryll.service(running, WireSettings("tryll", None, {"listen": f"127.0.0.1:{port}"}))
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            await service.run(asyncio.Event(), lambda: None)


async def test_a_client_without_the_token_that_the_file_names_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAME_TOKEN", "open sesame")
    async with (
        exchange(tmp_path, helper=echo(tmp_path)) as running,
        served(running, token_env="GAME_TOKEN") as port,
    ):
        with pytest.raises(TryllError):
            async with Tryll("127.0.0.1", port) as game:
                await game.create_agent(graph(), default_model="agent:helper")
        async with Tryll("127.0.0.1", port, config=ConfigureSessionRequest(token="open sesame")) as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            assert "Anybody?" in (await agent.ask("Anybody?")).text


@pytest.mark.parametrize(("keys", "words"), [({}, "public = true"), ({"public": True}, "needs a token")])
async def test_other_machines_are_let_in_only_if_the_file_says_so_and_with_a_token(
    tmp_path: Path, keys: dict[str, object], words: str
) -> None:
    async with exchange(tmp_path, helper=echo(tmp_path)) as running:
        with pytest.raises(ConfigError, match=words):
            tryll.service(running, WireSettings("tryll", None, {"listen": "0.0.0.0:0", **keys}))


async def test_games_may_come_by_websocket(tmp_path: Path, unused_tcp_port: int) -> None:
    where = f"127.0.0.1:{unused_tcp_port}"
    async with exchange(tmp_path, helper=echo(tmp_path)) as running, served(running, ws=where):
        async with Tryll(f"ws://{where}") as game:
            agent = await game.create_agent(graph(), default_model="agent:helper")
            assert "Anybody?" in (await agent.ask("Anybody?")).text


async def test_a_port_for_websockets_that_the_file_names_is_not_left_for_another(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    where = f"127.0.0.1:{unused_tcp_port}"
    async with exchange(tmp_path, helper=echo(tmp_path)) as running, served(running, ws=where):
        service = tryll.service(running, WireSettings("tryll", None, {"listen": "127.0.0.1:0", "ws": where}))
        with pytest.raises(ConfigError, match=f"cannot listen for WebSockets on `{where}`"):
            await service.run(asyncio.Event(), lambda: None)


async def test_websockets_need_what_the_other_door_needs(tmp_path: Path) -> None:
    async with exchange(tmp_path) as running:
        with pytest.raises(ConfigError, match=r"`wires.tryll.ws` lets other machines connect to `0.0.0.0`"):
            tryll.service(running, WireSettings("tryll", None, {"ws": "0.0.0.0:1"}))
        with pytest.raises(ConfigError, match="needs a token"):
            tryll.service(running, WireSettings("tryll", None, {"ws": "0.0.0.0:1", "public": True}))


async def test_the_file_may_limit_what_each_game_takes(tmp_path: Path) -> None:
    limits: dict[str, object] = {"max_clients": 1, "max_agents": 1, "turns_per_minute": 1}
    assert all(key in WIRES["tryll"] for key in limits)
    async with (
        exchange(tmp_path, helper=echo(tmp_path)) as running,
        served(running, None, **limits) as port,
        Tryll("127.0.0.1", port, reconnect=None) as game,
    ):
        with pytest.raises(TryllError, match="at most 1 connections"):
            await Tryll("127.0.0.1", port, reconnect=None).connect()
        agent = await game.create_agent(graph(), default_model="agent:helper")
        with pytest.raises(TryllError, match="at most 1 agents"):
            await game.create_agent(graph(), default_model="agent:helper")
        assert "Anybody?" in (await agent.ask("Anybody?")).text
        with pytest.raises(TryllError, match="at most 1 turns"):
            await agent.ask("Anybody?")
