"""A WebSocket to a Tryll server, for code that knows frames over TCP.

`WebSocketStream` stands between a connection and a protocol of `asyncio`, which sees what it would see over TCP: each
message with its length in front. What it writes goes out as messages; of a frame that it writes in pieces, each piece
goes at once, as a frame of the WebSocket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import Any, Self, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, PayloadTooBig
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from trunkline.base.printable import printable_line
from trunkline.wires.tryll.codec import MAX_FRAME, frame
from trunkline.wires.tryll.drive.address import ServerAddress

#: How long the server's end of a WebSocket is waited for before the connection is cut.
CLOSE_SECONDS = 1.0
#: How much is told of what a server says that opens no WebSocket.
_SHOWN_CHARS = 200

_u32 = Struct("<I")


def no_websocket(why: str) -> ConnectionError:
    """The server is there, and opens no WebSocket."""
    error = ConnectionError(why)
    # As `refusal` tells errors of the system.
    error.strerror = why
    return error


class WebSocketStream(asyncio.Protocol, asyncio.Transport):
    """The protocol of the connection, and the transport of the protocol that `make` makes."""

    def __init__(self, address: ServerAddress, make: Callable[[], asyncio.BaseProtocol]) -> None:
        super().__init__()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._websocket = ClientProtocol(parse_uri(f"{address}/"), max_size=MAX_FRAME)
        self._make = make
        self._inner: Any = None
        self._connection: asyncio.Transport | None = None
        self._parts = bytearray()
        """What has come of a message."""
        self._out = bytearray()
        """What was written, and is no piece of a frame yet."""
        self._left: int | None = None
        """How much of a frame is still to be written; None between two."""
        self._closing = False

    @classmethod
    async def open(cls, address: ServerAddress, make: Callable[[], asyncio.BaseProtocol], ssl: Any = None) -> Self:
        """Connect, and let the protocol know.

        Raises:
            OSError: there is no server; or it opens no WebSocket.
        """
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(
            lambda: cls(address, make), address.host, address.port, ssl=address.tls(ssl)
        )
        try:
            await asyncio.shield(made.opened)
        except BaseException:
            made.abort()
            raise
        return made

    # The connection's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection = cast("asyncio.Transport", transport)
        self._websocket.send_request(self._websocket.connect())
        self._send()

    def data_received(self, data: bytes) -> None:
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Response):
                self._begin()
            elif isinstance(event, Frame):
                self._take(event)
        self._send()
        if self._websocket.handshake_exc is not None:
            self._refused(self._websocket.handshake_exc)
        elif isinstance(self._websocket.parser_exc, PayloadTooBig):
            # The protocol hears of its length, which is all that it needs.
            self._give(_u32.pack(MAX_FRAME + 1))
        if self._websocket.state is not OPEN and not self._closing and self._inner is not None:
            self._end()

    def eof_received(self) -> None:
        if self._inner is not None and not self._closing:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self._refused(exc or no_websocket("it closed the connection"))
        inner, self._inner = self._inner, None
        self._closing = True
        if inner is not None:
            inner.connection_lost(exc)
        self._websocket.parser.close()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def _begin(self) -> None:
        if self._websocket.handshake_exc is None:
            self._inner = self._make()
            self._inner.connection_made(self)
            if not self.opened.done():
                self.opened.set_result(None)

    def _refused(self, error: Exception) -> None:
        if isinstance(error, InvalidStatus):
            body = bytes(error.response.body).decode("utf-8", "replace")[:_SHOWN_CHARS].strip()
            error = no_websocket(f"HTTP {error.response.status_code}: {printable_line(body)}")
        elif not isinstance(error, OSError):
            error = no_websocket("it does not speak WebSocket there")
        if not self.opened.done():
            self.opened.set_exception(error)
            # Nobody may be waiting any more.
            self.opened.exception()
        self.abort()

    def _take(self, found: Frame) -> None:
        if found.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._parts += found.data
            if found.fin:
                payload = bytes(self._parts)
                self._parts.clear()
                self._give(frame(payload))

    def _give(self, data: bytes) -> None:
        """What came, to the protocol; until it wants nothing more."""
        inner = self._inner
        if not isinstance(inner, asyncio.BufferedProtocol):
            if inner is not None and not self._closing:
                inner.data_received(data)
            return
        at = 0
        while at < len(data) and not self._closing:
            buffer = memoryview(inner.get_buffer(len(data) - at))
            size = min(len(buffer), len(data) - at)
            buffer[:size] = data[at : at + size]
            at += size
            inner.buffer_updated(size)

    def _end(self) -> None:
        """The server says nothing more."""
        self._inner.eof_received()
        self.close()

    def _send(self) -> None:
        if self._connection is not None and not self._connection.is_closing():
            self._connection.write(b"".join(self._websocket.data_to_send()))

    # The protocol's transport.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write frames, whole or not, each as a message."""
        if self._closing or self._websocket.state is not OPEN:
            return
        out = self._out
        out += data
        while out if self._left is not None else len(out) >= 4:
            begins = self._left is None
            if self._left is None:
                self._left = _u32.unpack_from(out)[0]
                del out[:4]
            piece = bytes(out[: self._left])
            del out[: len(piece)]
            self._left -= len(piece)
            send = self._websocket.send_binary if begins else self._websocket.send_continuation
            send(piece, not self._left)
            self._left = self._left or None
        self._send()

    def close(self) -> None:
        """End the WebSocket. The server closes the connection, or it is cut."""
        if self._closing:
            return
        self._closing = True
        if self._websocket.state is OPEN:
            self._websocket.send_close(CloseCode.NORMAL_CLOSURE)
        self._send()
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.abort)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Say that nothing more is said. A server answers with the same, and says nothing more either."""
        if self._websocket.state is OPEN:
            self._websocket.send_close(CloseCode.NORMAL_CLOSURE)
            self._send()

    def abort(self) -> None:
        self._closing = True
        if self._connection is not None:
            self._connection.abort()

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._tcp.is_reading()

    def pause_reading(self) -> None:
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._tcp.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._tcp.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tcp.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tcp.get_extra_info(name, default)

    @property
    def _tcp(self) -> asyncio.Transport:
        if self._connection is None:
            raise RuntimeError("there is no connection yet")
        return self._connection


async def open_streams(address: ServerAddress, ssl: Any = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A reader and a writer of frames, as `asyncio.open_connection` gives them over TCP.

    Raises:
        OSError: there is no server; or it opens no WebSocket.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_FRAME)
    protocol = asyncio.StreamReaderProtocol(reader)
    stream = await WebSocketStream.open(address, lambda: protocol, ssl)
    return reader, asyncio.StreamWriter(stream, protocol, reader, loop)
