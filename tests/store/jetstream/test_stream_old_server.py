"""A server that is too old for a cluster is refused: it would keep what it should not, or nothing at all."""

from __future__ import annotations

import asyncio
import json

import pytest

from trunkline.core.faults import ConfigError
from trunkline.store.jetstream.stream import SessionStream


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    told = {"server_id": "x", "version": "2.9.10", "headers": True, "max_payload": 1 << 20, "proto": 1}
    writer.write(b"INFO " + json.dumps(told).encode() + b"\r\n")
    while line := await reader.readline():
        if line.startswith(b"PING"):
            writer.write(b"PONG\r\n")
    writer.close()


async def test_a_server_that_is_too_old_is_named_with_the_version_that_is_needed() -> None:
    async with await asyncio.start_server(_talk, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConfigError, match=r"2\.9\.10, and a cluster needs 2\.12 or newer"):
            async with SessionStream.opened([f"nats://{host}:{port}"]):
                pass
