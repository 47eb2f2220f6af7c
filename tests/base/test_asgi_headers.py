"""Headers that every answer has."""

from __future__ import annotations

from typing import Any

import httpx
from starlette.responses import Response

from trunkline.base.asgi_headers import AddedHeaders


async def answered(answer: Response) -> httpx.Response:
    app: Any = AddedHeaders(answer, headers={"X-One": "added", "X-Two": "added"})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.get("/")


async def test_an_answer_has_them_besides_its_own() -> None:
    found = await answered(Response("hello", headers={"X-Three": "own"}))
    assert found.text == "hello"
    assert [found.headers[name] for name in ("x-one", "x-two", "x-three")] == ["added", "added", "own"]


async def test_what_an_answer_says_itself_is_said_once() -> None:
    found = await answered(Response(headers={"x-one": "own"}))
    assert found.headers.get_list("x-one") == ["own"]
    assert found.headers["x-two"] == "added"


async def test_what_is_no_request_for_an_answer_passes_as_it_is() -> None:
    sent: list[Any] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.close", "code": 1008})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    await AddedHeaders(socket, headers={"X-One": "added"})({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
