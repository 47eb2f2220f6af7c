"""A session's log in the stream: kept before it is shown, by one owner at a time."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.support import nats
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.events import Envelope, Notice, TextDelta
from trunkline.core.faults import ConfigError
from trunkline.core.log import LogLost
from trunkline.store.files import FileStore
from trunkline.store.jetstream import batches
from trunkline.store.jetstream import stream as streams
from trunkline.store.jetstream.log import StreamedLog
from trunkline.store.jetstream.ownership import Ownership, SessionOwner
from trunkline.store.jetstream.reading import follow, read_until
from trunkline.store.jetstream.stream import SessionStream

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture
async def stream(
    server: NatsServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SessionStream]:
    # Every write waits for the disk, which others may keep busy.
    monkeypatch.setattr(streams, "ANSWER_SECONDS", PATIENCE_SECONDS)
    async with SessionStream.opened([server.url], name=f"t{abs(hash(request.node.nodeid))}") as stream:
        yield stream


async def owned(stream: SessionStream, session: str, node: str = "a") -> SessionOwner:
    ownership = Ownership(stream)
    found = await ownership.claim(session, await ownership.find(session), node, f"{node}-run")
    assert found is not None
    return found


async def read(stream: SessionStream, session: str) -> list[Envelope]:
    last = (await stream.last(stream.both_subjects(session)))[0]
    return [each async for batch in read_until(stream, session, last) for each in batch.events]


def event(session: str, seq: int, text: str = "word ") -> Envelope:
    return Envelope(session, seq, 1, float(seq), TextDelta(text))


async def test_what_was_synced_is_read_back_in_order(stream: SessionStream, tmp_path: Path) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    for seq in range(1, 51):
        log.append(event("s", seq, f"{seq} "))
        if seq % 7 == 0:
            await log.sync()
    await log.sync()
    log.close()
    assert [each.event for each in await read(stream, "s")] == [TextDelta(f"{seq} ") for seq in range(1, 51)]


async def test_what_was_appended_is_synced_while_ever_more_comes(
    stream: SessionStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    publish, published = stream.publish, itertools.count(1)

    async def and_more_comes(*given: Any, **conditions: Any) -> int:
        found = await publish(*given, **conditions)
        # As from an agent that is quicker than the servers.
        if (number := next(published)) < 5:
            log.append(event("s", number + 1))
        return found

    monkeypatch.setattr(stream, "publish", and_more_comes)
    log.append(event("s", 1))
    await log.sync()
    assert [each.seq for each in await read(stream, "s")] == [1]
    await log.sync()
    assert [each.seq for each in await read(stream, "s")] == [1, 2]
    log.close()


async def test_a_deposed_owner_writes_nothing_more(stream: SessionStream, tmp_path: Path) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s", "a"))
    log.append(event("s", 1))
    await log.sync()
    await owned(stream, "s", "b")
    log.append(event("s", 2))
    for _ in range(2):
        with pytest.raises(LogLost):
            await log.sync()
    log.close()
    assert [each.seq for each in await read(stream, "s")] == [1]


async def test_of_two_that_want_a_session_one_gets_it(stream: SessionStream) -> None:
    ownership = Ownership(stream)
    before = await ownership.find("s")
    first = await ownership.claim("s", before, "a", "1")
    assert first is not None
    assert await ownership.claim("s", before, "b", "2") is None
    assert (await ownership.find("s")).node == "a"
    await ownership.release("s", first)
    assert (await ownership.find("s")).node == ""


async def test_what_is_removed_is_gone_and_its_owner_is_refused(stream: SessionStream, tmp_path: Path) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    log.append(event("s", 1))
    await log.sync()
    await Ownership(stream).forget("s")
    assert await stream.last(stream.both_subjects("s")) == (0, b"")
    log.append(event("s", 2))
    with pytest.raises(LogLost):
        await log.sync()
    log.close()


@pytest.mark.parametrize("size", [batches.PART_BYTES - 200, batches.PART_BYTES, 3 * batches.PART_BYTES + 1])
async def test_an_event_longer_than_a_message_is_read_back_whole(
    stream: SessionStream, tmp_path: Path, size: int
) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    log.append(Envelope("s", 1, 1, 1.0, Notice("x" * size)))
    log.append(event("s", 2))
    await log.sync()
    log.close()
    assert [each.event for each in await read(stream, "s")] == [Notice("x" * size), TextDelta("word ")]


def test_a_batch_whose_writer_died_in_the_middle_does_not_count() -> None:
    whole = batches.encode([Envelope("s", 1, 1, 1.0, Notice("old" * 500_000))])
    first, *_ = batches.parts("7-1", whole)
    reader = batches.BatchReader("s")
    assert not reader.take(*first)
    ((headers, data),) = batches.parts("9-1", batches.encode([Envelope("s", 1, 1, 1.0, Notice("new"))]))
    assert [each.event for each in reader.take(headers, data)] == [Notice("new")]
    # The rest of the old one, should it come all the same.
    assert not reader.take({batches.BATCH: "7-1 2 2"}, b"x\n")


async def test_a_follower_sees_what_is_kept_and_who_takes_over(stream: SessionStream, tmp_path: Path) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    async with aclosing(follow(stream, "s")) as batches_:
        assert (await anext(batches_)).owner is not None
        log.append(event("s", 1))
        await log.sync()
        assert [each.seq for each in (await anext(batches_)).events] == [1]
        await owned(stream, "s", "b")
        found = await anext(batches_)
        assert found.owner is not None
        assert b'"b"' in found.owner
    log.close()


async def test_servers_that_are_not_there_are_an_error_and_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.store.jetstream.stream.CONNECT_SECONDS", 0.5)
    with pytest.raises(ConfigError, match="No NATS server answers"):
        async with SessionStream.opened(["nats://127.0.0.1:1"]):
            pass


@pytest.mark.slow
async def test_writes_and_readers_go_on_when_a_server_is_killed(tmp_path: Path) -> None:
    with nats.servers(3) as found:
        async with SessionStream.opened([each.url for each in found], name="killed") as stream:
            log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
            async with aclosing(follow(stream, "s")) as batches_:
                seen: list[int] = []
                for seq in range(1, 61):
                    if seq == 20:
                        leader = (await stream.context.stream_info(stream.name)).cluster
                        assert leader is not None
                        next(each for each in found if each.name == leader.leader).stop(signal.SIGKILL)
                    log.append(event("s", seq))
                    await log.sync()
                while len(seen) < 60:
                    seen += [each.seq for each in (await anext(batches_)).events]
            log.close()
            assert seen == list(range(1, 61))
            assert [each.seq for each in await read(stream, "s")] == seen


async def test_whoever_follows_a_session_can_be_stopped_at_any_moment(stream: SessionStream, tmp_path: Path) -> None:
    log = StreamedLog(FileStore(str(tmp_path)).create("s", "/"), stream, await owned(stream, "s"))
    log.append(event("s", 1))
    await log.sync()

    async def listen() -> None:
        async with aclosing(follow(stream, "s")) as messages:
            async for _ in messages:
                pass

    for ticks in range(60):
        listening = asyncio.create_task(listen())
        for _ in range(ticks):
            await asyncio.sleep(0)
        listening.cancel()
        # The client library forgets a cancellation that comes while it waits for its buffers.
        await asyncio.wait({listening}, timeout=PATIENCE_SECONDS)
        assert listening.cancelled(), f"after {ticks} ticks"
