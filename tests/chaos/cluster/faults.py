"""What happens to a cluster under load, one thing after the other: to its nodes, and to its NATS servers."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import httpx

from tests.chaos.cluster.clients.wire import TRY_SECONDS
from tests.chaos.cluster.load import HEADERS, NATS, Load
from tests.support.cluster_process import READY_SECONDS
from trunkline.store.jetstream.errors import StreamError, translated
from trunkline.store.jetstream.stream import LEASE_SECONDS, SessionStream

Fault = Callable[[Load, random.Random], Awaitable[None]]

_LOOK_SECONDS = 0.2


@contextmanager
def _happening(load: Load, what: str, to: str) -> Iterator[None]:
    """Something is done to a node, or to the servers, until the end of the block."""
    load.fault, load.fault_at = what, time.monotonic()
    load.disturbed[to] = float("inf")
    try:
        yield
    finally:
        load.disturbed[to] = time.monotonic()


async def kill_node(load: Load, chance: random.Random) -> None:
    """`kill -9`, and a new start after a while."""
    node = load.node()
    with _happening(load, f"kill -9 of {node.name}", node.name):
        await asyncio.to_thread(node.stop, signal.SIGKILL)
        await asyncio.sleep(chance.uniform(0, 12))
        node.start()
        await asyncio.to_thread(node.wait)


async def stop_node(load: Load, chance: random.Random, least: float = 2) -> None:
    """SIGSTOP, and SIGCONT, perhaps after its lease has run out."""
    node = load.node()
    assert node.process is not None
    with _happening(load, f"stop of {node.name}", node.name):
        node.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(chance.uniform(least, 18))
        node.process.send_signal(signal.SIGCONT)
        load.fault_at = time.monotonic()


async def end_node(load: Load, chance: random.Random) -> None:
    """SIGTERM, and a new start."""
    node = load.node()
    with _happening(load, f"end of {node.name}", node.name):
        await asyncio.to_thread(node.stop)
        node.start()
        await asyncio.to_thread(node.wait)


async def drain_node(load: Load, chance: random.Random) -> None:
    """A planned move, and a new start."""
    node, other = chance.sample(list(load.nodes.values()), 2)
    with _happening(load, f"drain of {node.name}", node.name):
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(headers=HEADERS, timeout=TRY_SECONDS, trust_env=False) as client:
                await client.post(f"{other.url}/api/cluster/drain", json={"node": node.name})
        await asyncio.sleep(chance.uniform(2, 5))
        await asyncio.to_thread(node.stop)
        node.start()
        await asyncio.to_thread(node.wait)


async def cut_node(load: Load, chance: random.Random, least: float = 4) -> None:
    """No way to the servers for a while."""
    node = load.node()
    assert node.way is not None
    with _happening(load, f"cut of {node.name}", node.name):
        node.way.cut()
        await asyncio.sleep(chance.uniform(least, 20))
        node.way.mend()
        load.fault_at = time.monotonic()


async def kill_server(load: Load, chance: random.Random) -> None:
    """`kill -9` of a NATS server, and a new start a few seconds later. It is waited for until it has caught up: two
    that lack something would be no majority, which is more than a cluster bears."""
    server = chance.choice(load.servers)
    with _happening(load, f"kill -9 of NATS {server.name}", NATS):
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        await asyncio.sleep(chance.uniform(2, 6))
        await asyncio.to_thread(server.start)
        await _caught_up(load)


async def stop_server(load: Load, chance: random.Random) -> None:
    """SIGSTOP of a NATS server, and SIGCONT a few seconds later, when the others may have elected another leader."""
    server = chance.choice(load.servers)
    with _happening(load, f"stop of NATS {server.name}", NATS):
        server.send(signal.SIGSTOP)
        await asyncio.sleep(chance.uniform(2, 8))
        server.send(signal.SIGCONT)
        load.fault_at = time.monotonic()
        await _caught_up(load)


async def _caught_up(load: Load) -> None:
    """Wait until all servers have all that the stream has, but not for ever: the load goes on meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS), SessionStream.opened([each.url for each in load.servers]) as stream:
            while not await _is_current(stream):  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(_LOOK_SECONDS)


async def _is_current(stream: SessionStream) -> bool:
    try:
        with translated():
            found = (await stream.context.stream_info(stream.name)).cluster
    except StreamError:
        return False
    replicas = found.replicas if found is not None and found.replicas is not None else []
    return bool(replicas) and all(each.current and not each.offline for each in replicas)


#: Long enough for others to have taken over when the node is back.
OVERTAKEN = (partial(cut_node, least=LEASE_SECONDS + 6), partial(stop_node, least=LEASE_SECONDS + 6))

#: In this order, again and again: a run that has time for few of them has some of each kind.
FAULTS: tuple[Fault, ...] = (kill_server, kill_node, stop_server, cut_node, stop_node, drain_node, end_node)
#: What a run has time for, however slow the machine is: something happens to a node, and two things to the servers.
LEAST = 3


async def trouble(load: Load, faults: tuple[Fault, ...], seconds: float, pause: float) -> list[str]:
    """One fault after the other, for so long, and at least the first few; gives what was done."""
    told: list[str] = []
    end = time.monotonic() + seconds
    try:
        while faults and not load.over.is_set() and (time.monotonic() + pause < end or len(told) < LEAST):
            await asyncio.sleep(pause)
            await faults[len(told) % len(faults)](load, load.chance)
            told.append(load.fault)
    finally:
        load.calm.set()
    return told
