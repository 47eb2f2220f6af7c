"""What the Tryll client remembers of a conversation, and what becomes of that when the connection was lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_voice import FakeVoice, FakeVoices
from tests.support.loop import until
from tests.support.tryll_served import Served, served
from tests.support.tryll_stub import TryllStub
from trunkline.agents.graph.pool import ModelPool
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Reconnect, RemoteAgent, Tryll
from trunkline.wires.tryll.drive.memory import REMEMBERED, Memory
from trunkline.wires.tryll.errors import TryllError

QUICK = Reconnect(attempts=3, first_seconds=0.01)
GRAPH = m.GraphDescription((m.NodeDescription("answer", m.GenerateParams(stream=True)),), "answer")


@pytest.fixture
async def stub() -> AsyncIterator[TryllStub]:
    async with TryllStub() as server:
        yield server


def test_the_end_of_a_conversation_is_remembered_in_whole_exchanges() -> None:
    memory = Memory()
    memory.add("a" * 100_000, "b" * 100_000)
    memory.add("c" * 40_000, "d" * 40_000)
    assert [(entry.role, len(entry.text)) for entry in memory.entries] == [("user", 40_000), ("assistant", 40_000)]
    # One that no frame may carry is left out alone.
    memory.add("e", "f" * REMEMBERED)
    memory.add("g", "")
    assert len(memory.entries) == 2
    memory.begin([*memory.entries, *(m.HistoryEntry(role, "x" * 60_000) for role in ("user", "assistant") * 2)])
    assert [len(entry.text) for entry in memory.entries] == [60_000] * 4


async def test_what_was_too_long_to_be_remembered_does_not_stop_the_client(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(GRAPH, default_model="mock")
        for message in ("x" * 100_000, "\N{GRINNING FACE}" * 40_000):
            await agent.ask(message)
        await _dropped(server, tryll)
        await agent.ask("hello")
        assert [len(entry.text) for entry in await agent.history()] == [40_000, 40_010, 5, 15]


@pytest.mark.parametrize("can", [True, False])
async def test_an_agent_whose_conversation_is_not_taken_back_goes_on_and_tells(stub: TryllStub, can: bool) -> None:
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(GRAPH)
        heard: list[int] = []
        agent.on_forgotten(lambda error: heard.append(error.code))
        await agent.ask("one")
        if not can:
            stub.extensions = ()
        stub.answers[m.RestoreHistoryRequest] = lambda _, asked: [m.ErrorResponse(asked.request_id, 3007, "No.")]
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        assert (await agent.ask("two")).text == "two "
        assert heard == [3007 if can else 5002]
        # It is not tried again with what was forgotten.
        del stub.answers[m.RestoreHistoryRequest]
        stub.extensions = ("history",)
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        await agent.ask("three")
    assert [entry.text for entry in stub.asked(m.RestoreHistoryRequest)[-1].entries] == ["two", "two "]


async def test_an_exchange_that_fits_into_no_frame_is_refused_before_anything_is_sent(stub: TryllStub) -> None:
    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        short = [m.HistoryEntry("user", "a"), m.HistoryEntry("assistant", "b")]
        long = [m.HistoryEntry("user", "u" * 600_000), m.HistoryEntry("assistant", "a" * 600_000)]
        with pytest.raises(TryllError) as refused:
            await agent.restore([*short, *long])
        assert refused.value.code == 5003
        assert not stub.asked(m.RestoreHistoryRequest)
        assert (await agent.ask("x")).text == "x "


async def test_what_comes_in_several_entries_of_one_role_is_one_text(stub: TryllStub) -> None:
    pieces = [m.HistoryEntry("user", "a"), m.HistoryEntry("assistant", "b"), m.HistoryEntry("assistant", "c")]
    stub.answers[m.SaveHistoryRequest] = lambda _, asked: [
        m.SaveHistoryResponse(asked.request_id, asked.agent_id, tuple(pieces[:2]), True),
        m.SaveHistoryResponse(asked.request_id, asked.agent_id, tuple(pieces[2:])),
    ]
    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        assert [entry.text for entry in await agent.history()] == ["a", "bc"]


# What the server has is not always what was sent.


def _graph(*nodes: m.NodeParams) -> m.GraphDescription:
    names = [f"n{number}" for number in range(len(nodes))]
    chained: list[m.NodeParams] = []
    for node, after in zip(nodes, [*names[1:], ""], strict=True):
        chained.append(node.replace(default_exit=after))
    return m.GraphDescription(
        tuple(m.NodeDescription(name, node) for name, node in zip(names, chained, strict=True)), "n0"
    )


_CANNED = m.CannedResponseParams(inline_strings=("You said: hello, and more",))


@pytest.mark.parametrize(
    "nodes",
    [
        (m.GenerateParams(), m.CannedResponseParams(inline_strings=("Canned.",))),
        (m.GenerateParams(stream=True), m.GenerateParams(stream=True)),
        (m.GenerateParams(stream=True), _CANNED),
        (m.GenerateParams(), _CANNED),
    ],
)
async def test_the_answers_of_several_nodes_are_remembered_as_the_server_has_them(
    tmp_path: Path, nodes: tuple[m.NodeParams, ...]
) -> None:
    async with served(tmp_path) as server, Tryll(port=server.port, reconnect=QUICK) as tryll:
        agent = await tryll.create_agent(_graph(*nodes), default_model="mock")
        await agent.ask("hello")
        before = await agent.history()
        assert "\n" in before[1].text
        await _dropped(server, tryll)
        assert await agent.history() == before


async def test_a_usual_turn_costs_no_second_request(stub: TryllStub) -> None:
    async with Tryll(port=stub.port) as tryll:
        agent = await tryll.create_agent(GRAPH)
        for _ in range(3):
            await agent.ask("hi")
        await tryll.list_models()
    assert not stub.asked(m.SaveHistoryRequest)


async def test_of_speech_that_was_interrupted_only_what_was_heard_is_remembered(tmp_path: Path) -> None:
    voice = FakeVoice(hold_at=1)
    pool = ModelPool()
    config = m.ConfigureSessionRequest(tts_engine=m.InferenceEngine.SHERPA_ONNX)
    async with (
        served(tmp_path, pool, FakeVoices([voice], pool)) as server,
        Tryll(port=server.port, config=config, reconnect=QUICK) as tryll,
    ):
        agent = await tryll.create_agent(_graph(m.GenerateAndSpeakParams(min_sentence_chars=1)), default_model="mock")
        async with agent.stream("The gate is shut. It stays shut. Go away.") as reply:
            await voice.waiting.wait()
            await until(lambda: reply.text.endswith("Go away."))
            await agent.cancel()
            assert await agent.answer_kept(reply) == "You said: The gate is shut."
        await _dropped(server, tryll)
        assert [entry.text for entry in await agent.history()][1:] == ["You said: The gate is shut."]


async def test_what_is_said_while_the_client_looks_is_not_forgotten(stub: TryllStub) -> None:
    said = [m.HistoryEntry("user", "one"), m.HistoryEntry("assistant", "1")]
    looks: list[Any] = []

    def look(_: Any, asked: m.SaveHistoryRequest) -> list[m.Message]:
        looks.append(asked)
        if len(looks) == 1:
            return []
        return [m.SaveHistoryResponse(asked.request_id, asked.agent_id, (*said, *said))]

    stub.answers[m.SaveHistoryRequest] = look
    async with Tryll(port=stub.port, reconnect=QUICK) as tryll:
        agent: RemoteAgent = await tryll.create_agent(GRAPH)
        usual = stub.usual
        stub.answers[m.SendMessageRequest] = lambda _, asked: (
            m.AnswerText(asked.request_id, asked.agent_id, "10", False),
            m.TurnComplete(asked.request_id, asked.agent_id, m.TurnStatus.CANCELLED),
        )
        await agent.ask("one")
        await stub.until_asked(m.SaveHistoryRequest)
        stub.answers[m.SendMessageRequest] = usual
        await agent.ask("two")
        first = looks[0]
        stub.peers[0].say([m.SaveHistoryResponse(first.request_id, first.agent_id, tuple(said))])
        await stub.until_asked(m.SaveHistoryRequest, 2)
        await tryll.list_models()
        stub.hang_up()
        await until(lambda: not tryll.session_id)
        await agent.ask("three")
    assert stub.asked(m.RestoreHistoryRequest)[0].entries == (*said, *said)


async def _dropped(server: Served, tryll: Tryll) -> None:
    await tryll.list_models()
    for connection in list(server.server.connections):
        connection.transport.abort()
    await until(lambda: not tryll.session_id)
