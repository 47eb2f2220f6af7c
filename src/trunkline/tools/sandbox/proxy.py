"""The network of the sandbox: a proxy that reaches the hosts that are allowed by name, and nobody else.

Commands are in a network of their own, where nothing is but this proxy: it listens inside and runs in the agent, which
is outside. It speaks HTTP and `CONNECT`; programs find it by the usual variables.

    pypi.org             the host, on the ports of the web (80, 443)
    *.github.com         every host below, if its address is one of the world's
    localhost:5432       one port of a host; what is named so may be on this machine or its network

A port of this machine is there under its number, without a proxy: databases do not speak HTTP.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from trunkline.base import local_socket
from trunkline.base.hosts import is_loopback

#: The ports of a host that is named without one.
WEB_PORTS = (80, 443)
#: Connections at once: more than a package manager opens.
MOST_CONNECTIONS = 64
#: The longest head of a request.
HEAD_BYTES = 1 << 16
#: Hosts that are named in one result.
MOST_NAMED = 10
#: How long a program may take to say what it wants, and a host to answer.
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 20.0
#: How long the launcher may take to hand its socket over.
TAKE_SECONDS = 20.0

_PIECE_BYTES = 1 << 16
_LAST_PORT = 65535
_SOCKET = "proxy"
_ENTRY = re.compile(r"(?P<host>(\*\.)?[A-Za-z0-9._-]+|\*|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?")
#: Both ends of a connection, and who answers one.
_Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_Answer: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
#: Headers that are for a proxy, and those that would keep the connection for another request.
_OURS = ("proxy-", "connection:", "keep-alive:")


class Entry(NamedTuple):
    """One line of the list."""

    host: str
    port: int | None
    below: bool
    """Every host below it."""


class AllowedHosts:
    """The hosts that may be reached."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._texts = tuple(entries)
        self._entries = [_entry(text) for text in self._texts]

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __str__(self) -> str:
        return ", ".join(self._texts)

    def find(self, host: str, port: int) -> Entry | None:
        """The line that allows a host and port, if one does; one that names it before one that does not."""
        name = host.strip("[]").rstrip(".").lower()
        for entry in sorted(self._entries, key=lambda entry: entry.below):
            fits = (not entry.host or name.endswith(f".{entry.host}")) if entry.below else name == entry.host
            if fits and (port == entry.port if entry.port is not None else port in WEB_PORTS):
                return entry
        return None

    @property
    def own_ports(self) -> dict[int, str]:
        """The ports of this machine that are on the list, and the host that each stands there with."""
        named = [entry for entry in self._entries if not entry.below and is_loopback(entry.host)]
        return {entry.port: entry.host for entry in reversed(named) if entry.port is not None}


def is_entry(text: str) -> bool:
    """Whether it can stand on the list."""
    found = _ENTRY.fullmatch(text)
    return found is not None and (not found["port"] or 0 < int(found["port"]) <= _LAST_PORT)


def _entry(text: str) -> Entry:
    found = _ENTRY.fullmatch(text)
    if found is None or not is_entry(text):
        raise ValueError(f"`{text}` does not name a host")
    host = found["host"].strip("[]").rstrip(".").lower()
    port = int(found["port"]) if found["port"] else None
    return Entry(host.removeprefix("*").removeprefix("."), port, host.startswith("*"))


class _Refusal(NamedTuple):
    """The answer to a program that gets nothing: a status and why."""

    status: str
    why: str


class _Target(NamedTuple):
    """Whom a request is for."""

    host: str
    port: int
    onward: bytes | None
    """What is sent there; nothing, where a connection was asked for."""


class SandboxProxy:
    """Call `take` while the launcher makes the network, and `close` at the end, when nobody takes any more."""

    def __init__(self, allowed: AllowedHosts, directory: str) -> None:
        self._allowed = allowed
        self._directory = directory
        self._waiting = local_socket.listening(directory, _SOCKET)
        self._waiting.setblocking(False)
        self._servers: list[asyncio.Server] = []
        self._talks: set[asyncio.Task[None]] = set()
        self.url = ""
        """Where programs inside find it."""
        self.refused: dict[str, None] = {}
        """Whom programs wanted to reach who is not on the list."""

    @property
    def path(self) -> str:
        """Where the launcher finds us."""
        return os.path.join(self._directory, _SOCKET)

    @property
    def ports(self) -> list[int]:
        """Where the launcher has to listen, beside a port of its choice for the proxy."""
        return list(self._allowed.own_ports)

    async def take(self) -> None:
        """Take the sockets that listen inside, and answer there."""
        # Here, and not in a thread: who gives up closes what it would be looking at.
        async with asyncio.timeout(TAKE_SECONDS):
            connection, _ = await asyncio.get_running_loop().sock_accept(self._waiting)
        (listener, *others), port = await asyncio.to_thread(self._taken, connection)
        self.url = f"http://127.0.0.1:{port}"
        waiting = [(listener, self._serve)]
        for other, (own, host) in zip(others, self._allowed.own_ports.items(), strict=True):
            waiting.append((other, functools.partial(self._pass_on, host, own)))
        for each, answer in waiting:
            accept = functools.partial(self._accept, answer)
            self._servers.append(await asyncio.start_server(accept, sock=each, limit=HEAD_BYTES))

    def _taken(self, connection: socket.socket) -> tuple[list[socket.socket], int]:
        local_socket.forget(self._directory, _SOCKET)
        with connection:
            connection.settimeout(TAKE_SECONDS)
            said, fds, _, _ = socket.recv_fds(connection, 16, 1 + len(self.ports))
            listeners = [socket.socket(fileno=fd) for fd in fds]
            if len(listeners) != 1 + len(self.ports):
                raise OSError("the launcher gave no socket")
            connection.sendall(b"1")
        return listeners, int(said)

    async def close(self) -> None:
        """End it and every connection. May be called again."""
        self._waiting.close()
        for server in self._servers:
            server.close()
        for talk in self._talks:
            talk.cancel()
        if self._talks:
            await asyncio.wait(self._talks)

    def _accept(self, answer: _Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(answer(reader, writer), name="sandbox proxy")
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._talks) > MOST_CONNECTIONS:
                refusal: _Refusal | None = _Refusal("503 Service Unavailable", "too many connections at once")
            else:
                async with asyncio.timeout(HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                refusal = await self._relay(head, reader, writer)
            if refusal is not None:
                lines = f"HTTP/1.1 {refusal.status}", "Content-Type: text/plain", "Connection: close", "", refusal.why
                writer.write("\r\n".join((*lines[:-1], f"{lines[-1]}\n")).encode())
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Whoever called has gone, or says nothing that we understand.
            pass
        finally:
            writer.close()

    async def _pass_on(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody inside wants a port of this machine."""
        try:
            if len(self._talks) <= MOST_CONNECTIONS:
                await _connected((reader, writer), await asyncio.open_connection(host, port))
        except OSError:
            # Nobody listens there: nobody does inside, either.
            pass
        finally:
            writer.close()

    async def _relay(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Refusal | None:
        target = _target(head)
        if isinstance(target, _Refusal):
            return target
        reached = await self._reached(target.host, target.port)
        if isinstance(reached, _Refusal):
            return reached
        if target.onward is None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            reached[1].write(target.onward)
        await _connected((reader, writer), reached)
        return None

    async def _reached(self, host: str, port: int) -> _Ends | _Refusal:
        entry = self._allowed.find(host, port)
        if entry is None:
            if len(self.refused) < MOST_NAMED:
                self.refused[f"{host}:{port}"] = None
            return _Refusal("403 Forbidden", f"{host}:{port} is not in the sandbox's allow-list ({self._allowed})")
        why = f"{host} leads to an address that is not public"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                for address in await _addresses(host, port, entry):
                    try:
                        return await asyncio.open_connection(address, port)
                    except OSError as error:
                        why = str(error)
        except (OSError, TimeoutError, UnicodeError) as error:
            # (What is no name is found out when it is encoded.)
            why = str(error) or "no answer"
        return _Refusal("502 Bad Gateway", f"{host}:{port} cannot be reached: {why}")


async def _addresses(host: str, port: int, entry: Entry) -> Sequence[str]:
    """What a name stands for. Looked up once: what was looked at is what is connected to."""
    from trunkline.base.http_public import is_public

    found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return [address for address in addresses if not entry.below or is_public(address.partition("%")[0])]


def _target(head: bytes) -> _Target | _Refusal:
    first, _, rest = head.decode("latin-1").partition("\r\n")
    nonsense = _Refusal("400 Bad Request", "a proxy does not understand this")
    try:
        method, target, version = first.split(" ")
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = url.hostname, url.port
    except ValueError:
        return nonsense
    if not host or (method != "CONNECT" and url.scheme != "http"):
        return nonsense
    if method == "CONNECT":
        return _Target(host, port or 443, None)
    kept = [line for line in rest.split("\r\n") if line and not line.lower().startswith(_OURS)]
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
    return _Target(host, port or 80, "\r\n".join(lines).encode("latin-1"))


async def _connected(inside: _Ends, outside: _Ends) -> None:
    """Hand on what each of two says to the other, until both have said all; closes what leads outside."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(inside[0], outside[1]), name="sandbox proxy, out")
            group.create_task(_pump(outside[0], inside[1]), name="sandbox proxy, in")
    finally:
        outside[1].close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_PIECE_BYTES):
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
