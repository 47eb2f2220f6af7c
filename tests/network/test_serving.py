"""The network as a server on a real port: bounds that only a socket can break, and an end in bounded time."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base import asgi_protocol as protocol
from trunkline.core.faults import ConfigError
from trunkline.network import serving
from trunkline.network.network import Network, NetworkSettings
from trunkline.store.database import Database

HOST = "127.0.0.1"
REQUEST = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"


@asynccontextmanager
async def served(database: Database) -> AsyncIterator[tuple[int, asyncio.Event, asyncio.Task[None]]]:
    """A server, its port, what stops it, and the task that it is."""
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    network = Network(database, NetworkSettings())
    task = asyncio.create_task(serving.serve(network, HOST, 0, stop, lambda _, found: port.set_result(found)))
    try:
        yield await asyncio.wait_for(port, PATIENCE_SECONDS), stop, task
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


async def test_a_server_with_an_open_stream_ends_at_once(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody waits for it.
    monkeypatch.setattr(asgi, "GRACE_SECONDS", 10 * PATIENCE_SECONDS)
    async with served(sqlite_database) as (port, stop, task):
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=PATIENCE_SECONDS) as client:
            assert (await client.get("/readyz")).status_code == 200
            async with client.stream("GET", "/api/events") as stream:
                chunks = stream.aiter_bytes()
                assert await anext(chunks) == b"retry: 3000\n\n"
                stop.set()
                assert b"".join([chunk async for chunk in chunks]) == b": alive\n\n"
        await asyncio.wait_for(task, PATIENCE_SECONDS)


async def test_a_port_that_is_taken_is_a_clear_error(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, _, _):
        network = Network(sqlite_database, NetworkSettings())
        with pytest.raises(ConfigError, match=r"Cannot listen on `127\.0\.0\.1:\d+`: Address already in use"):
            await serving.serve(network, HOST, port, asyncio.Event(), lambda host, port: None)


async def test_who_sends_a_head_without_end_is_told_so_in_json(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, _, _):
        for head in (b"x: " + b"a" * (16 * protocol.MAX_HEAD), b"x: a\r\n" * (4 * protocol.MAX_HEAD)):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET / HTTP/1.1\r\n" + head)
            answer = await _ending(reader)
            assert answer.startswith(b"HTTP/1.1 431 ")
            assert answer.endswith(b'{"error":"The head of a request may have 65536 bytes at most."}')
            writer.close()


async def test_heads_without_end_and_without_haste_are_cut_off(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(sqlite_database) as (port, _, _):
        # Not in the middle of the answer to another request.
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"retry: 3000\n\n"), PATIENCE_SECONDS)
        writer.write(b"GET / HTTP/1.1\r\nx: " + b"a" * (16 * protocol.MAX_HEAD))
        assert b"431" not in await _ending(reader)
        writer.close()
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
        for silent in (b"", b"GET / HT"):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(silent)
            assert await _ending(reader) == b""
            writer.close()


async def test_what_is_not_http_is_400_in_json(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, _, _):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"nonsense\r\n\r\n")
        answer = await _ending(reader)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b'{"error":"Invalid HTTP request received."}')
        writer.close()


async def test_when_there_is_no_room_the_longest_silent_connection_goes(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "MAX_CONNECTIONS", 5)
    async with served(sqlite_database) as (port, _, _):
        silent = [await asyncio.open_connection(HOST, port) for _ in range(5)]
        # Whoever asked something a moment ago is not the one that was silent for the longest.
        silent[0][1].write(REQUEST)
        assert (await silent[0][0].readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=PATIENCE_SECONDS) as client:
            assert (await client.get("/livez")).status_code == 200
        assert await _ending(silent[1][0]) == b""
        silent[0][1].write(REQUEST)
        assert (await silent[0][0].readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        for _, writer in silent:
            writer.close()


async def test_when_all_connections_are_at_work_others_are_told_in_json(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "MAX_CONNECTIONS", 2)
    async with (
        served(sqlite_database) as (port, _, _),
        httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=PATIENCE_SECONDS) as client,
    ):
        async with client.stream("GET", "/api/events"), client.stream("GET", "/api/events"):
            answer = await client.get("/livez")
            assert (answer.status_code, answer.headers["connection"]) == (503, "close")
            assert answer.json() == {"error": "Too many connections. Try again later."}
        assert (await client.get("/livez")).status_code == 200


async def test_who_sends_too_much_still_gets_to_read_the_answer(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, _, _):
        size = 40 * 1024 * 1024  # More than any body may have here.
        for more in (b"", b"connection: close\r\n"):
            reader, writer = await asyncio.open_connection(HOST, port)
            head = b"POST /api/threads HTTP/1.1\r\nhost: localhost\r\n" + more + b"content-length: %d\r\n\r\n"
            writer.write(head % size)
            for _ in range(40):
                writer.write(bytes(1024 * 1024))
                await writer.drain()
            answer = await _ending(reader)
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert b'{"error":' in answer
            writer.close()


async def test_the_rest_of_a_body_does_not_keep_a_connection(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(sqlite_database) as (port, _, _):
        head = b"POST /api/agents/nonce HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n"
        for more in (b"", b"connection: close\r\n"):
            reader, writer = await asyncio.open_connection(HOST, port)
            monkeypatch.setattr(protocol, "REST_SECONDS", 0.1)
            writer.write(head + more + b"\r\n")
            assert (await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_SECONDS)).startswith(b"HTTP/1.1 401 ")
            dribbling = asyncio.create_task(_dribble(writer))
            assert await _ending(reader) == b""
            dribbling.cancel()
            writer.close()
        # One that arrives in time leaves the connection usable, and then as short-lived as any.
        monkeypatch.setattr(protocol, "REST_SECONDS", PATIENCE_SECONDS)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(head + b"\r\n")
        await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_SECONDS)
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.1)
        writer.write(b"x" * 100_000 + REQUEST)
        assert (await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_SECONDS)).startswith(b"HTTP/1.1 200 ")
        dribbling = asyncio.create_task(_dribble(writer, b"\r\n"))
        assert await _ending(reader) == b""
        dribbling.cancel()
        writer.close()


def test_a_server_asks_for_more_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    for limits, most, files in (
        ((1024, 1_000_000), 10_000, [(65_536, 1_000_000)]),
        ((1024, 2048), 2048 - asgi.OWN_FILES, [(2048, 2048)]),
        ((1024, 1024), 1024 - asgi.OWN_FILES, []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 10_000, []),
    ):
        asked.clear()
        monkeypatch.setattr(resource, "getrlimit", lambda which, limits=limits: limits)
        assert (asgi.most_connections(), asked) == (most, files)


async def _dribble(writer: asyncio.StreamWriter, what: bytes = b"x") -> None:
    while True:
        writer.write(what)
        await asyncio.sleep(0.02)


async def _ending(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the other side closes; a reset is an end, too."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    except ConnectionResetError:
        return b""
