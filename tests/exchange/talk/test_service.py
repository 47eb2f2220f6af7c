"""The page as a service of `trunkline up`."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import httpx

from tests.support.patience import PATIENCE_SECONDS
from trunkline.exchange.service import Service
from trunkline.exchange.talk.service import TalkService

SERVER = SimpleNamespace(address="127.0.0.1:1")


async def test_it_is_reachable_also_where_its_port_is_taken_and_ends_when_asked() -> None:
    stop = asyncio.Event()
    first = TalkService(SERVER, 0)
    tasks = [await started(first, stop)]
    second = TalkService(SERVER, int(first.where.rpartition(":")[2]))
    tasks.append(await started(second, stop))
    assert first.where != second.where
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
        for service in (first, second):
            assert (await client.get(service.where)).status_code == 200
            assert service.where in service.trial
    stop.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*tasks)


async def started(service: Service, stop: asyncio.Event) -> asyncio.Task[None]:
    reachable = asyncio.Event()
    task = asyncio.create_task(service.run(stop, reachable.set))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reachable.wait()
    return task
