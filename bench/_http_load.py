"""Many HTTP requests on some connections, sent and counted with as little of the processor as Python allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence

#: Longer than any single measurement, even on a busy machine.
PATIENCE_SECONDS = 120

_LENGTH = b"content-length: "


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A request, ready to be sent."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class _Connection(asyncio.Protocol):
    """Sends the next request when the last one was answered with success."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._done = done
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self) -> None:
        data = next(self._requests, None)
        if data is not None:
            self._transport.write(data)
        elif not self._done.done():
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, mark, body = self._answer.partition(b"\r\n\r\n")
        if not mark:
            return
        place = head.lower().index(_LENGTH) + len(_LENGTH)
        if len(body) < int(head[place:].split(b"\r\n", 1)[0]):
            return
        if not head.startswith(b"HTTP/1.1 2"):
            self._fail(f"answered with {self._answer[:500]!r}")
        self._answer = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the connection was lost: {error}")

    def close(self) -> None:
        self._transport.close()

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(AssertionError(why))


async def load(port: int, requests: Sequence[bytes], connections: int) -> float:
    """Send them all, and return how long it took until the last one was answered.

    Raises:
        AssertionError: one of them was not answered with success.
    """
    loop = asyncio.get_running_loop()
    rest = iter(requests)
    made = [(loop.create_future(), await _connected(port)) for _ in range(connections)]
    peers = []
    for done, transport in made:
        peer = _Connection(rest, done)
        transport.set_protocol(peer)
        peer.connection_made(transport)
        peers.append(peer)
    started = time.perf_counter()
    for peer in peers:
        peer.send()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(done for done, _ in made))
        return time.perf_counter() - started
    finally:
        for peer in peers:
            peer.close()


async def _connected(port: int) -> asyncio.Transport:
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)
    return transport
