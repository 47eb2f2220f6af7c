"""The network as a server on a real port: bounds that only a socket can break, and an end in bounded time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from trunkline.base import asgi
from trunkline.base import asgi_protocol as protocol
from trunkline.core.faults import ConfigError
from trunkline.network import serving
from trunkline.network.database import Database
from trunkline.network.network import Network, Settings

HOST = "127.0.0.1"


@asynccontextmanager
async def served(database: Database) -> AsyncIterator[tuple[int, asyncio.Event, asyncio.Task[None]]]:
    """A server, its port, what stops it, and the task that it is."""
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    network = Network(database, Settings())
    task = asyncio.create_task(serving.serve(network, HOST, 0, stop, lambda _, found: port.set_result(found)))
    try:
        yield await asyncio.wait_for(port, 10), stop, task
    finally:
        stop.set()
        await asyncio.wait_for(task, 10)


async def test_a_server_with_an_open_stream_ends_at_once(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, stop, task):
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}") as client:
            assert (await client.get("/readyz")).status_code == 200
            async with client.stream("GET", "/api/events") as stream:
                chunks = stream.aiter_bytes()
                assert await anext(chunks) == b"retry: 3000\n\n"
                began = time.monotonic()
                stop.set()
                assert b"".join([chunk async for chunk in chunks]) == b": alive\n\n"
        await asyncio.wait_for(task, 5)
        assert time.monotonic() - began < asgi.GRACE_SECONDS


async def test_a_port_that_is_taken_is_a_clear_error(sqlite_database: Database) -> None:
    async with served(sqlite_database) as (port, _, _):
        network = Network(sqlite_database, Settings())
        with pytest.raises(ConfigError, match=r"Cannot listen on `127\.0\.0\.1:\d+`: Address already in use"):
            await serving.serve(network, HOST, port, asyncio.Event(), lambda host, port: None)


async def test_heads_without_end_and_without_haste_are_cut_off(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(sqlite_database) as (port, _, _):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET / HTTP/1.1\r\nx: " + b"a" * (4 * protocol.MAX_HEAD))
        assert await _ending(reader) == b""
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


async def _ending(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the other side closes; a reset is an end, too."""
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except ConnectionResetError:
        return b""
