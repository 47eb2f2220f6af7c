"""What a session has at its disposal is there again when something is over: nothing is counted or kept for ever."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.tryll_served import Peer, Served, echo, served
from tests.support.tryll_voice import microphone
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.hearing.input import HostedVoiceInput
from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.storages import StringStorage
from trunkline.core.faults import NoLanguageModel
from trunkline.core.graph.hosting import StringStorageDescription
from trunkline.models.engines import LanguageEngine, Slot
from trunkline.models.mock_language import MockLanguage
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import encode
from trunkline.wires.tryll.serve import scheduler
from trunkline.wires.tryll.serve.session import ClientSession


@pytest.fixture
def session(server: Served, peer: Peer) -> ClientSession:
    """The session of the peer."""
    (connection,) = server.server.connections
    assert connection.session is not None
    return connection.session


def owed(session: ClientSession) -> tuple[int, int, int]:
    """Requests and bytes that are under way, and bytes that are kept."""
    return session._requests, session._bytes, session.kept.taken


async def test_messages_that_were_answered_are_not_under_way_any_more(
    peer: Peer, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "MAX_REQUEST_BYTES", 3000)
    agent = await peer.agent()
    kept = session.kept.taken
    for _ in range(10):
        peer.say(m.SendMessageRequest(3, agent, "x" * 1000))
        assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
    assert owed(session) == (0, 0, kept)


async def test_what_failed_to_be_made_or_was_destroyed_takes_no_room(peer: Peer, session: ClientSession) -> None:
    agents = [await peer.agent() for _ in range(2)]
    assert session.kept.taken > 0
    assert await peer.refused(m.CreateAgentRequest(3, echo(template="{{"), "any")) == 3003
    assert await peer.refused(m.CreateStringStorageRequest(4, "lines", (), "missing.txt")) == 7003
    assert await peer.refused(m.CreateEmbeddedStringStorageRequest(5, "lore", strings=("x",))) == 8003
    for agent in agents:
        await peer.ask(m.DestroyAgentRequest(6, agent), m.Ack)
    assert owed(session) == (0, 0, 0)


async def test_what_waits_in_line_counts_and_leaves_others_their_turn(
    peer: Peer, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    def create(self: Shelf, described: StringStorageDescription) -> StringStorage:
        seen.append((passes, session._bytes))
        return really(self, described)

    really = Shelf.create_strings
    monkeypatch.setattr(Shelf, "create_strings", create)
    requests = [m.CreateStringStorageRequest(3, f"lines {number}", ("x" * 100 * number,)) for number in range(1, 6)]
    counting = asyncio.create_task(count())
    peer.say(*requests)
    for _ in requests:
        await peer.get(m.CreateStringStorageResponse)
    counting.cancel()
    sizes = [len(encode(request)) for request in requests]
    assert [left for _, left in seen] == [sum(sizes[number:]) for number in range(5)]
    assert len({at for at, _ in seen}) == 5
    assert owed(session)[:2] == (0, 0)


async def test_an_error_names_its_request_or_else_its_agent(peer: Peer) -> None:
    for request_id, agent_id in ((0, 77), (5, 0)):
        error = await peer.ask(m.SendMessageRequest(request_id, 77, "hello"), m.ErrorResponse)
        assert (error.code, error.request_id, error.agent_id) == (3001, request_id, agent_id)


async def test_nothing_that_waits_is_begun_after_the_end(
    server: Served, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing, begun = asyncio.Event(), []

    async def change(self: GraphAgent, node_name: str, params: m.NodeParams) -> None:
        changing.set()
        await asyncio.Event().wait()

    def turn(self: GraphAgent, text: str, listener: Any) -> Any:
        begun.append(text)
        return really(self, text, listener)

    really = GraphAgent.turn
    monkeypatch.setattr(GraphAgent, "change", change)
    monkeypatch.setattr(GraphAgent, "turn", turn)
    agent = await peer.agent()
    peer.say(m.ChangeAgentParamRequest(3, agent, "say", m.GenerateParams()), m.SendMessageRequest(4, agent, "late"))
    peer.writer.write_eof()
    await changing.wait()
    assert await peer.hear() is None
    await until(lambda: not server.server.connections)
    assert begun == []


async def test_the_end_of_a_session_closes_its_voice_inputs(
    server: Served, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[HostedVoiceInput] = []
    monkeypatch.setattr(HostedVoiceInput, "close", lambda self: closed.append(self))
    await microphone(peer)
    await microphone(peer)
    peer.writer.write_eof()
    assert await peer.hear() is None
    assert len(closed) == 2


# What a session has of its host.


class Counted(MockLanguage):
    """A model that knows how many use it."""

    uses = 0

    def release(self, slot: Slot) -> None:
        self.uses -= 1


class Pool(ModelPool):
    """Lends one model; there is no other."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Counted("good")

    async def language(self, name: str, engine: int, guest: object = None) -> LanguageEngine:
        if name != "good":
            raise NoLanguageModel(f"There is no model `{name}`.")
        self.engine.uses += 1
        return self.engine


async def test_an_agent_that_could_not_be_made_lets_go_of_the_models_it_had(tmp_path: Path) -> None:
    pool = Pool()
    nodes = (
        m.NodeDescription("first", m.GenerateParams("good", default_exit="second")),
        m.NodeDescription("second", m.GenerateParams("bad")),
    )
    async with served(tmp_path, pool) as server, server.peer() as peer:
        assert await peer.refused(m.CreateAgentRequest(3, m.GraphDescription(nodes, "first"))) == 3003
        assert pool.engine.uses == 0


@pytest.mark.slow
async def test_a_session_that_is_closed_has_forgotten_its_storages(tmp_path: Path) -> None:
    host = LocalGraphHost(ModelPool())
    session = host.open_session()
    made = weakref.ref(await session.create_strings(StringStorageDescription("lines", ("x",))))
    gc.collect()
    assert made() is not None
    session.close()
    gc.collect()
    assert made() is None
    await host.close()
