"""Questions over HTTP/1.1, straight to the server: sockets and TLS by asyncio, what goes over them by `h11`.

A connection whose answer was read to its end is kept for the next question; any other is cut off. A question for which
a kept one turns out to be closed, with no answer begun, is asked on a new one.
"""

from __future__ import annotations

import asyncio
import os
import select
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote, unquote, urlsplit

import h11

from trunkline.base import http
from trunkline.base.posting import ConnectionFailed, Failure, Unpacking, why_unmade
from trunkline.base.values import Value

#: One read, and one piece of a body that is sent: each has the whole time limit.
READ_BYTES = 64 * 1024
WRITE_BYTES = 256 * 1024
#: The longest head of an answer: providers send some dozen headers, a gateway adds cookies and policies.
MAX_HEAD_BYTES = 100 * 1024
#: Connections kept: as many as sub-agents ask at one time.
MAX_IDLE = 10
#: A second address of a host is tried when the first has not answered after this: RFC 8305 says so.
NEXT_ADDRESS_SECONDS = 0.25

_PORTS = {"http": 80, "https": 443}
#: What an address may hold as it is; `%` because it was quoted before.
_SAFE = "/%:@!$&'()*+,;=~-._?"


class _Place(Value):
    """Where a connection leads."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Direct:
    """A `Poster`. `trusted`: who may say that a server is the one it claims to be; None where nobody will be asked."""

    def __init__(self, trusted: ssl.SSLContext | None) -> None:
        self._trusted = trusted
        if trusted is not None:
            trusted.set_alpn_protocols(["http/1.1"])
        self._idle: list[_Connection] = []

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, connect: float) -> _Answer:
        return await self._asked("POST", url, {**headers, "content-length": str(len(body))}, body, connect)

    async def get(self, url: str, headers: Mapping[str, str], *, connect: float) -> _Answer:
        return await self._asked("GET", url, headers, b"", connect)

    async def _asked(self, method: str, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> _Answer:
        place, target, own = _split(url)
        sent = {**own, "accept": "*/*", "accept-encoding": "identity", "user-agent": http.user_agent()}
        sent |= {name.lower(): value for name, value in headers.items()}
        if (kept := self._kept(place)) is not None:
            try:
                return await self._exchanged(kept, method, target, sent, body)
            except ConnectionFailed as error:
                # The server has closed it while the question was on its way: that says nothing of a new one.
                if error.failure != "lost":
                    raise
        return await self._exchanged(await self._connected(place, connect), method, target, sent, body)

    async def _exchanged(
        self, connection: _Connection, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> _Answer:
        try:
            await connection.send(method, target, headers, body)
            head = await connection.head()
        except BaseException:
            connection.cut()
            raise
        return _Answer(head, connection, self)

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().cut()

    def keep(self, connection: _Connection) -> None:
        """Take a connection back whose answer has come to its end."""
        if connection.again() and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.cut()

    def _kept(self, place: _Place) -> _Connection | None:
        """The connection used last that is still good. Those that are not are forgotten."""
        for connection in reversed(tuple(self._idle)):
            if connection.gone():
                self._idle.remove(connection)
                connection.cut()
            elif connection.place == place:
                self._idle.remove(connection)
                return connection
        return None

    async def _connected(self, place: _Place, seconds: float) -> _Connection:
        secure = place.scheme == "https"
        if secure and self._trusted is None:
            self._trusted = http.trusted()
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                reader = _Reader(loop=loop)
                transport, protocol = await loop.create_connection(
                    lambda: asyncio.StreamReaderProtocol(reader, loop=loop),
                    place.host,
                    place.port,
                    ssl=self._trusted if secure else None,
                    server_hostname=place.host if secure else None,
                    # What is an address has no second one, and asyncio's race forgets to close what it has made when
                    # somebody gives up in that very moment.
                    happy_eyeballs_delay=None if _is_address(place.host) else NEXT_ADDRESS_SECONDS,
                )
        except TimeoutError:
            raise ConnectionFailed("late", str(place)) from None
        except OSError as error:
            raise ConnectionFailed(why_unmade(error), str(place), _reason(error)) from error
        return _Connection(place, reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class _Reader(asyncio.StreamReader):
    """One that knows how much has come and was not read."""

    unread = 0

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # transports feed bytes
        self.unread += len(data)
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        self.unread -= len(data)
        return data


class _Connection:
    """One connection: a request at a time, and its answer."""

    def __init__(self, place: _Place, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        self.place = place
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._since = 0.0
        """Since when it waits for its next question."""

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send a request. That nobody reads it to its end shows in the answer, which may say why."""
        try:
            request = h11.Request(method=method, target=target, headers=list(headers.items()))
            head = self._state.send(request) or b""
            # h11 counts what is sent; it is not copied.
            self._state.send_with_data_passthrough(h11.Data(data=body))
            self._state.send(h11.EndOfMessage())
        except h11.LocalProtocolError as error:
            raise self._failed("unsendable", error) from error
        try:
            self._writer.write(head)
            view = memoryview(body)
            for start in range(0, len(body), WRITE_BYTES):
                self._writer.write(view[start : start + WRITE_BYTES])
                async with asyncio.timeout(http.WRITE_SECONDS):
                    await self._writer.drain()
        except TimeoutError:
            raise ConnectionFailed("silent", str(self.place)) from None
        except OSError:
            return

    async def head(self) -> h11.Response:
        """The beginning of the answer."""
        while not isinstance(event := await self._event(), h11.Response):
            pass
        return event

    async def data(self) -> bytes | None:
        """The next piece of the answer; None at its end."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    def again(self) -> bool:
        """Be ready for another question, if that is possible."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        if self._state.trailing_data[0]:
            # More than the answer: it would be taken for the next one.
            return False
        self._state.start_next_cycle()
        self._since = time.monotonic()
        return True

    def gone(self) -> bool:
        """Whether it is too old, or closed by the server: whatever comes unasked is a reason to leave it."""
        if time.monotonic() - self._since > http.KEEPALIVE_SECONDS:
            return True
        if self._reader.unread or self._reader.at_eof() or self._writer.transport.is_closing():
            return True
        poller = select.poll()
        poller.register(self._writer.get_extra_info("socket"), select.POLLIN)
        return bool(poller.poll(0))

    def cut(self) -> None:
        """Close it, at once."""
        self._writer.transport.abort()

    async def _event(self) -> object:
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(http.READ_SECONDS):
                    data = await self._reader.read(READ_BYTES)
                if not data and self._state.their_state is h11.SEND_RESPONSE:
                    raise ConnectionFailed("lost", str(self.place))
                self._state.receive_data(data)
        except TimeoutError:
            raise ConnectionFailed("silent", str(self.place)) from None
        except (h11.RemoteProtocolError, OSError) as error:
            raise self._failed("lost", error) from error
        return event

    def _failed(self, failure: Failure, error: Exception) -> ConnectionFailed:
        return ConnectionFailed(failure, str(self.place), _reason(error))


class _Answer:
    """A `Response`."""

    def __init__(self, head: h11.Response, connection: _Connection, owner: Direct) -> None:
        self.status = head.status_code
        self.headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        self._connection: _Connection | None = connection
        self._owner = owner

    async def pieces(self) -> AsyncIterator[bytes]:
        connection = self._connection
        if connection is None:
            return
        unpack = Unpacking(self.headers, str(connection.place))
        try:
            while (data := await connection.data()) is not None:
                for piece in unpack(data):
                    yield piece
            if self._connection is not None:
                self._connection = None
                self._owner.keep(connection)
        finally:
            await self.close()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cut()


def _split(url: str) -> tuple[_Place, str, dict[str, str]]:
    """Where to ask, for what, and the headers that the address itself asks for.

    Raises:
        ValueError: it is no address.
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname or ""
    if scheme not in _PORTS or not host:
        raise ValueError("it names no host")
    if not host.isascii():
        import idna

        host = idna.encode(host).decode("ascii")
    place = _Place(scheme, host, parts.port or _PORTS[scheme])
    headers = {"host": str(place)}
    if parts.username is not None:
        from base64 import b64encode

        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return place, target, headers


def _is_address(host: str) -> bool:
    """Whether it is no name, and so stands for itself alone."""
    return ":" in host or host.replace(".", "").isdigit()


def _reason(error: Exception) -> str:
    """Why, in the system's words; asyncio's own repeat the address."""
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno) if error.errno > 0 else error.strerror or ""
    return str(error)
