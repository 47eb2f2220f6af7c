"""A Tryll server among clients that send nonsense, do not read, fall silent or vanish; and its own end."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import socket
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, Served, echo, served
from trunkline.models.mock_values import MAX_VALUES
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, encode, frame
from trunkline.wires.tryll.serve import TryllServer
from trunkline.wires.tryll.serve import server as serving
from trunkline.wires.tryll.serve.connection import HIGH_WATER, ServerConnection
from trunkline.wires.tryll.serve.scheduler import MAX_REQUESTS, RequestScheduler
from trunkline.wires.tryll.serve.session import AGENT_BITS

pytestmark = pytest.mark.slow

SLOW = "mock-slow"
LONG = " ".join(["word"] * 500)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  # what is looked at belongs to the server, which has no event for us
            await asyncio.sleep(0.005)


async def works(server: Served) -> None:
    """Whoever else is there: a turn is answered."""
    async with asyncio.timeout(PATIENCE_SECONDS), server.peer() as peer:
        agent = await peer.agent()
        peer.say(m.SendMessageRequest(3, agent, "fine"))
        answers, _ = await peer.turn()
        assert "".join(answer.text for answer in answers) == "You said: fine"


def only(server: TryllServer) -> ServerConnection:
    (found,) = server.connections
    return found


def counted(value: Any) -> int:
    return 1 + sum(
        map(counted, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


async def test_a_short_schema_with_many_references_does_not_stop_the_server(server: Served) -> None:
    names = "abcdefgh"
    levels = {
        name: {"properties": {f"{at}": {"$ref": f"#/$defs/{below}"} for at in range(8)}}
        for name, below in pairwise(names)
    }
    schema = json.dumps({"$ref": "#/$defs/a", "$defs": levels | {"h": {"type": "integer"}}})
    graph = echo(sampling=m.SamplingOverrides(json_schema=schema))
    async with asyncio.timeout(PATIENCE_SECONDS), server.peer() as peer:
        agent = (await peer.ask(m.CreateAgentRequest(2, graph, "any"), m.CreateAgentResponse)).agent_id
        peer.say(m.SendMessageRequest(3, agent, "fine"))
        answers, end = await peer.turn()
    assert end.status == m.TurnStatus.SUCCESS
    assert counted(json.loads("".join(answer.text for answer in answers))) < 2 * MAX_VALUES
    await works(server)


# Frames.


async def test_frames_may_come_in_any_pieces(server: Served) -> None:
    async with server.peer(configured=False) as peer:
        for byte in frame(encode(m.ConfigureSessionRequest(5))):
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
            await asyncio.sleep(0)
        assert (await peer.get(m.ConfigureSessionResponse)).request_id == 5
        peer.say(m.HealthRequest(1), m.HealthRequest(2))
        assert [(await peer.get(m.HealthResponse)).request_id for _ in range(2)] == [1, 2]


async def test_what_is_no_message_is_told_and_the_session_goes_on(server: Served) -> None:
    unknown = bytearray(encode(m.Ack(7)))
    # The tag of the union, which is the one byte that differs between two empty messages.
    place = [at for at, (a, b) in enumerate(zip(unknown, encode(m.ConfigureSessionResponse(7)), strict=True)) if a != b]
    unknown[place[0]] = 200
    wrong_text = encode(m.SendMessageRequest(1, 2, "abcd")).replace(b"abcd", b"\xff\xfe\xfd\xfc")
    async with server.peer() as peer:
        for payload, code in (
            (b"", 5001),
            (b"\0\0\0\0", 5001),
            (b"garbage!" * 9, 5001),
            (wrong_text, 5001),
            (bytes(unknown), 5002),
            (bytes(MAX_FRAME), 5001),
        ):
            peer.writer.write(frame(payload))
            assert (await peer.get(m.ErrorResponse)).code == code
        assert await peer.agent()


async def test_too_long_a_frame_is_refused_by_its_length_alone(server: Served) -> None:
    for rest in (b"", bytes(300_000)):
        async with server.peer() as peer:
            agent = await peer.agent(SLOW)
            peer.say(m.SendMessageRequest(3, agent, LONG))
            await peer.get(m.AnswerText)
            peer.writer.write(frame(encode(m.HealthRequest(4))) + struct.pack("<I", MAX_FRAME + 1) + rest)
            heard: list[m.Message] = []
            while (message := await peer.hear()) is not None:
                heard.append(message)
            kinds = [type(each) for each in heard]
            assert kinds.index(m.HealthResponse) < kinds.index(m.ErrorResponse)
            assert [each.code for each in heard if isinstance(each, m.ErrorResponse)] == [5003]
            # The turn comes to its end, too.
            assert isinstance(heard[-1], m.TurnComplete)


async def test_random_bytes_disturb_nobody(server: Served) -> None:
    chance = random.Random(7)
    good = frame(encode(m.CreateAgentRequest(2, echo(), "any")))
    for _ in range(60):
        _, writer = await asyncio.open_connection(server.host, server.port)
        data = bytearray(good * 3)
        for _ in range(chance.randrange(1, 30)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        writer.write(bytes(data[: chance.randrange(len(data))]))
        if chance.random() < 0.5:
            await writer.drain()
        writer.transport.abort() if chance.random() < 0.5 else writer.close()
    await works(server)
    await until(lambda: not server.server.connections)


async def test_many_requests_at_once_are_answered_in_their_order(server: Served) -> None:
    async with server.peer() as peer:
        peer.say(*(m.HealthRequest(number) for number in range(1, 1001)))
        assert [(await peer.get(m.HealthResponse)).request_id for _ in range(1000)] == list(range(1, 1001))


# Clients that fall silent.


async def test_the_system_looks_after_connections_that_nobody_uses(server: Served) -> None:
    async with server.peer():
        accepted = only(server.server).transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.virtual_time
async def test_half_a_frame_holds_up_nobody_and_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async with served(tmp_path, frame_seconds=0.3) as server, server.peer() as peer:
        peer.writer.write(struct.pack("<I", 1000) + bytes(500))
        await works(server)
        # Frames that come to their ends in time may be many.
        async with server.peer() as other:
            for _ in range(5):
                whole = frame(encode(m.HealthRequest(1)))
                other.writer.write(whole[:9])
                await asyncio.sleep(0.1)
                other.writer.write(whole[9:])
                await other.get(m.HealthResponse)
        assert (await peer.get(m.ErrorResponse)).code == 5001
        assert await peer.hear() is None


async def test_a_client_that_does_not_read_waits_for_itself_alone(tmp_path: Path) -> None:
    async with served(tmp_path, stall_seconds=1.0) as server:
        with await _deaf(server) as deaf:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(deaf, _configured())
            connection = only(server.server)
            flood = frame(encode(m.ListModelsRequest(9))) * 2000
            sending = asyncio.create_task(_send_for_ever(deaf, flood))
            await until(lambda: connection.behind and not connection.transport.is_reading())
            assert connection.transport.get_write_buffer_size() < HIGH_WATER + 100_000
            await works(server)
            # And it is cut off in the end.
            await until(lambda: not server.server.connections)
            sending.cancel()
            await asyncio.wait({sending})


async def test_a_turn_waits_for_its_reader_and_goes_on_with_it(server: Served) -> None:
    async with server.peer() as peer:
        agent = await peer.agent()
        # The text comes back in deltas, each in a frame of its own: far more than what was sent.
        text = " ".join(["x"] * 300_000)
        connection = only(server.server)
        _transport(peer).pause_reading()
        peer.say(m.SendMessageRequest(3, agent, text))
        await until(lambda: connection.behind)
        for _ in range(8):
            await works(server)
        assert connection.transport.get_write_buffer_size() < HIGH_WATER + 100_000
        assert len(server.server.turns) == 1
        _transport(peer).resume_reading()
        answers, complete = await peer.turn()
        assert "".join(answer.text for answer in answers) == f"You said: {text}"
        assert complete.status == m.TurnStatus.SUCCESS


async def test_a_turn_that_waits_for_its_reader_can_be_cancelled(server: Served) -> None:
    async with server.peer() as peer:
        agent = await peer.agent()
        _transport(peer).pause_reading()
        peer.say(m.SendMessageRequest(3, agent, " ".join(["x"] * 300_000)))
        connection = only(server.server)
        await until(lambda: connection.behind)
        (turn,) = server.server.turns
        turn.cancel()
        await until(lambda: not server.server.turns)
        _transport(peer).resume_reading()
        assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED


async def test_more_requests_than_are_done_at_once_wait_to_be_read(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    weigh = RequestScheduler.weigh
    under_way: list[int] = []

    def weighed(desk: RequestScheduler, size: int, requests: int = 0) -> None:
        weigh(desk, size, requests)
        under_way.append(desk._requests)

    monkeypatch.setattr(RequestScheduler, "weigh", weighed)
    async with server.peer() as peer:
        peer.say(*(m.CreateStringStorageRequest(number, f"s{number}", ("x",)) for number in range(1, 201)))
        made = [(await peer.get(m.CreateStringStorageResponse)).request_id for _ in range(200)]
        assert made == list(range(1, 201))
    # They came in one piece.
    assert max(under_way) == MAX_REQUESTS


# Clients that go.


async def test_the_end_of_what_a_client_says_ends_its_session(server: Served) -> None:
    async with server.peer() as peer:
        agent = await peer.agent(SLOW)
        peer.say(m.SendMessageRequest(3, agent, LONG))
        await peer.get(m.AnswerText)
        peer.writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
            assert await peer.hear() is None
    await until(lambda: not server.server.connections)


async def test_a_frame_that_was_begun_before_the_end_is_forgotten(server: Served) -> None:
    async with server.peer() as peer:
        peer.writer.write(frame(encode(m.HealthRequest(1)))[:-1])
        peer.writer.write_eof()
        assert await peer.hear() is None


async def test_a_client_that_neither_reads_nor_speaks_any_more_is_gone_in_time(server: Served) -> None:
    with await _deaf(server) as deaf:
        loop = asyncio.get_running_loop()
        connection = only(server.server)
        await loop.sock_sendall(deaf, _configured() + frame(encode(m.CreateAgentRequest(2, echo(), "any"))))
        await until(lambda: server.server.agents == 1)
        agent = connection.id << AGENT_BITS | 1
        await loop.sock_sendall(deaf, frame(encode(m.SendMessageRequest(3, agent, " ".join(["x"] * 300_000)))))
        await until(lambda: connection.behind)
        deaf.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until(lambda: not server.server.connections)
        # What it reads now does not look like the end of a stream.
        with pytest.raises(ConnectionResetError):
            await _read_to_the_end(deaf)


async def test_a_client_that_is_not_read_any_more_can_still_end(server: Served) -> None:
    with await _deaf(server) as deaf:
        loop = asyncio.get_running_loop()
        connection = only(server.server)
        # More answers than fit, so that its last requests wait to be read. Nobody hears of its end through them.
        request = frame(encode(m.ListModelsRequest(9)))
        await loop.sock_sendall(deaf, _configured())
        while connection.transport.is_reading():
            await loop.sock_sendall(deaf, request * 50)
            await asyncio.sleep(0)
        deaf.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until(lambda: not server.server.connections)


async def test_a_vanished_client_takes_its_turns_along(server: Served) -> None:
    async with server.peer() as peer:
        agents = [await peer.agent(SLOW) for _ in range(3)]
        peer.say(*(m.SendMessageRequest(3, agent, LONG) for agent in agents))
        await until(lambda: len(server.server.turns) == 3)
    await until(lambda: not server.server.turns)
    await until(lambda: not server.server.connections)


# The server's own end.


async def test_a_server_that_stops_lets_turns_end_and_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    async with served(tmp_path) as server, server.peer() as idle, server.peer() as busy:
        agent, other = await busy.agent(SLOW), await busy.agent()
        busy.say(m.SendMessageRequest(3, agent, "a few words"))
        await busy.get(m.AnswerText)
        closing = asyncio.create_task(server.server.close())
        assert (await idle.get(m.ErrorResponse)).code == 2001
        assert await idle.hear() is None
        busy.say(m.SendMessageRequest(4, other, "more"), m.HealthRequest(5))
        heard: list[m.Message] = []
        while (message := await busy.hear()) is not None:
            heard.append(message)
        errors = [(each.request_id, each.code) for each in heard if isinstance(each, m.ErrorResponse)]
        assert errors == [(4, 2001), (0, 2001)]
        assert [each.status for each in heard if isinstance(each, m.HealthResponse)] == ["stopping"]
        assert [each.status for each in heard if isinstance(each, m.TurnComplete)] == [m.TurnStatus.SUCCESS]
        await closing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(server.host, server.port)


async def test_a_server_that_stops_does_not_wait_for_long_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "GRACE_SECONDS", 0.2)
    async with served(tmp_path) as server, server.peer() as peer:
        agent = await peer.agent(SLOW)
        peer.say(m.SendMessageRequest(3, agent, LONG))
        await peer.get(m.AnswerText)
        async with asyncio.timeout(PATIENCE_SECONDS):
            closing = asyncio.create_task(server.server.close())
            heard: list[m.Message] = []
            while (message := await peer.hear()) is not None:
                heard.append(message)
            await closing
        assert [each.status for each in heard if isinstance(each, m.TurnComplete)] == [m.TurnStatus.CANCELLED]


async def test_a_long_answer_to_a_client_that_is_gone_is_given_up_without_a_word(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with server.peer():
        connection = only(server.server)
        # As when the first of its frames finds nobody.
        connection.transport.abort()
        for _ in range(20):
            connection.send(b"\0" * HIGH_WATER)
        await until(lambda: not server.server.connections)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def _transport(peer: Peer) -> asyncio.Transport:
    assert isinstance(peer.writer.transport, asyncio.Transport)
    return peer.writer.transport


async def _deaf(server: Served) -> socket.socket:
    """A client that never reads, with little room for what it is sent."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, (server.host, server.port))
    await until(lambda: bool(server.server.connections))
    return made


async def _read_to_the_end(deaf: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(deaf, 1 << 20):
        pass


async def _send_for_ever(deaf: socket.socket, data: bytes) -> None:
    while True:
        try:
            await asyncio.get_running_loop().sock_sendall(deaf, data)
        except OSError:
            return


def _configured() -> bytes:
    return frame(encode(m.ConfigureSessionRequest(1)))
