"""An exchange as a process: whom it tells its secrets, so that a log does not have them, and where its traces go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.support.otlp import receiving
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core import tracing
from trunkline.core.faults import ConfigError
from trunkline.exchange.process import ExchangeProcess

FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
webhook_env = "PHONE"
[agents.helper]
agent = "echo"
[people.ana]
token_env = "ANA"
role = "admin"
"""
ENVIRON = {"PHONE": "http://127.0.0.1:9/a-place-of-ours", "ANA": "ana's token", "BO": "bo's token"}


async def reached(process: ExchangeProcess, stop: asyncio.Event) -> asyncio.Task[None]:
    reachable = asyncio.Event()
    task = asyncio.create_task(process.run(stop, reachable.set))
    waiting = asyncio.create_task(reachable.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
    waiting.cancel()
    if task.done():
        task.result()
    return task


async def test_who_keeps_secrets_out_of_a_log_is_told_those_that_the_file_names(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_text(FILE)
    known: set[str] = set()
    process, stop = ExchangeProcess(str(path), environ=ENVIRON, learn=known.update), asyncio.Event()
    task = await reached(process, stop)
    try:
        assert {ENVIRON["PHONE"], ENVIRON["ANA"]} <= known
        assert ENVIRON["BO"] not in known
        path.write_text(f'{FILE}[people.bo]\ntoken_env = "BO"\n')
        await process.reload()
        assert ENVIRON["BO"] in known
    finally:
        stop.set()
        await task


async def test_traces_go_where_the_file_says_until_the_exchange_ends(tmp_path: Path) -> None:
    with receiving() as receiver:
        path = tmp_path / "trunkline.toml"
        path.write_text(f'{FILE}[otel]\nendpoint = "{receiver.url}"\n')
        process, stop = ExchangeProcess(str(path), environ=ENVIRON), asyncio.Event()
        task = await reached(process, stop)
        try:
            headers = {"Authorization": f"Bearer {ENVIRON['ANA']}"}
            async with httpx.AsyncClient(base_url=process.where, headers=headers, timeout=PATIENCE_SECONDS) as client:
                id = (await client.post("/api/sessions", json={"agent": "helper"})).json()["id"]
                await client.post(f"/api/sessions/{id}/messages", json={"text": "hello"})
                async with client.stream("GET", f"/api/sessions/{id}/events?since=0") as events:
                    async for line in events.aiter_lines():
                        if line == "event: turn_ended":
                            break
            path.write_text(f'{FILE}[otel]\nendpoint = "http://127.0.0.1:9"\n')
            with pytest.raises(ConfigError, match="`otel` cannot change while the exchange runs"):
                await process.reload()
        finally:
            stop.set()
            await task
        assert tracing.tracer is None
        assert receiver.named("invoke_agent helper").attributes["gen_ai.conversation.id"] == id


async def test_an_exchange_whose_file_asks_for_what_cannot_be_an_address_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_text(f'{FILE}[otel]\nendpoint = "collector:4318"\n')
    with pytest.raises(ConfigError, match=r"`otel\.endpoint` must be a URL"):
        await reached(ExchangeProcess(str(path), environ=ENVIRON), asyncio.Event())
