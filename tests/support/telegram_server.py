"""A Bot API on loopback: a real HTTP server that behaves as Telegram's documentation says.

    async with TelegramServer() as server:
        server.world.says(chat=7, sender=7, text="Hello")
        ...                                         # a bot with `server.token` and `server.url` answers
        await server.until(lambda: server.world.said(7))
        assert server.world.said(7)[0].text == "Hello to you"

`server.fail`, `server.drop` and `server.hold` make trouble. Everything is in the loop that entered it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.support.patience import PATIENCE_SECONDS
from tests.support.stub_server import StubServer
from tests.support.telegram_world import Json, No, Upload, World

#: What a test waits for need not be the server's doing.
LOOK_SECONDS = 0.05


Trouble = Callable[[], Any]


class Call:
    """What the bot asked for."""

    def __init__(self, method: str, parameters: Json) -> None:
        self.method = method
        self.parameters = parameters

    def __repr__(self) -> str:
        return f"<Call {self.method} {self.parameters}>"


class _Dropped(Exception):
    """The connection is cut without an answer."""


class _Raw(Exception):
    """An answer that does not come from the Bot API."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class TelegramServer(StubServer):
    """The server. `world` is what it keeps; a second one with the same world is the server after a restart."""

    def __init__(self, world: World | None = None, token: str = "4200:AAE_test-token-0123456789abcdefghi") -> None:
        super().__init__()
        self.world = world or World()
        self.world.changed = self._changed
        self.token = token
        self.calls: list[Call] = []
        self.polling = 0
        self._troubles: dict[str, list[tuple[bool, Trouble]]] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._poll: asyncio.Event | None = None
        self._news = asyncio.Event()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds: looks whenever the server has done something, and once in a while."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not condition():
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), LOOK_SECONDS)
        except TimeoutError:
            shown = {chat: self.world.shown(chat) for chat in self.world.chats}
            raise AssertionError(
                f"it never came about; the chats: {shown}; the last calls: {self.calls[-5:]}"
            ) from None

    def called(self, method: str) -> list[Json]:
        """The parameters of all calls of a method."""
        return [call.parameters for call in self.calls if call.method == method]

    def fail(self, method: str, code: int, description: str, times: int = 1, **parameters: Any) -> None:
        """The next calls of the method are refused."""

        def refuse() -> None:
            raise No(code, description, parameters)

        self._troubles.setdefault(method, []).extend([(False, refuse)] * times)

    def answer(self, method: str, status: int, body: bytes) -> None:
        """The next call of the method is answered by something that is not the Bot API."""

        def raw() -> None:
            raise _Raw(status, body)

        self._troubles.setdefault(method, []).append((False, raw))

    def drop(self, method: str, *, handled: bool) -> None:
        """The next call of the method ends with a broken connection: before it was handled, or after."""

        def cut() -> None:
            raise _Dropped

        self._troubles.setdefault(method, []).append((handled, cut))

    def hold(self, method: str) -> None:
        """Calls of the method are handled, and their answers wait for `release`."""
        self._held[method] = asyncio.Event()

    def release(self, method: str) -> None:
        self._held.pop(method).set()

    def give_up_waiting(self) -> None:
        """As when nothing has come for as long as the request for updates may wait: it is answered with nothing."""
        assert self._poll is not None
        self._given_up = self._poll
        self._poll.set()

    _given_up: asyncio.Event | None = None

    def _changed(self) -> None:
        self._news.set()
        if self._poll is not None:
            self._poll.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(_Dropped):
            while True:
                await self._serve_one(reader, writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        target = first.split(" ")[1]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        try:
            status, data = await self._answered(target, headers, body, reader)
        except _Raw as raw:
            status, data = raw.status, raw.body
        finally:
            self._news.set()
        writer.write(b"HTTP/1.1 %d Telegram\r\ncontent-length: %d\r\n\r\n" % (status, len(data)) + data)
        await writer.drain()

    async def _answered(
        self, target: str, headers: Mapping[str, str], body: bytes, reader: asyncio.StreamReader
    ) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        parts = unquote(path).split("/")
        try:
            if parts[1] == "file" and parts[2] == f"bot{self.token}":
                return self._download(parts[-1])
            if parts[1] != f"bot{self.token}":
                raise No(401, "Unauthorized") if ":" in parts[1] else No(404, "Not Found")
            parameters, files = _parameters(query, headers, body)
            result = await self._called(parts[2], parameters, files, reader)
        except No as no:
            return no.code, json.dumps(no.answer).encode()
        return 200, json.dumps({"ok": True, "result": result}).encode()

    async def _called(
        self, method: str, parameters: Json, files: Mapping[str, Upload], reader: asyncio.StreamReader
    ) -> Any:
        self.calls.append(Call(method, parameters))
        self._news.set()
        troubles = self._troubles.get(method)
        after, trouble = troubles.pop(0) if troubles else (True, lambda: None)
        if not after:
            trouble()
        if method == "getUpdates":
            result: Any = await self._updates(parameters, reader)
        else:
            result = self.world.call(method, parameters, files)
        if method in self._held:
            await self._held[method].wait()
        trouble()
        return result

    async def _updates(self, parameters: Json, reader: asyncio.StreamReader) -> list[Json]:
        """Waits for updates as long as it is asked to, or until another request for updates comes."""
        if self._poll is not None:
            # The newer request wins, and the older one is told.
            waiting, self._poll = self._poll, None
            waiting.set()
        news = self._poll = asyncio.Event()
        self.polling += 1
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            async with asyncio.timeout(float(parameters.get("timeout", 0)) or None):
                while not (found := self.world.take(parameters)) and parameters.get("timeout"):
                    await self._next(news, leaving)
                    news.clear()
            return found
        except TimeoutError:
            return []
        finally:
            leaving.cancel()
            await asyncio.wait((leaving,))
            self.polling -= 1
            if self._poll is news:
                self._poll = None

    async def _next(self, news: asyncio.Event, leaving: asyncio.Future[bytes]) -> None:
        waiting = asyncio.ensure_future(news.wait())
        try:
            await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if leaving.done():
            raise _Dropped
        if self._given_up is news:
            raise TimeoutError
        if self._poll is not news:
            raise No(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
                          "running")  # fmt: skip

    def _download(self, name: str) -> tuple[int, bytes]:
        if name not in self.world.files:
            raise No(404, "Not Found")
        return 200, self.world.files[name]


def _parameters(query: str, headers: Mapping[str, str], body: bytes) -> tuple[Json, dict[str, Upload]]:
    """What a request says: in the address, as JSON, or as a form with files."""
    given: Json = dict(parse_qsl(query))
    kind = headers.get("content-type", "")
    if kind.startswith("application/json"):
        return given | json.loads(body), {}
    files: dict[str, Upload] = {}
    if kind.startswith("multipart/form-data"):
        whole = BytesParser(policy=HTTP).parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + body)
        for part in whole.iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            if (filename := part.get_filename()) is not None:
                files[name] = Upload(filename, data)
            else:
                given[name] = data.decode()
    return given, files
