"""Who may open a WebSocket to a Tryll server, and what is said to the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_websocket import OPENING, BothServed, Socket, both_served, websocket
from trunkline.wires.tryll import messages as m


def _with(header: bytes) -> bytes:
    """The request with one more header."""
    return OPENING.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n\r\n") % b"json"


def _opened(server: BothServed, headers: dict[str, str]) -> AbstractAsyncContextManager[Socket]:
    """A WebSocket from a page with that origin, which has found the server by that name."""
    others = {name: value for name, value in headers.items() if name != "Host"}
    called = f"ws://{headers.get('Host', '127.0.0.1')}:{server.ws}"
    return websocket(called, greeted=False, host="127.0.0.1", port=server.ws, additional_headers=others)


@pytest.fixture
async def server(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[BothServed]:
    async with both_served(tmp_path, **getattr(request, "param", {})) as made:
        yield made


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "anything.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://127.0.0.1:8000"},
        {"Origin": "http://[::1]:8000"},
        {"Origin": "https://localhost"},
        {"Origin": "https://game.example"},
        {"Origin": "https://GAME.example"},
        {"Origin": "https://game.example", "Host": "games.example"},
    ],
)  # fmt: skip
async def test_engines_pages_of_this_machine_and_named_ones_are_let_in(
    server: BothServed, headers: dict[str, str]
) -> None:
    async with _opened(server, headers) as ws:
        assert isinstance(await ws.hear(), m.SessionReady)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Origin": "https://evil.example"}, "Pages of `https://evil.example` may not connect"),
        ({"Origin": "https://evil.example"}, "`--ws-origin https://evil.example` lets them in"),
        ({"Origin": "http://game.example"}, "may not connect"),
        ({"Origin": "https://game.example:444"}, "may not connect"),
        ({"Origin": "https://game.example.evil"}, "may not connect"),
        ({"Origin": "http://127.0.0.1.evil.example"}, "may not connect"),
        ({"Origin": "http://localhost.evil.example"}, "may not connect"),
        ({"Origin": "null"}, "may not connect"),
        ({"Origin": ""}, "may not connect"),
        ({"Origin": "localhost"}, "may not connect"),
        ({"Origin": "http://"}, "may not connect"),
        ({"Origin": "http://[oops"}, "may not connect"),
        # A name of somebody's that was made to lead here.
        ({"Origin": "http://evil.example", "Host": "evil.example"}, "Host not allowed"),
        ({"Origin": "http://localhost", "Host": "evil.example"}, "Host not allowed"),
    ],
)  # fmt: skip
async def test_pages_from_elsewhere_are_not(server: BothServed, headers: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with _opened(server, headers):
            pass
    assert refused.value.response.status_code == 403
    assert told in bytes(refused.value.response.body).decode()
    await until(lambda: not server.server.connections)


@pytest.mark.parametrize("query", ["format=xml", "format=", "format", "format=json&format=binary", "format=JSON"])
async def test_a_form_that_nobody_knows_is_refused(server: BothServed, query: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with websocket(f"{server.address}/?{query}"):
            pass
    assert refused.value.response.status_code == 400
    assert bytes(refused.value.response.body) == b"`format` is `json` or `binary`.\n"


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 426 "),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 405 "),
        (_with(b"Host: elsewhere"), b"HTTP/1.1 400 "),
        (b"GET /" + b"x" * 10_000, b"HTTP/1.1 414 "),
        (b"\0\0\0\x10\n" * 9, b"HTTP/1.1 400 "),
        (_with(b"X: one\r\n two"), b"HTTP/1.1 400 "),
        (_with(b"X: \x01"), b"HTTP/1.1 400 "),
        (_with(b"X"), b"HTTP/1.1 400 "),
        (_with(b"Content-Length: 3"), b"HTTP/1.1 400 "),
        (_with(b"Transfer-Encoding: chunked"), b"HTTP/1.1 400 "),
        (OPENING.replace(b"/?", "/ü?".encode()) % b"json", b"HTTP/1.1 400 "),
        (OPENING.replace(b"HTTP/1.1", b"HTTP/2.0") % b"json", b"HTTP/1.1 400 "),
    ],
)  # fmt: skip
async def test_what_is_no_request_for_a_websocket_is_told_so(
    server: BothServed, request_bytes: bytes, answer: bytes
) -> None:
    heard = await _answer_to(server, request_bytes)
    assert heard.startswith(answer)
    assert b"SessionReady" not in heard
    assert heard.endswith(b".\n")
    await server.works()


@pytest.mark.parametrize("version", [b"8", b"12", b"0", b"99", b"", b"13, 8", b"13\r\nSec-WebSocket-Version: 8"])
async def test_whoever_asks_for_another_version_is_told_which_there_is(server: BothServed, version: bytes) -> None:
    heard = await _answer_to(server, OPENING.replace(b": 13", b": " + version) % b"json")
    head, _, body = heard.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 426 ")
    assert b"\r\nSec-WebSocket-Version: 13" in head
    assert body == b"The version of the WebSocket is 13.\n"


async def _answer_to(server: BothServed, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.ws)
    writer.write(request)
    async with asyncio.timeout(PATIENCE_SECONDS):
        heard = await reader.read()
    writer.transport.abort()
    return heard


@pytest.mark.parametrize("server", [{"token": "open sesame"}], indirect=True)
async def test_the_token_is_said_when_the_session_is_configured_or_comes_with_the_request(server: BothServed) -> None:
    async with websocket(server.json) as ws:
        assert (await ws.tell("ConfigureSessionRequest", request_id=1, token="open sesame"))["request_id"] == 1
    async with websocket(server.json, additional_headers={"Authorization": "Bearer open sesame"}) as ws:
        assert (await ws.tell("ConfigureSessionRequest", request_id=1))["type"] == "ConfigureSessionResponse"
    for headers in ({}, {"Authorization": "Bearer another"}, {"Authorization": "Basic open sesame"}):
        async with websocket(server.json, additional_headers=headers) as ws:
            assert (await ws.tell("ConfigureSessionRequest", request_id=1))["code"] == 2003
            assert await ws.code() == 1008
    async with websocket(server.json, additional_headers={"Authorization": "Bearer open sesame"}) as ws:
        assert (await ws.tell("ConfigureSessionRequest", request_id=1, token="wrong"))["code"] == 2003
