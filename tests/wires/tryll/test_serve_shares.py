"""A Tryll server has time for everybody: for those whose frames take long, and for those that read slowly."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.support.tryll_served import echo, served
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll import serve_connection
from trunkline.wires.tryll.codec import encode, frame
from trunkline.wires.tryll.serve_connection import Connection
from trunkline.wires.tryll.serve_session import AGENT_BITS

pytestmark = pytest.mark.slow

STALL = 0.4


async def test_frames_that_take_long_leave_time_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_connection, "_SHARE_SECONDS", 0.0)
    rounds: list[int] = []
    taken = Connection._take

    def take(connection: Connection, found: list[bytes]) -> None:
        taken(connection, found)
        rounds.append(len(found) - len(connection._backlog or ()))

    async with served(tmp_path) as server, server.peer() as peer:
        monkeypatch.setattr(Connection, "_take", take)
        # Large ones one by one, and small ones a few at a time.
        for text, most in (("x" * 5000, 1), ("x", 15)):
            rounds.clear()
            peer.say(*(m.RestoreHistoryRequest(number, 1, (m.HistoryEntry("user", text),)) for number in range(1, 25)))
            answered = [(await peer.get(m.ErrorResponse)).request_id for _ in range(24)]
            assert answered == list(range(1, 25))
            assert (max(rounds), sum(rounds)) == (most, 24)


async def test_a_client_that_reads_slowly_is_waited_for_and_one_that_stops_is_not(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with served(tmp_path, stall_seconds=STALL) as server:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.setblocking(False)
            await loop.sock_connect(slow, (server.host, server.port))
            await loop.sock_recv(slow, 4096)
            (connection,) = server.server.connections
            agent = connection.id << AGENT_BITS | 1
            for each in (
                m.ConfigureSessionRequest(1),
                m.CreateAgentRequest(2, echo(), "any"),
                m.SendMessageRequest(3, agent, " ".join(["x"] * 300_000)),
            ):
                await loop.sock_sendall(slow, frame(encode(each)))
                await loop.sock_recv(slow, 100)
            while not connection.behind:  # noqa: ASYNC110  # it belongs to the server, which has no event for us
                await asyncio.sleep(0.005)
            until = loop.time() + 4 * STALL
            while loop.time() < until:
                assert await loop.sock_recv(slow, 2000)
                await asyncio.sleep(0.01)
            # All the time it was behind, and its turn went on.
            assert connection.behind
            assert server.server.connections == {connection}
            async with asyncio.timeout(5 * STALL):
                while server.server.connections:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
