"""A homeserver that answers as a test tells it to, also badly: over a real socket, on the test's own loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ME = "@bot:here"


class Asked:
    """A request as it came."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        self.method = method
        self.target = target
        self.path = unquote(parts.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.headers = headers
        self.body = body

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body or b"{}")
        return found


#: A status with JSON; or the bytes of an answer, after which the connection ends; or None, and it ends without any.
Answer = tuple[int, dict[str, Any]] | bytes | None


class Scripted:
    """Answers by the end of the path; what nobody scripted is refused."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self._scripts: list[tuple[str, Callable[[Asked], Answer]]] = []
        #: Requests whose path holds this are never answered.
        self.silent: str | None = None
        self.answers("/whoami", lambda _: (200, {"user_id": ME, "device_id": "D"}))
        self.answers("/media/config", lambda _: (200, {"m.upload.size": 1000}))

    def answers(self, part: str, script: Callable[[Asked], Answer]) -> None:
        """Paths with this in it are answered so. The newest script counts."""
        self._scripts.insert(0, (part, script))

    def always(self, part: str, answer: Answer) -> None:
        """They are answered so each time."""
        self.answers(part, lambda _: answer)

    def requests(self, part: str) -> list[Asked]:
        return [asked for asked in self.asked if part in asked.path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _request(reader)) is not None:
                self.asked.append(asked)
                if self.silent is not None and self.silent in asked.path:
                    await reader.read()
                    return
                answer = self._answer(asked)
                if isinstance(answer, tuple):
                    writer.write(_encoded(*answer))
                    continue
                writer.write(answer or b"")
                return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def _answer(self, asked: Asked) -> Answer:
        for part, script in self._scripts:
            if part in asked.path:
                return script(asked)
        return 404, {"errcode": "M_UNRECOGNIZED", "error": "not scripted"}


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    """Such a server, until the end of the block."""
    server = Scripted()
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(begin, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)


def _encoded(status: int, answer: dict[str, Any]) -> bytes:
    body = json.dumps(answer).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )
