"""Sessions as any client may rely on them: what comes first, what is refused with which number, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from struct import pack
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served
from tests.wires.tryll import foreign
from tests.wires.tryll.foreign_client import Foreigner, foreigner, graph, text_of
from tests.wires.tryll.samples import FULL, filled
from trunkline.wires.tryll import messages as m

SAY = graph(say=m.GenerateParams(stream=True))
LONG = " ".join(["word"] * 2000)
#: What only a server says.
SERVERS = tuple(
    each for each in FULL if not type(each).__name__.endswith("Request") and type(each) is not m.AudioBufferFrame
)
REAL = m.InferenceEngine.LLAMA_CPP


# The beginning.


async def test_the_server_speaks_first_and_every_session_has_an_id_of_its_own(server: Served) -> None:
    ids = set()
    for _ in range(3):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        ready = await Foreigner(reader, writer).get(m.SessionReady)
        assert ready.protocol_version == 2
        ids.add(ready.session_id)
        writer.close()
    assert len(ids) == 3
    assert 0 not in ids


@pytest.mark.parametrize(
    "request_",
    [
        m.CreateAgentRequest(5, SAY, "any"),
        m.CreateAgentRequest(5),
        m.CreateStringStorageRequest(5, "s", ("x",)),
        m.CreateStringStorageRequest(5),
        m.DestroyStringStorageRequest(5, "s"),
        m.CreateEmbeddedStringStorageRequest(5, "s", strings=("x",), embedding_model="any"),
        m.DestroyEmbeddedStringStorageRequest(5, "s"),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_agents_and_storages_need_a_configured_session(server: Served, request_: m.Message) -> None:
    async with foreigner(server, configured=False) as client:
        assert (await client.refused(request_)).code == 2002
        # It is no worse off for it.
        await client.configure()
        assert await client.agent(SAY)


async def test_the_catalog_can_be_asked_for_at_once(server: Served) -> None:
    async with foreigner(server, configured=False) as client:
        listed = await client.ask(m.ListModelsRequest(5), m.ListModelsResponse)
    models = {model.name: model for model in listed.models}
    assert models["smollm2-135m"].model_type == "language"
    assert models["minilm-l6"].model_type == "embedding"
    assert listed.request_id == 5


@pytest.mark.parametrize(("version", "fits"), [(0, True), (2, True), (1, False), (3, False), (2**32 - 1, False)])
async def test_a_client_of_another_version_is_told_so(server: Served, version: int, fits: bool) -> None:
    async with foreigner(server, configured=False) as client:
        request = m.ConfigureSessionRequest(5, protocol_version=version)
        if fits:
            assert (await client.ask(request, m.ConfigureSessionResponse)).request_id == 5
        else:
            assert (await client.refused(request)).code == 5004
            assert await client.rest() == []


async def test_a_session_can_be_configured_again_and_old_agents_stay_as_they_are(client: Foreigner) -> None:
    agent = await client.agent(SAY, "no-such-model")
    await client.configure(inference_engine=REAL)
    client.say(m.SendMessageRequest(3, agent, "hello"))
    assert text_of((await client.turn())[0]) == "You said: hello"
    assert (await client.refused(m.CreateAgentRequest(4, SAY, "no-such-model"))).code == 3003


# Request ids.


def echoed() -> list[Any]:
    """A request of each kind that has an id, such that it is answered by one frame."""
    kinds = [kind for kind in m.BODIES if kind.__name__.endswith("Request") and "request_id" in kind.__fields__]
    special = {m.SendMessageRequest, m.ConfigureSessionRequest, m.DownloadModelRequest}
    made: list[Any] = [kind() for kind in kinds if kind not in special]
    return [
        *made,
        m.ConfigureSessionRequest(1),
        m.ConfigureSessionRequest(1, inference_engine=77),
        m.SendMessageRequest(1, 12345, "x"),
        m.DownloadModelRequest(1, "no-such-model"),
    ]


@pytest.mark.parametrize("request_id", [0, 1, 2**64 - 1])
async def test_every_answer_repeats_the_id_of_its_request(client: Foreigner, request_id: int) -> None:
    for request in echoed():
        client.say(request.replace(request_id=request_id))
        heard = await client.hear()
        assert heard.request_id == request_id, (request, heard)


async def test_answers_to_many_requests_find_their_way_by_their_ids(client: Foreigner) -> None:
    slow = await client.agent(SAY, "mock-slow")
    client.say(
        m.SendMessageRequest(10, slow, "a b c"),
        m.ListModelsRequest(11),
        m.CreateAgentRequest(12, SAY, "any"),
        m.LoadModelRequest(13, "no-such-model"),
        m.HealthRequest(14),
        m.SendMessageRequest(15, slow, "too many"),
    )
    heard = [await client.hear() for _ in range(5)]
    while not isinstance(heard[-1], m.TurnComplete):
        heard.append(await client.hear())
    kinds = {(type(each), each.request_id) for each in heard}
    assert kinds == {
        (m.AnswerText, 10), (m.TurnComplete, 10), (m.ListModelsResponse, 11), (m.CreateAgentResponse, 12),
        (m.ErrorResponse, 13), (m.HealthResponse, 14), (m.ErrorResponse, 15),
    }  # fmt: skip
    assert {each.request_id: each.code for each in heard if isinstance(each, m.ErrorResponse)} == {13: 6002, 15: 3004}


# What is no request.


@pytest.mark.parametrize("message", SERVERS, ids=lambda message: type(message).__name__)
async def test_what_only_a_server_says_is_refused_and_the_session_goes_on(
    client: Foreigner, message: m.Message
) -> None:
    client.say(message)
    assert (await client.get(m.ErrorResponse)).code in (5001, 5002)
    client.say(type(message)())
    assert (await client.get(m.ErrorResponse)).code in (5001, 5002)
    assert await client.agent(SAY)


def without_body(tag: int) -> bytes:
    """A message with a tag and nothing behind it."""
    builder = foreign.flatbuffers.Builder(16)
    foreign.generated.MessageStart(builder)
    if tag:
        foreign.generated.MessageAddBodyType(builder, tag)
    builder.Finish(foreign.generated.MessageEnd(builder))
    return bytes(builder.Output())


def with_tag(tag: int) -> bytes:
    """A message of a kind that is not in the schema."""
    builder = foreign.flatbuffers.Builder(16)
    foreign.generated.HealthRequestStart(builder)
    body = foreign.generated.HealthRequestEnd(builder)
    foreign.generated.MessageStart(builder)
    foreign.generated.MessageAddBodyType(builder, tag)
    foreign.generated.MessageAddBody(builder, body)
    builder.Finish(foreign.generated.MessageEnd(builder))
    return bytes(builder.Output())


WRONG: dict[str, tuple[bytes, tuple[int, ...]]] = {
    "length zero": (b"", (5001,)),
    "one byte": (b"\x04", (5001,)),
    "zeros": (bytes(64), (5001,)),
    "text": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", (5001,)),
    "NONE": (without_body(0), (5001, 5002)),
    "no body": (without_body(4), (5001, 5002)),
    "unknown kind": (with_tag(len(m.BODIES) + 1), (5002,)),
    "last kind": (with_tag(255), (5002,)),
    "no UTF-8": (foreign.build(m.SendMessageRequest(1, 1, "abcd")).replace(b"abcd", b"ab\xc3\x28"), (5001,)),
    "half of a character": (foreign.build(m.SendMessageRequest(1, 1, "abc")).replace(b"abc", b"\xed\xa0\x80"), (5001,)),
    "cut": (foreign.build(m.CreateAgentRequest(1, SAY, "any"))[:-9], (5001,)),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_frame_that_is_no_message_is_told_and_the_session_stays_usable(client: Foreigner, what: str) -> None:
    payload, codes = WRONG[what]
    agent = await client.agent(SAY, "mock-slow")
    client.say(m.SendMessageRequest(3, agent, "still here"))
    for _ in range(2):
        client.write(payload)
    heard: list[Any] = []
    while not (heard and isinstance(heard[-1], m.TurnComplete)):
        heard.append(await client.hear())
    assert [each.code in codes for each in heard if isinstance(each, m.ErrorResponse)] == [True, True]
    assert text_of([each for each in heard if isinstance(each, m.AnswerText)]) == "You said: still here"


async def test_the_largest_frame_is_read_and_the_next_larger_one_is_refused_from_its_header(server: Served) -> None:
    async with foreigner(server) as client:
        agent = await client.agent(SAY)
        room = (1 << 20) - len(foreign.build(m.SendMessageRequest(3, agent, "")))
        largest = foreign.build(m.SendMessageRequest(3, agent, "x" * (room & ~7)))
        largest += bytes((1 << 20) - len(largest))
        assert len(largest) == 1 << 20
        client.write(largest)
        assert (await client.turn())[1].status == m.TurnStatus.SUCCESS
        for length in (1 << 20) + 1, 2**32 - 1:
            async with foreigner(server) as other:
                other.writer.write(pack("<I", length))
                assert (await other.get(m.ErrorResponse)).code == 5003
                assert await other.rest() == []
        assert await client.agent(SAY)


# Ids of agents.


async def test_ids_of_agents_are_told_apart(server: Served, client: Foreigner) -> None:
    agent, gone = await client.agent(SAY), await client.agent(SAY)
    assert await client.ask(m.DestroyAgentRequest(4, gone), m.Ack) == m.Ack(4)
    for id, code in ((gone, 3002), (agent + 1000, 3001), (0, 3001), (2**64 - 1, 3001)):
        for request in (
            m.SendMessageRequest(5, id, "x"),
            m.DestroyAgentRequest(6, id),
            m.ChangeAgentParamRequest(7, id, "say", m.GenerateParams()),
            m.CancelTurnRequest(8, id),
        ):
            assert (await client.refused(request)).code == code
    async with foreigner(server) as other:
        assert (await other.refused(m.SendMessageRequest(5, agent, "x"))).code == 3001
        assert (await other.refused(m.DestroyAgentRequest(6, agent))).code == 3001
        assert (await other.refused(m.SendMessageRequest(5, gone, "x"))).code == 3001
    client.say(m.SendMessageRequest(9, agent, "mine"))
    assert text_of((await client.turn())[0]) == "You said: mine"


async def test_an_agent_that_is_destroyed_in_its_turn_ends_it_before_the_acknowledgement(client: Foreigner) -> None:
    agent, other = await client.agent(SAY, "mock-slow"), await client.agent(SAY, "mock-slow")
    client.say(m.SendMessageRequest(3, agent, LONG), m.SendMessageRequest(4, other, LONG))
    for _ in range(4):
        await client.get(m.AnswerText)
    client.say(m.DestroyAgentRequest(5, agent), m.SendMessageRequest(6, agent, "x"))
    heard: list[Any] = []
    while not (heard and isinstance(heard[-1], m.Ack)):
        heard.append(await client.hear())
    ours = [
        each for each in heard if getattr(each, "agent_id", agent) == agent and not isinstance(each, m.ErrorResponse)
    ]
    *before, final, complete, ack = ours
    assert all(isinstance(each, m.AnswerText) and not each.is_final for each in before)
    assert (type(final), final.is_final) == (m.AnswerText, True)
    assert (complete.status, complete.request_id, ack) == (m.TurnStatus.CANCELLED, 3, m.Ack(5))
    assert [each.code for each in heard if isinstance(each, m.ErrorResponse)] == [3002]
    # Nothing more is heard of it, and the other one goes on.
    for _ in range(5):
        assert (await client.get(m.AnswerText)).agent_id == other


# The end.


@pytest.mark.parametrize("state", ["fresh", "configured", "in a turn", "half a frame"])
async def test_half_close_ends_the_session_in_time_and_cuts_no_frame(server: Served, state: str) -> None:
    async with foreigner(server, configured=state != "fresh") as client:
        if state == "in a turn":
            agent = await client.agent(SAY, "mock-slow")
            client.say(m.SendMessageRequest(3, agent, LONG))
            await client.get(m.AnswerText)
        if state == "half a frame":
            client.writer.write(pack("<I", 100) + bytes(50))
        client.writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            rest = await client.rest()
        if state == "in a turn":
            *_, final, complete = rest
            assert (final.is_final, complete.status) == (True, m.TurnStatus.CANCELLED)
        else:
            assert rest == []


async def test_a_session_that_ends_takes_its_agents_along(server: Served) -> None:
    async with foreigner(server) as client:
        agents = [await client.agent(SAY, "mock-slow") for _ in range(3)]
        client.say(*(m.SendMessageRequest(3, agent, LONG) for agent in agents))
        await client.get(m.AnswerText)
        assert (server.server.agents, len(server.server.turns)) == (3, 3)
        client.writer.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await client.rest()
    assert (server.server.agents, len(server.server.turns)) == (0, 0)


async def test_what_a_newer_client_adds_is_passed_over(client: Foreigner) -> None:
    # A request of today's schema with one field more at the end of its table.
    builder = foreign.flatbuffers.Builder(64)
    text = builder.CreateString("of the future")
    count = len(m.HealthRequest.__fields__)
    builder.StartObject(count + 2)
    builder.PrependUint64Slot(0, 77, 0)
    builder.PrependUOffsetTRelativeSlot(count, text, 0)
    builder.PrependBoolSlot(count + 1, True, False)
    body = builder.EndObject()
    foreign.generated.MessageStart(builder)
    foreign.generated.MessageAddBodyType(builder, m.BODIES.index(m.HealthRequest) + 1)
    foreign.generated.MessageAddBody(builder, body)
    builder.Finish(foreign.generated.MessageEnd(builder))
    client.write(bytes(builder.Output()))
    assert (await client.get(m.HealthResponse)).request_id == 77


def test_the_samples_have_something_in_every_field() -> None:
    assert len(SERVERS) > 12
    assert filled(m.HealthRequest).request_id
