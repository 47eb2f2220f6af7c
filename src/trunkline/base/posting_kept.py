"""Connections that outlive the conversations that made them, where many come and go, as in a server.

    async with keeping_posters():
        ...  # what asks takes its poster with `kept`, and gives it back with `give_back`

Without the block, in the same event loop, nothing is kept. What opens a server's door is in the headers of a request
and not in the connection: whoever asks the same server may use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from trunkline.base.posting import Poster

_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, Poster]] = WeakKeyDictionary()


@asynccontextmanager
async def keeping_posters() -> AsyncIterator[None]:
    """Keep what is given back, until the end of the block."""
    loop = asyncio.get_running_loop()
    if loop in _kept:
        yield
        return
    kept_here = _kept[loop] = {}
    try:
        yield
    finally:
        del _kept[loop]
        for poster in kept_here.values():
            await poster.close()


def kept(*, secure: bool) -> Poster | None:
    """One that was given back in this event loop. Others may use it at the same time."""
    return _kept.get(asyncio.get_running_loop(), {}).get(secure)


async def give_back(poster: Poster, *, secure: bool) -> None:
    """It is not needed any more: kept for others, or closed."""
    place = _kept.get(asyncio.get_running_loop())
    if place is None or place.setdefault(secure, poster) is not poster:
        await poster.close()
