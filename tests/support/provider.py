"""A provider on loopback: a real HTTP server that plays scripted answers and remembers what it was asked.

    async with StubProvider() as stub:
        stub.openai(openai_text("Hello"))
        ...                                 # talk to stub.url
        assert stub.requests[0].json["model"] == "stub"

Replies are played in order, one per request; `stub.default` makes the ones after the last. Without a default such a
request is refused with status 418, which nobody retries.

As a program, for tests that have processes of their own:

    python -m tests.support.provider --script FILE

prints its port and serves until its standard input ends. The script is JSON; see `reply_of_script`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider_streams import (
    Event,
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_sse,
    openai_text,
    openai_tool_calls,
)
from tests.support.responses_streams import responses_sse, responses_text, responses_tool_calls
from tests.support.stub_server import StubServer


class Gate:
    """A place in a reply where the server waits until the test opens it. `reached` says that it waits."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._opened.wait()


class Hang:
    """A place in a reply where nothing comes any more, and the connection stays open."""


class Break:
    """A place in a reply where the connection is cut."""


Part = bytes | Gate | Hang | Break

HANG = Hang()
BREAK = Break()


class Request:
    """What came in. `left` is set when the client has gone before the reply was complete."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes, connection: int) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.connection = connection
        self.left = asyncio.Event()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_anthropic(self) -> bool:
        return self.target.split("?")[0].endswith("/messages")

    @property
    def is_responses(self) -> bool:
        return self.target.split("?")[0].endswith("/responses")


class Reply:
    """What goes out: a status, headers, and parts. Without a length the body is sent in chunks, one per part."""

    def __init__(
        self, parts: Iterable[Part] = (), *, status: int = 200, headers: Mapping[str, str] | None = None, cut: int = 0
    ) -> None:
        self.parts = [piece for part in parts for piece in _pieces(part, cut)]
        self.status = status
        self.headers = {"content-type": "text/event-stream", **(headers or {})}


Answerer = Callable[[Request], Reply]


class StubProvider(StubServer):
    """The server. Everything is played in the loop that entered it."""

    def __init__(self, default: Answerer | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.default = default
        self.requests: list[Request] = []
        self._replies: list[Reply | Answerer] = []
        self._connections = 0

    def play(self, reply: Reply | Answerer) -> None:
        """The next reply, or what makes it out of the request."""
        self._replies.append(reply)

    def anthropic(
        self, events: Iterable[Event], *parts: Part, cut: int = 0, headers: Mapping[str, str] | None = None
    ) -> None:
        """The next reply: a stream of Anthropic events, then the parts."""
        self.play(Reply([anthropic_sse(events), *parts], cut=cut, headers=headers))

    def openai(self, chunks: Iterable[Event], *parts: Part, done: bool = True, cut: int = 0) -> None:
        """The next reply: a stream of OpenAI chunks, then the parts."""
        self.play(Reply([openai_sse(chunks, done=done), *parts], cut=cut))

    def responses(self, events: Iterable[Event], *parts: Part, cut: int = 0) -> None:
        """The next reply: a stream of events of OpenAI's Responses, then the parts."""
        self.play(Reply([responses_sse(events), *parts], cut=cut))

    def raw(self, *parts: Part, status: int = 200, **headers: str) -> None:
        """The next reply: these bytes. Header names have `_` for `-`."""
        self.play(Reply(parts, status=status, headers={name.replace("_", "-"): v for name, v in headers.items()}))

    def error(self, status: int, body: Any = None, **headers: str) -> None:
        """The next reply: a status with a JSON body."""
        data = json.dumps({"error": {"message": "stub"}} if body is None else body).encode()
        self.raw(data, status=status, content_type="application/json", **headers)

    async def asked(self, count: int = 1) -> list[Request]:
        """Wait until that many requests have come."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.requests) < count:
                self._arrival = asyncio.get_running_loop().create_future()
                await self._arrival
        return self.requests

    _arrival: asyncio.Future[None] | None = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        connection = self._connections
        while True:
            request = await _read(reader, connection)
            self.requests.append(request)
            if self._arrival is not None and not self._arrival.done():
                self._arrival.set_result(None)
            if not await _send(self._next(request), request, reader, writer):
                return

    def _next(self, request: Request) -> Reply:
        if self._replies:
            reply = self._replies.pop(0)
            return reply(request) if callable(reply) else reply
        if self.default is not None:
            return self.default(request)
        refusal = {"error": {"message": "the stub has no reply left"}}
        return Reply([json.dumps(refusal).encode()], status=418, headers={"content-type": "application/json"})


async def _read(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body, connection)


async def _send(reply: Reply, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection can be used again."""
    lines = [f"HTTP/1.1 {reply.status} Stub", *(f"{name}: {value}" for name, value in reply.headers.items())]
    writer.write("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode("latin-1"))
    for part in reply.parts:
        if isinstance(part, Break):
            return False
        if isinstance(part, Gate | Hang):
            await writer.drain()
            if not await _wait(part, request, reader):
                return False
        elif part:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _wait(part: Gate | Hang, request: Request, reader: asyncio.StreamReader) -> bool:
    """Whether the client is still there when the gate is open."""
    leaving = asyncio.ensure_future(reader.read(1))
    opening = asyncio.ensure_future(part.wait() if isinstance(part, Gate) else asyncio.Event().wait())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait((leaving, opening), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            request.left.set()
        return not leaving.done()
    finally:
        leaving.cancel()
        opening.cancel()
        await asyncio.wait((leaving, opening))
        if leaving.done() and not leaving.cancelled():
            leaving.exception()


def _pieces(part: Part, cut: int) -> list[Part]:
    if not cut or not isinstance(part, bytes):
        return [part]
    return [part[start : start + cut] for start in range(0, len(part), cut)]


def reply_of_script(entry: Mapping[str, Any]) -> Answerer:
    """What one entry of a script plays.

    `text` or `tool_calls` ([[name, args], ...]) answer in the format of the request's path; `thinking` goes before a
    text (and, with Responses, before calls). `anthropic` and `openai` are lists of events as they are; `json` is a
    body. With any of them: `status`, `headers`, `cut` (bytes per chunk), `then` ("break" or "hang").
    """

    def answer(request: Request) -> Reply:
        endings: dict[str, Part] = {"break": BREAK, "hang": HANG}
        then = [endings[entry["then"]]] if "then" in entry else []
        more = {name: entry[name] for name in ("status", "headers", "cut") if name in entry}
        return Reply([_scripted_body(entry, request), *then], **more)

    return answer


def _scripted_body(entry: Mapping[str, Any], request: Request) -> bytes:
    if "json" in entry:
        return json.dumps(entry["json"]).encode()
    if "anthropic" in entry:
        return anthropic_sse(entry["anthropic"])
    if "openai" in entry:
        return openai_sse(entry["openai"], done=entry.get("done", True))
    thinking = entry.get("thinking")
    if "tool_calls" in entry:
        text = entry.get("text", "")
        if request.is_anthropic:
            return anthropic_sse(anthropic_tool_calls(entry["tool_calls"], text=text))
        if request.is_responses:
            return responses_sse(responses_tool_calls(entry["tool_calls"], text=text, reasoning=thinking))
        return openai_sse(openai_tool_calls(entry["tool_calls"], text=text))
    if request.is_anthropic:
        return anthropic_sse(anthropic_text(entry["text"], thinking=thinking))
    if request.is_responses:
        return responses_sse(responses_text(entry["text"], reasoning=thinking))
    return openai_sse(openai_text(entry["text"], reasoning=thinking))


def scripted(script: Mapping[str, Any]) -> StubProvider:
    """A provider that plays `script["replies"]`, and `script["default"]` ever after."""
    stub = StubProvider(reply_of_script(script["default"]) if "default" in script else None)
    for entry in script.get("replies", ()):
        stub.play(reply_of_script(entry))
    return stub


@contextmanager
def in_thread(stub: StubProvider) -> Iterator[StubProvider]:
    """The provider in a loop and a thread of its own, for tests that have no loop. Script it before."""
    started = threading.Event()
    stopping: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        async with stub:
            stopping.append(lambda: loop.call_soon_threadsafe(ended.set))
            started.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    try:
        yield stub
    finally:
        stopping[0]()
        thread.join(PATIENCE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True, help="a JSON file")
    with open(parser.parse_args().script, encoding="utf-8") as file:
        script = json.load(file)
    with in_thread(scripted(script)) as stub:
        print(stub.port, flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
