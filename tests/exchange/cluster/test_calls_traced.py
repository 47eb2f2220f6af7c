"""A request that one node takes and another carries out is one trace, which says where its turn ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.support import postgres
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_SECONDS
from tests.support.spans import attributes, following
from trunkline.exchange.process import ExchangeProcess

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "{home}"
[cluster]
nats = "{nats}"
postgres = "{postgres}"
node = "{node}"
name = "traced"
[agents.helper]
agent = "echo"
nodes = ["a"]
[people.ana]
token_env = "ANA"
role = "admin"
"""
ENVIRON = {"ANA": "ana's token"}


@asynccontextmanager
async def node(folder: Path, name: str, nats: str, database: str) -> AsyncIterator[httpx.AsyncClient]:
    """A node as a process would run it, and a client of it."""
    path = folder / f"{name}.toml"
    path.write_text(FILE.format(home=folder / name, nats=nats, postgres=database, node=name))
    process, stop, reachable = ExchangeProcess(str(path), environ=ENVIRON), asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(process.run(stop, reachable.set))
    waiting = asyncio.create_task(reachable.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
        if task.done():
            task.result()
        headers = {"Authorization": f"Bearer {ENVIRON['ANA']}"}
        async with httpx.AsyncClient(base_url=process.where, headers=headers, timeout=PATIENCE_SECONDS) as client:
            yield client
    finally:
        waiting.cancel()
        stop.set()
        await task


async def test_a_turn_on_another_node_belongs_to_the_trace_of_the_request(
    tmp_path: Path, nats_server: NatsServer, postgres_server: postgres.Postgres
) -> None:
    with following() as made, postgres_server.database() as database:
        async with (
            node(tmp_path, "a", nats_server.url, database),
            node(tmp_path, "b", nats_server.url, database) as client,
        ):
            opened = await client.post("/api/sessions", json={"agent": "helper"})
            assert opened.status_code == 200, opened.text
            path = f"/api/sessions/{opened.json()['id']}"
            headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            taken = await client.post(f"{path}/messages", json={"text": "hello"}, headers=headers)
            assert taken.status_code == 202, taken.text
            async with client.stream("GET", f"{path}/events?since=0") as events:
                async for line in events.aiter_lines():
                    if line == "event: turn_ended":
                        break
    turn = made["invoke_agent helper"]
    assert turn.parent is not None
    assert (f"{turn.parent.trace_id:032x}", f"{turn.parent.span_id:016x}") == (TRACE, SPAN)
    told = attributes(turn)
    assert (told["trunkline.node"], told["trunkline.wire"]) == ("a", "http")
