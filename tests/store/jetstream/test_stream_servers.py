"""Servers that will not do for a cluster are refused, in words that say what to change."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port
from trunkline.core.faults import ConfigError
from trunkline.store.jetstream import stream


async def _old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    told = {"server_id": "x", "version": "2.9.10", "headers": True, "max_payload": 1 << 20, "proto": 1}
    writer.write(b"INFO " + json.dumps(told).encode() + b"\r\n")
    while line := await reader.readline():
        if line.startswith(b"PING"):
            writer.write(b"PONG\r\n")
    writer.close()


async def test_a_server_that_is_too_old_is_named_with_the_version_that_is_needed() -> None:
    async with await asyncio.start_server(_old, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(ConfigError, match=r"2\.9\.10, and a cluster needs 2\.12 or newer"):
            async with stream.SessionStream.opened([f"nats://{host}:{port}"]):
                pass


@contextmanager
def _without_jetstream(directory: Path) -> Iterator[str]:
    port = free_port()
    program = str(Path(sys.executable).with_name("nats-server"))
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    try:
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.process
async def test_servers_without_jetstream_are_an_error_that_says_how_to_switch_it_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "START_SECONDS", 0.1)
    with _without_jetstream(tmp_path) as url, pytest.raises(ConfigError) as refused:
        async with stream.SessionStream.opened([url]):
            pass
    assert str(refused.value).startswith("NATS refuses: no JetStream answers. JetStream is not ready. Switch it on")
