"""A connection of a Tryll server that is a WebSocket: the same sessions, for browsers and engines.

A message of the WebSocket is a payload, without the length that TCP has in front of it. With `?format=json` in the
address it is a text instead, the JSON form of the same message. All that a session promises over TCP it promises here:
this module only says how its bytes look.
"""

from __future__ import annotations

from http import HTTPStatus
from struct import Struct
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs

from websockets.exceptions import InvalidMessage
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from trunkline.wires.tryll.codec import MAX_FRAME, FrameTooLarge, Malformed, decode, json_form
from trunkline.wires.tryll.fitting import payloads
from trunkline.wires.tryll.messages import Message
from trunkline.wires.tryll.serve.connection import ServerConnection

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve.origins import AllowedOrigins
    from trunkline.wires.tryll.serve.server import TryllServer

Form = Literal["binary", "json"]

#: Bytes that are read at once. A frame takes six, and more time than one of TCP: whoever sends many small ones is not
#: to keep the others waiting for all that `connection` reads at once.
_READ = 4096
#: Why a session ends, as WebSockets say it. Everything else that a server refuses is a policy of its own.
_CLOSE_CODES = {2001: CloseCode.GOING_AWAY, 5003: CloseCode.MESSAGE_TOO_BIG}
#: What comes in place of a message of the other kind.
_OTHER_KIND = b"a message of the other kind"

_BEARER = "bearer "
#: The only one that there is; whoever asks for another is told.
_VERSION = "13"

_u32 = Struct("<I").unpack_from
_u16_pack = Struct(">BBH").pack
_u64_pack = Struct(">BBQ").pack


class _Protocol(ServerProtocol):
    """A WebSocket that does not end by itself when a message is too long: the session has something to say first."""

    too_large = False

    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        """Note that a message is too long; end for any other reason."""
        if code == CloseCode.MESSAGE_TOO_BIG:
            self.too_large = True
        else:
            super().fail(code, reason)


class WebSocketConnection(ServerConnection):
    """Connects a transport and a session, once a request for a WebSocket has come."""

    __slots__ = ("_allowed", "_close_code", "_form", "_held", "_is_open", "_is_text", "_parts", "_protocol")

    def __init__(self, server: TryllServer, allowed: AllowedOrigins) -> None:
        super().__init__(server)
        self._allowed = allowed
        self._protocol = _Protocol(max_size=MAX_FRAME)
        self._form: Form = "binary"
        self._is_open = self._is_text = False
        self._parts: bytearray | None = None
        """What has come of a message that is sent in several frames."""
        self._held = 0
        """Bytes of a frame, or of a request, that is not complete."""
        self._close_code = CloseCode.NORMAL_CLOSURE

    # Bytes in.

    def _greet(self) -> None:
        # The session begins with the WebSocket, and not with the connection.
        self.server.unfinished(self, True, True)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.server.buffer[:_READ]

    def buffer_updated(self, nbytes: int) -> None:
        if self._ending:
            return
        protocol = self._protocol
        self._held += nbytes
        protocol.receive_data(bytes(self.server.buffer[:nbytes]))
        found: list[bytes] = []
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take_frame(event, found)
            elif isinstance(event, Request):
                self._answer(event)
        if protocol.handshake_exc is not None:
            if isinstance(protocol.handshake_exc, InvalidMessage):
                self._not_understood()
            self._settle()
            self.end()
        elif self._is_open:
            if protocol.too_large:
                self._too_large = FrameTooLarge(f"a message is longer than {MAX_FRAME} bytes")
            self._received(found, self._held > 0 or self._parts is not None)
        self._settle()

    def _take_frame(self, frame: Frame, found: list[bytes]) -> None:
        """Add the payload that a frame completes."""
        size = len(frame.data)
        self._held = max(self._held - size - (6 if size < 126 else 8 if size < 1 << 16 else 14), 0)
        if frame.opcode is Opcode.TEXT or frame.opcode is Opcode.BINARY:
            self._is_text = frame.opcode is Opcode.TEXT
            self._parts = bytearray()
        elif frame.opcode is not Opcode.CONT:
            return
        if self._parts is None:
            return
        self._parts += frame.data
        if frame.fin:
            found.append(bytes(self._parts) if self._is_text == (self._form == "json") else _OTHER_KIND)
            self._parts = None

    def _settle(self) -> None:
        """Send what the WebSocket itself has to say: it answers pings, and the end."""
        replies = b"".join(self._protocol.data_to_send())
        if replies and not self._closed:
            super()._write(replies)
        if self._is_open and self._protocol.state is not OPEN:
            # The client has ended it, in order or not; and nothing may be sent behind the answer to that.
            self._is_open = False
            self._eof = True
            self.end()
        elif self.behind and self._backlog is None and not self._ending:
            # Even pings are not read from a client that does not read.
            self._backlog = []
            self.transport.pause_reading()
            self.server.not_reading(self)

    # The request for it.

    def _answer(self, request: Request) -> None:
        """Open the WebSocket, or say why not."""
        self._held = 0
        problem = self._refusal(request)
        response = self._protocol.reject(*problem) if problem is not None else self._protocol.accept(request)
        if response.status_code == HTTPStatus.UPGRADE_REQUIRED:
            response.headers["Sec-WebSocket-Version"] = _VERSION
        self._protocol.send_response(response)
        super()._write(b"".join(self._protocol.data_to_send()))
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._is_open = True
            super()._greet()
        else:
            self.end()

    def _not_understood(self) -> None:
        """Answer what cannot be read as a request."""
        told = "A request for a WebSocket is HTTP/1.1, in ASCII, has each header on one line, and no body.\n"
        super()._write(self._protocol.reject(HTTPStatus.BAD_REQUEST, told).serialize())

    def _refusal(self, request: Request) -> tuple[HTTPStatus, str] | None:
        headers = request.headers
        if len(headers.get_all("Host")) > 1:
            return HTTPStatus.BAD_REQUEST, "A request has one `Host`.\n"
        problem = self._allowed.problem(headers.get_all("Origin"), headers.get_all("Host"))
        if problem is not None:
            return HTTPStatus.FORBIDDEN, f"{problem}\n"
        versions = headers.get_all("Sec-WebSocket-Version")
        if versions and versions != [_VERSION]:
            return HTTPStatus.UPGRADE_REQUIRED, f"The version of the WebSocket is {_VERSION}.\n"
        forms = parse_qs(request.path.partition("?")[2], keep_blank_values=True).get("format", ["binary"])
        if forms not in (["binary"], ["json"]):
            return HTTPStatus.BAD_REQUEST, "`format` is `json` or `binary`.\n"
        self._form = "json" if forms == ["json"] else "binary"
        given = headers.get_all("Authorization")
        if len(given) == 1 and given[0][: len(_BEARER)].lower() == _BEARER:
            self.bearer = given[0][len(_BEARER) :].strip()
        return None

    # Messages.

    def _read(self, payload: bytes) -> Message:
        if payload is _OTHER_KIND:
            wanted = "texts, one JSON object each" if self._form == "json" else "binary, one FlatBuffer each"
            raise Malformed(f"the messages of this WebSocket are {wanted}")
        return json_form.decode(payload) if self._form == "json" else decode(payload)

    def _write(self, data: bytes) -> None:
        """Write some frames, each as a message of its own."""
        if not self._is_open:
            return
        out: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            after = at + 4 + _u32(data, at)[0]
            payload = data[at + 4 : after]
            at = after
            if self._form == "json":
                for text in payloads(decode(payload), json_form.encode):
                    out += (_head(Opcode.TEXT, len(text)), text)
            else:
                out += (_head(Opcode.BINARY, len(payload)), payload)
        super()._write(b"".join(out))

    # The end.

    def refuse(self, code: int, message: str, request_id: int = 0) -> None:
        if not self._ending:
            self._close_code = _CLOSE_CODES.get(code, CloseCode.POLICY_VIOLATION)
        super().refuse(code, message, request_id)

    def finish(self) -> None:
        if self._is_open and not self._closed:
            self.flush()
            self._is_open = False
            if self._protocol.state is OPEN:
                self._protocol.send_close(self._close_code)
                super()._write(b"".join(self._protocol.data_to_send()))
        super().finish()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # It and the protocol know each other.
        self._protocol.parser.close()


def _head(opcode: int, size: int) -> bytes:
    """What stands in front of a message of a server's: it is whole, and not masked."""
    first = 0x80 | opcode
    if size < 126:
        return bytes((first, size))
    return _u16_pack(first, 126, size) if size < 1 << 16 else _u64_pack(first, 127, size)
