"""The connection of an attached program."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import SimpleNamespace
from typing import cast

from trunkline.exchange.lines.connection import LocalConnection


async def test_nothing_more_is_heard_from_a_host_before_it_has_read_what_it_was_told() -> None:
    asked, has_read = asyncio.Event(), asyncio.Event()

    async def drain() -> None:
        asked.set()
        await has_read.wait()

    transport = SimpleNamespace(set_write_buffer_limits=lambda high: None)
    writer = cast(asyncio.StreamWriter, SimpleNamespace(transport=transport, drain=drain))
    reader = asyncio.StreamReader()
    reader.feed_data(b"more")
    async with aclosing(LocalConnection(reader, writer).read()) as pieces:
        reading = asyncio.ensure_future(anext(pieces))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (asked.is_set(), reading.done()) == (True, False)
        has_read.set()
        assert await reading == b"more"
