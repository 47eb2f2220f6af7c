"""The body of a request, read within bounds: of bytes, and of time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trunkline.base.asgi_answers import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

#: What is left of a refused body is not read: the connection cannot be used again.
_CLOSE = {"Connection": "close"}


async def bounded_body(request: Request, most: int, seconds: float) -> bytes:
    """All bytes of a body.

    Raises:
        Refused: 408 if they do not arrive within `seconds`, 413 if there are more than `most`.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(most)) or int(declared) > most):
        raise _too_large(most)
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {seconds:g} s", _CLOSE) from None
    return bytes(data)


def _too_large(most: int) -> Refused:
    return Refused(413, f"The body must have {most} bytes or fewer", _CLOSE)
