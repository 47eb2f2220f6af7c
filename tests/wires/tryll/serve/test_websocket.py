"""A Tryll server over WebSockets: the same sessions, and what only a WebSocket has."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import echo
from tests.support.tryll_websocket import (
    BINARY,
    CLOSE,
    GRAPH,
    OPENING,
    PING,
    TEXT,
    BothServed,
    both_served,
    masked,
    opened_by_hand,
    websocket,
)
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, encode
from trunkline.wires.tryll.serve.connection import HIGH_WATER, ServerConnection

SLOW = "mock-slow"
LONG = " ".join(["word"] * 500)


@pytest.fixture
async def server(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[BothServed]:
    async with both_served(tmp_path, **getattr(request, "param", {})) as made:
        yield made


def only(server: BothServed) -> ServerConnection:
    (found,) = server.server.connections
    return found


def recorded() -> list[tuple[str, str]]:
    """Who says what in the session that the reference shows. Its long lines are wrapped."""
    page = (Path(__file__).parents[4] / "docs/reference/tryll.md").read_text(encoding="utf-8")
    shown = page.split("recorded session", 1)[1].split("```text\n", 1)[1].split("```", 1)[0]
    return [(line[0], line[2:]) for line in shown.replace("\n   ", "").splitlines()]


# Sessions.


async def test_the_session_in_the_reference_is_one_of_this_server(server: BothServed) -> None:
    async with connect(f"{server.address}/?format=json", proxy=None) as socket, asyncio.timeout(PATIENCE_SECONDS):
        for who, text in recorded():
            if who == ">":
                await socket.send(text)
            else:
                assert await socket.recv() == text


async def test_a_session_is_the_same_as_over_tcp(server: BothServed) -> None:
    async with (
        server.peer(configured=False) as tcp,
        websocket(f"{server.address}/any/path?other=1", greeted=False) as ws,
    ):
        ready = await ws.hear()
        assert isinstance(ready, m.SessionReady)
        assert (ready.protocol_version, ready.extensions) == (2, server.server.extensions)
        heard: list[list[m.Message | None]] = []
        for ask, hear in ((tcp.writer.write, tcp.hear), (None, ws.hear)):
            said: list[m.Message | None] = []
            agent = 0
            for request in (
                m.ConfigureSessionRequest(1),
                m.CreateAgentRequest(2, echo(), "any"),
                m.SendMessageRequest(3, 0, "to the agent"),
                m.SendMessageRequest(4, 2**62, "to nobody"),
            ):
                sent = request.replace(agent_id=agent) if request.request_id == 3 else request
                if ask is None:
                    await ws.websocket.send(encode(sent))
                else:
                    tcp.say(sent)
                while True:
                    answer = await hear()
                    if isinstance(answer, m.CreateAgentResponse):
                        agent = answer.agent_id
                    assert answer is not None
                    said.append(answer.replace(agent_id=0) if hasattr(answer, "agent_id") else answer)
                    if not isinstance(answer, m.AnswerText):
                        break
            heard.append(said)
        assert heard[0] == heard[1]
        assert m.TurnComplete(3, 0, tokens_generated=5, tokens_prompt=3) in heard[1]


async def test_a_session_in_json_is_the_same_once_more(server: BothServed) -> None:
    async with websocket(server.json, greeted=False) as ws:
        ready = await ws.told()
        assert ready.pop("session_id") > 0
        assert ready == {"type": "SessionReady", "protocol_version": 2, "extensions": list(server.server.extensions)}
        answer = await ws.tell("ConfigureSessionRequest", request_id="1", inference_engine="Mock", token=None)
        assert answer == {"type": "ConfigureSessionResponse", "request_id": 1}
        made = await ws.tell("CreateAgentRequest", request_id=2, graph=GRAPH, default_model_name="any")
        # As somebody says it who has no integers.
        heard = [await ws.tell("SendMessageRequest", request_id=3.0, agent_id=float(made["agent_id"]), text="Grüße")]
        while heard[-1]["type"] != "TurnComplete":
            heard.append(await ws.told())
        assert "".join(each["text"] for each in heard[:-1]) == "You said: Grüße"
        assert [each["is_final"] for each in heard[:-1]] == [False] * (len(heard) - 2) + [True]
        assert heard[-1]["status"] == "Success"
        assert await ws.tell("DestroyAgentRequest", request_id=4, agent_id=made["agent_id"]) == {
            "type": "Ack",
            "request_id": 4,
        }


async def test_a_message_may_come_in_any_pieces_with_pings_between_them(server: BothServed) -> None:
    text = b'{"type":"HealthRequest","request_id":7}'
    async with websocket(server.json) as ws:
        # A client of its own sends them, since this one would not.
        async with opened_by_hand(server.ws, b"json") as (reader, writer):
            await reader.readexactly(2)
            for number, byte in enumerate(text):
                opcode = 0 if number else TEXT
                writer.write(masked(opcode, bytes((byte,)), fin=number == len(text) - 1) + masked(PING, b"?"))
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert b'{"type":"HealthResponse","request_id":7' in await reader.readuntil(b'"request_id":7')

        async def pieces() -> AsyncIterator[str]:
            for character in text.decode():
                yield character

        await ws.websocket.send(pieces())
        assert (await ws.told())["request_id"] == 7
        assert await (await ws.websocket.ping()) >= 0


async def test_what_is_no_message_is_told_and_the_session_goes_on(server: BothServed) -> None:
    async with websocket(server.address) as ws:
        for wrong in (b"", b"garbage!" * 9, "a text", "", bytes(MAX_FRAME)):
            await ws.websocket.send(wrong)
            error = await ws.hear()
            assert isinstance(error, m.ErrorResponse)
            assert error.code == 5001
        await ws.websocket.send("{}")
        told = await ws.hear()
        assert isinstance(told, m.ErrorResponse)
        assert "binary" in told.message
        assert isinstance(await ws.ask(m.HealthRequest(1)), m.HealthResponse)
    async with websocket(server.json) as ws:
        for wrong, code, number in (
            ("", 5001, 0),
            ("[]", 5001, 0),
            (b"{}", 5001, 0),
            (encode(m.HealthRequest(1)), 5001, 0),
            ('{"type":"HealthRequest","request_id":6,"more":1}', 5001, 6),
            ('{"type":"Nothing","request_id":7}', 5002, 7),
            ('{"type":"SessionReady"}', 5002, 0),
        ):
            await ws.websocket.send(wrong)
            error_told = await ws.told()
            assert (error_told["type"], error_told["code"], error_told["request_id"]) == ("ErrorResponse", code, number)
        assert (await ws.tell("HealthRequest", request_id=8))["status"] == "ready"


async def test_the_longest_message_is_read_and_a_longer_one_ends_the_session(server: BothServed) -> None:
    async with websocket(server.json) as ws:
        text = '{"type":"HealthRequest","request_id":5'
        await ws.websocket.send(text + " " * (MAX_FRAME - len(text) - 1) + "}")
        assert (await ws.told())["request_id"] == 5
        # What was asked before it is answered.
        await ws.websocket.send(text + "}")
        await ws.websocket.send(text + " " * (MAX_FRAME - len(text)) + "}")
        assert (await ws.told())["type"] == "HealthResponse"
        assert (await ws.told())["code"] == 5003
        assert await ws.code() == 1009
    async with websocket(server.address) as ws:
        await ws.websocket.send(bytes(MAX_FRAME))
        assert (await ws.ask(m.HealthRequest(5))).code == 5001
        assert isinstance(await ws.hear(), m.HealthResponse)
        await ws.websocket.send(bytes(MAX_FRAME + 1))
        error = await ws.hear()
        assert isinstance(error, m.ErrorResponse)
        assert error.code == 5003
        assert await ws.code() == 1009
    await server.works()


async def test_a_longer_message_is_refused_by_its_length_alone_and_also_in_pieces(server: BothServed) -> None:
    for beginning in (
        b"\x82\xff" + (MAX_FRAME + 1).to_bytes(8) + bytes(4),
        b"\x82\xff" + (2**63 - 1).to_bytes(8) + bytes(4),
        masked(BINARY, bytes(MAX_FRAME), fin=False) + masked(0, b"x"),
    ):
        async with opened_by_hand(server.ws) as (reader, writer):
            writer.write(beginning)
            async with asyncio.timeout(PATIENCE_SECONDS):
                heard = await reader.read()
            assert struct.pack("<I", 5003) in heard
            assert heard.endswith(b"\x88\x02" + (1009).to_bytes(2))


# Clients that fall silent, do not read, or break the rules.


@pytest.mark.virtual_time
@pytest.mark.parametrize("server", [{"frame_seconds": 0.3}], indirect=True)
@pytest.mark.parametrize("half", [masked(BINARY, bytes(900))[:500], masked(BINARY, b"half", fin=False)])
async def test_half_a_message_is_not_waited_for_for_ever(server: BothServed, half: bytes) -> None:
    async with opened_by_hand(server.ws) as (reader, writer):
        writer.write(half + (masked(PING) if half[0] == BINARY else b""))
        async with asyncio.timeout(PATIENCE_SECONDS):
            heard = await reader.read()
        assert struct.pack("<I", 5001) in heard
        assert heard.endswith(b"\x88\x02" + (1008).to_bytes(2))
    # One that says nothing at all may stay.
    async with websocket(server.address) as ws:
        await asyncio.sleep(2.0)
        assert isinstance(await ws.ask(m.HealthRequest(1)), m.HealthResponse)


@pytest.mark.virtual_time
@pytest.mark.parametrize("server", [{"frame_seconds": 0.3}], indirect=True)
@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
async def test_neither_is_a_request(server: BothServed, begun: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.ws)
    writer.write(begun)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await reader.read() == b""
    writer.transport.abort()


@asynccontextmanager
async def deaf(server: BothServed, form: bytes, flood: bytes) -> AsyncIterator[socket.socket]:
    """A client that says the same for ever, and never reads, with little room for what it is sent."""
    loop = asyncio.get_running_loop()
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.setblocking(False)
        await loop.sock_connect(made, ("127.0.0.1", server.ws))
        await loop.sock_sendall(made, OPENING % form)
        sending = asyncio.create_task(_send_for_ever(made, flood))
        try:
            await until(lambda: bool(server.server.connections))
            # With megabytes in the buffers of the system it would take longer to be behind.
            sock = only(server).transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            yield made
        finally:
            sending.cancel()
            await asyncio.wait({sending})


async def _send_for_ever(made: socket.socket, data: bytes) -> None:
    while True:
        try:
            await asyncio.get_running_loop().sock_sendall(made, data)
        except OSError:
            return


@pytest.mark.parametrize(
    ("form", "flood"),
    [
        (b"binary", masked(BINARY, encode(m.ListModelsRequest(9))) * 50),
        (b"json", masked(TEXT, b'{"type":"ListModelsRequest","request_id":9}') * 50),
        (b"json", masked(TEXT, b"no message") * 500),
        (b"binary", masked(PING, bytes(125)) * 500),
    ],
    ids=["requests", "requests in json", "nonsense", "pings"],
)
async def test_a_client_that_does_not_read_fills_no_memory_and_waits_for_itself_alone(
    server: BothServed, form: bytes, flood: bytes
) -> None:
    async with deaf(server, form, flood) as client:
        connection = only(server)
        await until(lambda: connection.behind and not connection.transport.is_reading())
        assert connection.transport.get_write_buffer_size() < HIGH_WATER + 100_000
        await server.works()
        # And it is read again when it reads.
        before = connection.transport.get_write_buffer_size()
        while connection.transport.get_write_buffer_size() >= before:
            await asyncio.get_running_loop().sock_recv(client, 1 << 20)
        assert connection in server.server.connections


@pytest.mark.parametrize("server", [{"stall_seconds": 0.5}], indirect=True)
async def test_a_client_that_takes_nothing_is_cut_off(server: BothServed) -> None:
    flood = masked(TEXT, b'{"type":"ListModelsRequest","request_id":9}') * 50
    async with deaf(server, b"json", flood):
        connection = only(server)
        await until(lambda: connection.behind)
        await until(lambda: not server.server.connections)


@pytest.mark.parametrize(
    "wrong",
    [
        bytes((0x82, 3)) + b"abc",
        masked(0, b"nothing to go on with"),
        masked(BINARY, b"a", fin=False) + masked(BINARY, b"b"),
        masked(BINARY | 0x40, b"compressed"),
        masked(3, b"reserved"),
        masked(PING, bytes(126)),
        masked(CLOSE, b"x"),
    ],
)  # fmt: skip
async def test_what_breaks_the_rules_of_websockets_ends_the_session(server: BothServed, wrong: bytes) -> None:
    async with opened_by_hand(server.ws) as (reader, writer):
        writer.write(masked(BINARY, encode(m.HealthRequest(77))) + wrong)
        async with asyncio.timeout(PATIENCE_SECONDS):
            heard = await reader.read()
        # What came before it is answered.
        assert b"ready" in heard
        assert b"\x03\xea" in heard[heard.rindex(b"\x88") :]
    await until(lambda: not server.server.connections)


# The end.


async def test_a_client_that_closes_in_a_turn_takes_it_along(server: BothServed) -> None:
    async with websocket(server.address) as ws:
        await ws.ask(m.ConfigureSessionRequest(1))
        agent = (await ws.ask(m.CreateAgentRequest(2, echo(), SLOW))).agent_id
        assert isinstance(await ws.ask(m.SendMessageRequest(3, agent, LONG)), m.AnswerText)
        await ws.websocket.close()
        assert ws.websocket.close_code == 1000
    await until(lambda: not server.server.turns and not server.server.connections)


async def test_a_message_and_the_end_may_come_together(server: BothServed) -> None:
    async with opened_by_hand(server.ws) as (reader, writer):
        writer.write(masked(BINARY, encode(m.HealthRequest(77))) + masked(CLOSE, (1000).to_bytes(2)))
        async with asyncio.timeout(PATIENCE_SECONDS):
            heard = await reader.read()
        assert b"ready" in heard
        assert heard.endswith(b"\x88\x02\x03\xe8")


async def test_a_connection_that_ends_without_a_word_ends_the_session(server: BothServed) -> None:
    async with opened_by_hand(server.ws) as (reader, writer):
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read()
    await until(lambda: not server.server.connections)


async def test_a_server_that_stops_says_that_it_goes_away(server: BothServed) -> None:
    async with websocket(server.json) as idle, opened_by_hand(server.ws):
        closing = asyncio.create_task(server.server.close())
        assert (await idle.told())["code"] == 2001
        assert await idle.code() == 1001
        await closing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", server.ws)
