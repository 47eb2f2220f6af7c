"""The stream as a file, and back: with all numbers, or not at all."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from tests.support import nats
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_SECONDS
from trunkline.store.jetstream import snapshot as snapshots
from trunkline.store.jetstream import stream as streams
from trunkline.store.jetstream.errors import StreamError, StreamGone, WrongSequence
from trunkline.store.jetstream.ownership import Ownership
from trunkline.store.jetstream.snapshot import StreamSnapshot, restore_stream, save_stream, stream_size
from trunkline.store.jetstream.stream import ANSWER_SECONDS, SessionStream

pytestmark = pytest.mark.process

NAME = "saved"


@pytest.fixture
def server() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture
def empty() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture
async def stream(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SessionStream]:
    # Every write waits for the disk, which others may keep busy.
    monkeypatch.setattr(streams, "ANSWER_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(snapshots, "ANSWER_SECONDS", PATIENCE_SECONDS)
    async with SessionStream.opened([server.url], name=NAME) as stream:
        yield stream


async def filled(stream: SessionStream, count: int = 40, size: int = 100_000) -> dict[str, tuple[int, bytes]]:
    """Sessions with an owner and one event each, and some that were removed; gives the last message on each subject."""
    ownership = Ownership(stream)
    found = {}
    for number in range(count):
        session = f"s{number}"
        owner = await ownership.claim(session, await ownership.find(session), "a", "run")
        assert owner is not None
        # What cannot be made smaller: a snapshot is packed.
        data = os.urandom(size)
        await stream.publish(
            stream.log_subject(session), data, expected=owner.fence, about=stream.owner_subject(session)
        )
        if number % 10 in (3, 9):
            await ownership.forget(session)
        found[session] = await stream.last(stream.both_subjects(session))
    return found


async def saved(stream: SessionStream) -> tuple[io.BytesIO, StreamSnapshot]:
    file = io.BytesIO()
    made = await save_stream(stream, file)
    file.seek(0)
    return file, made


async def test_a_restored_stream_has_the_same_messages_under_the_same_numbers(
    stream: SessionStream, empty: NatsServer
) -> None:
    before = await filled(stream)
    told: list[int] = []
    file = io.BytesIO()
    made = await save_stream(stream, file, told.append)
    # Several megabytes, in many pieces.
    assert len(told) > 20
    assert told[-1] == len(file.getvalue()) > 3_000_000
    file.seek(0)
    async with SessionStream.opened([empty.url], name=NAME) as other:
        await restore_stream(other, file, made)
        assert {name: await other.last(other.both_subjects(name)) for name in before} == before
        # The last ones were removed, and their numbers are not used again.
        assert before["s39"] == (0, b"")
        assert await other.publish(other.owner_subject("new"), b"{}", expected=0) == made.last + 1 == 81
        assert await stream_size(other) == (made.messages + 1, (await stream_size(other))[1])


async def test_fences_hold_after_a_restore(stream: SessionStream, empty: NatsServer) -> None:
    ownership = Ownership(stream)
    first = await ownership.claim("s", await ownership.find("s"), "a", "run")
    assert first is not None
    second = await ownership.claim("s", first, "b", "run")
    assert second is not None
    file, made = await saved(stream)
    async with SessionStream.opened([empty.url], name=NAME) as other:
        await restore_stream(other, file, made)
        subject, about = other.log_subject("s"), other.owner_subject("s")
        with pytest.raises(WrongSequence):
            await other.publish(subject, b"old", expected=first.fence, about=about)
        assert await other.publish(subject, b"new", expected=second.fence, about=about) > second.fence
        assert await Ownership(other).find("s") == second


async def test_what_is_written_meanwhile_is_in_it_or_is_not_and_leaves_no_hole(
    stream: SessionStream, empty: NatsServer
) -> None:
    await filled(stream)
    begun, stop = asyncio.Event(), asyncio.Event()

    async def write() -> int:
        last = 0
        while not stop.is_set():
            last = await stream.publish(stream.log_subject("busy"), str(last).encode(), expected=last)
            begun.set()
        return last

    writing = asyncio.create_task(write())
    await begun.wait()
    file, made = await saved(stream)
    stop.set()
    end = await writing
    async with SessionStream.opened([empty.url], name=NAME) as other:
        await restore_stream(other, file, made)
        last, data = await other.last(other.log_subject("busy"))
        assert made.last <= last <= end
        while last:
            # Each has the number of the one before it.
            message = await other.context.get_msg(other.name, int(data)) if int(data) else None
            last, data = (0, b"") if message is None else (int(message.seq or 0), bytes(message.data or b""))


@pytest.mark.parametrize("broken", ["half", "nonsense"])
async def test_a_broken_file_is_refused_and_leaves_nothing(
    stream: SessionStream, empty: NatsServer, broken: str
) -> None:
    await filled(stream, 10)
    file, made = await saved(stream)
    data = file.getvalue()
    wrong = data[: len(data) // 2] if broken == "half" else os.urandom(len(data))
    async with SessionStream.opened([empty.url], name=NAME) as other:
        with pytest.raises(StreamError, match="restore"):
            await restore_stream(other, io.BytesIO(wrong), made)
    # Half of it would look like the whole.
    async with SessionStream.opened([empty.url], name=NAME) as other:
        assert (await stream_size(other))[0] == 0
        await restore_stream(other, io.BytesIO(data), made)
        assert (await stream_size(other))[0] == made.messages


async def test_a_snapshot_with_a_piece_missing_is_not_one(
    stream: SessionStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(stream, 10)
    check, seen = snapshots._check_number, list[int]()

    def one_later(piece: object, number: int) -> None:
        seen.append(number)
        check(piece, number + (number > 2))  # type: ignore[arg-type]

    monkeypatch.setattr(snapshots, "_check_number", one_later)
    with pytest.raises(StreamGone, match="incomplete"):
        await saved(stream)
    assert seen == [1, 2, 3]


async def test_both_can_be_stopped_at_any_moment(stream: SessionStream, server: NatsServer, empty: NatsServer) -> None:
    await filled(stream, 10)
    file, made = await saved(stream)
    async with SessionStream.opened([empty.url], name=NAME) as other:
        for ticks in range(0, 60, 3):
            file.seek(0)
            for work in (lambda: save_stream(stream, io.BytesIO()), lambda: restore_stream(other, file, made)):
                task: asyncio.Task[object] = asyncio.create_task(work())
                for _ in range(ticks):
                    await asyncio.sleep(0)
                was_stopped = task.cancel()
                await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
                assert task.done(), f"after {ticks} ticks"
                assert task.cancelled() is was_stopped
        file.seek(0)
        await restore_stream(other, file, made)
        assert (await stream_size(other))[0] == made.messages
    for each in (server, empty):
        # Asked to end, it would wait for those who wanted its snapshots.
        each.stop(signal.SIGKILL)


@pytest.mark.slow
async def test_all_servers_have_it_and_one_may_die(
    stream: SessionStream, empty: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await filled(stream, 20)
    file, made = await saved(stream)
    assert made.config["num_replicas"] == 1
    for module in (streams, snapshots):
        monkeypatch.setattr(module, "ANSWER_SECONDS", ANSWER_SECONDS)
    with nats.servers(3) as found:
        async with SessionStream.opened([each.url for each in found], name=NAME) as other:
            await restore_stream(other, file, made)
            told = await other.context.stream_info(other.name)
            assert told.config.num_replicas == 3
            assert told.cluster is not None
            next(each for each in found if each.name == told.cluster.leader).stop(signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert {name: await last(other, name) for name in before} == before
            again, _ = await saved(other)
    async with SessionStream.opened([empty.url], name=NAME) as back:
        await restore_stream(back, again, made)
        assert (await back.context.stream_info(back.name)).config.num_replicas == 1
        assert {name: await last(back, name) for name in before} == before


async def last(stream: SessionStream, session: str) -> tuple[int, bytes]:
    """The last message of a session, as soon as there is somebody to ask."""
    while True:
        with suppress(StreamGone):
            return await stream.last(stream.both_subjects(session))
