"""Bodies are read within bounds, the same for all of our services."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.requests import Request

from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body

MOST = 10
#: Nothing here takes any time.
SECONDS = 60.0


def request(*pieces: bytes, ends: bool = True, headers: Mapping[str, str] | None = None) -> Request:
    """A request whose body comes in these pieces, and then ends, or never does."""
    waiting = list(pieces)

    async def receive() -> dict[str, Any]:
        if not waiting and not ends:
            await asyncio.Event().wait()
        piece = waiting.pop(0) if waiting else b""
        return {"type": "http.request", "body": piece, "more_body": bool(waiting) or not ends}

    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, receive)


async def test_a_body_is_what_came_in_pieces_up_to_the_limit() -> None:
    assert await bounded_body(request(b"12345", b"67890"), MOST, SECONDS) == b"1234567890"
    assert await bounded_body(request(), MOST, SECONDS) == b""


@pytest.mark.parametrize("declared", ["11", "9" * 5000])
async def test_a_body_that_says_it_is_too_large_is_not_read(declared: str) -> None:
    with pytest.raises(Refused) as refused:
        await bounded_body(request(ends=False, headers={"content-length": declared}), MOST, SECONDS)
    assert (refused.value.status, refused.value.headers) == (413, {"Connection": "close"})
    assert refused.value.message == "The body must have 10 bytes or fewer"


@pytest.mark.parametrize("headers", [{}, {"content-length": "3"}, {"content-length": "-1"}, {"content-length": "x"}])
async def test_a_body_that_grows_too_large_is_refused_whatever_it_said(headers: Mapping[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        await bounded_body(request(b"12345", b"678901", ends=False, headers=headers), MOST, SECONDS)
    assert refused.value.status == 413


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    with pytest.raises(Refused) as refused:
        await bounded_body(request(b"1", ends=False), MOST, 0.01)
    assert (refused.value.status, refused.value.message) == (408, "The body did not arrive within 0.01 s")
    assert refused.value.headers == {"Connection": "close"}
