"""Bodies of requests: read within bounds, parsed strictly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request

from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.sns import codec

T = TypeVar("T")

#: How long a body may take to arrive. Runners send a few kilobytes.
BODY_SECONDS = 30
#: From this size on, a body is parsed and hashed beside the event loop, which others wait for.
BESIDE_FROM = 32 * 1024


async def object_body(request: Request, *, lenient: bool = False) -> dict[str, Any]:
    """The JSON object in a request.

    Args:
        lenient: take what is not a JSON object for an empty one.

    Raises:
        Refused: 400 if it is not a JSON object, 408 if it does not arrive, 413 if it is too large.
    """
    data = await raw_body(request)
    try:
        value = await _beside(codec.parse_body, data)
    except RemoteProtocolError as fault:
        if lenient:
            return {}
        raise Refused(400, fault.message) from None
    if isinstance(value, dict):
        return value
    if lenient:
        return {}
    raise Refused(400, "The body must be a JSON object")


async def signed_body(
    request: Request, known: Callable[[], Awaitable[bool]], *, empty_is_object: bool = False
) -> tuple[Any, str]:
    """The JSON value in a request, and its hash as it is signed.

    Args:
        known: whether the sender has a credential. It is asked before a large body is hashed, which takes a while;
            nobody else's body gets a hash.
        empty_is_object: take no body at all for `{}`.

    Raises:
        Refused: 400 if it is not JSON, 408 if it does not arrive, 413 if it is too large.
    """
    data = await raw_body(request)
    try:
        value = await _beside(codec.parse_body, data if data or not empty_is_object else b"{}")
    except RemoteProtocolError as fault:
        raise Refused(400, fault.message) from None
    if len(data) < BESIDE_FROM:
        return value, codec.body_hash(value)
    return value, await asyncio.to_thread(codec.body_hash, value) if await known() else ""


async def raw_body(request: Request) -> bytes:
    """All bytes of a body.

    Raises:
        Refused: 408 if they do not arrive in time, 413 if there are too many.
    """
    return await bounded_body(request, codec.MAX_BODY, BODY_SECONDS)


async def _beside(work: Callable[[bytes], T], data: bytes) -> T:
    return work(data) if len(data) < BESIDE_FROM else await asyncio.to_thread(work, data)
