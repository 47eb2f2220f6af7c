"""The last resort of an ASGI application: what it logs and answers, and what it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from trunkline.base.asgi_last_resort import LastResort

SCOPE = {"type": "http", "method": "POST", "path": "/x", "headers": [], "query_string": b""}


async def sent_by(app: Any, *messages: dict[str, Any]) -> list[Any]:
    coming, sent = list(messages), []

    async def receive() -> Any:
        return coming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await LastResort(app, PlainTextResponse("sorry", 500), PlainTextResponse("later", 503))(SCOPE, receive, send)
    return sent


async def reading(scope: Any, receive: Any, send: Any) -> None:
    await Request(scope, receive).body()


async def failing(scope: Any, receive: Any, send: Any) -> None:
    raise LookupError("x")


async def test_a_client_that_left_in_the_middle_of_its_body_is_nothing_to_tell_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    part = {"type": "http.request", "body": b"{", "more_body": True}
    assert await sent_by(reading, part, {"type": "http.disconnect"}) == []
    assert not caplog.records


async def test_what_nobody_foresaw_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    assert (await sent_by(failing))[0]["status"] == 500
    assert "POST /x" in caplog.text


async def test_a_request_that_is_cut_off_when_the_server_ends_is_told_so() -> None:
    begun = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(sent_by(slow))
    await begun.wait()
    task.cancel("the server ends")
    assert (await task)[0]["status"] == 503


async def test_an_answer_that_has_begun_is_cut_off_as_it_is() -> None:
    begun = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(sent_by(slow))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
