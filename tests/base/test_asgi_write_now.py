"""Chunks that are written without waiting: whole and in order, and not for a client that is behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.base.asgi_write_now import WRITE_NOW, WriteNow, never

Send = Callable[[dict[str, Any]], Awaitable[None]]
#: What an answer does between its head and its end.
Body = Callable[[WriteNow, Send], Awaitable[None]]


@asynccontextmanager
async def asked(body: Body, head: str = "GET / HTTP/1.1") -> AsyncIterator[asyncio.StreamReader]:
    """What a client reads that has sent a request."""

    async def answer(scope: dict[str, Any], receive: Any, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await body(scope["extensions"][WRITE_NOW], send)
        await send({"type": "http.response.body", "body": b""})

    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(asgi.serve(answer, "127.0.0.1", 0, stop, lambda _, found: port.set_result(found)))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", await port)
            writer.write(f"{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            yield reader
            writer.close()
    finally:
        stop.set()
        await serving


async def test_what_is_written_now_and_what_is_sent_come_in_order() -> None:
    async def body(write_now: WriteNow, send: Send) -> None:
        assert write_now(b"3\r\none\r\n")
        await send({"type": "http.response.body", "body": b"two", "more_body": True})
        assert write_now(b"5\r\nthree\r\n")

    async with asked(body) as reader:
        _, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        assert rest == b"3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"


async def test_a_client_that_does_not_read_is_not_written_to() -> None:
    chunk = b"%x\r\n%b\r\n" % (100_000, b"x" * 100_000)
    written = 0
    full = asyncio.Event()

    async def body(write_now: WriteNow, send: Send) -> None:
        nonlocal written
        while write_now(chunk):
            written += 1
        full.set()
        # This waits for it, and then it can be written to again.
        await send({"type": "http.response.body", "body": b"late", "more_body": True})
        assert write_now(b"4\r\nlast\r\n")

    async with asked(body) as reader:
        await full.wait()
        _, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        assert rest == chunk * written + b"4\r\nlate\r\n4\r\nlast\r\n0\r\n\r\n"


async def test_where_there_are_no_chunks_nothing_is_written() -> None:
    async def body(write_now: WriteNow, send: Send) -> None:
        assert not write_now(b"3\r\none\r\n")

    async with asked(body, "HEAD / HTTP/1.1") as reader:
        assert (await reader.read()).endswith(b"\r\n\r\n")


def test_servers_without_it_write_nothing() -> None:
    assert not never(b"3\r\none\r\n")
