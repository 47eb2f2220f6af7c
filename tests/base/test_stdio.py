"""A protocol's own input, from pipes and from what cannot be polled."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.stdio import READ_BYTES, StdinReader

#: Turns of the event loop, more than any hand-over between it and a thread takes.
TURNS = 50


class Taken:
    """What a reader has given, and a way to wait for it."""

    def __init__(self, fd: int) -> None:
        self.data = bytearray()
        self.chunks = 0
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        self.on_chunk: Callable[[], None] = lambda: None
        self.reader = StdinReader(fd, self._take, self.ended.set)

    def _take(self, data: bytes) -> None:
        self.data += data
        self.chunks += 1
        self.changed.set()
        self.on_chunk()

    async def until(self, chunks: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.chunks < chunks:
                self.changed.clear()
                await self.changed.wait()

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.ended.wait()


class Reads:
    """Counts the reads of a descriptor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
        self.begun = 0
        self.done = 0
        self.gate = threading.Event()
        """Cleared, it keeps a read from returning."""
        self.gate.set()
        real = os.read

        def read(read_fd: int, length: int) -> bytes:
            if read_fd != fd:
                return real(read_fd, length)
            self.begun += 1
            self.gate.wait(PATIENCE_SECONDS)
            data = real(read_fd, length)
            self.done += 1
            return data

        monkeypatch.setattr(os, "read", read)


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "standard input"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  (another thread makes it true, and cannot wake this loop)
            await asyncio.sleep(0)


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_a_file_is_read_to_its_end_and_its_thread_ends(tmp_path: Path) -> None:
    content = os.urandom(5 * READ_BYTES + 7)
    (tmp_path / "input").write_bytes(content)
    with opened(tmp_path / "input") as fd:
        taken = Taken(fd)
        taken.reader.start()
        await taken.end()
        assert taken.data == content
        await until(lambda: not threads())


async def test_an_endless_device_is_read_no_faster_than_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("/dev/zero") as fd:
        reads = Reads(monkeypatch, fd)
        taken = Taken(fd)
        ahead: list[int] = []
        taken.on_chunk = lambda: ahead.append(reads.begun - taken.chunks)
        taken.reader.start()
        await taken.until(200)
        taken.reader.close()
        assert set(ahead) == {0}
        await until(lambda: not threads())
        assert reads.done <= taken.chunks + 1


async def test_while_the_event_loop_is_busy_a_device_is_not_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is held until the thread has read a chunk: were it to go on by itself, it would do so now."""
    with opened("/dev/zero") as fd:
        reads = Reads(monkeypatch, fd)
        taken = Taken(fd)
        taken.reader.start()
        await taken.until(1)
        begun = reads.begun
        for thread in threads():
            thread.join(0.2)
        assert reads.begun <= begun + 1
        taken.reader.close()
        await until(lambda: not threads())


async def test_a_pause_holds_a_file_and_resuming_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(20 * READ_BYTES)
    (tmp_path / "input").write_bytes(content)
    with opened(tmp_path / "input") as fd:
        reads = Reads(monkeypatch, fd)
        taken = Taken(fd)
        taken.on_chunk = lambda: taken.reader.pause()
        taken.reader.start()
        for chunks in range(1, 21):
            await taken.until(chunks)
            await turns()
            assert (taken.chunks, reads.begun) == (chunks, chunks)
            # More than once, and taken back in between: it still is one pause and one resumption.
            taken.reader.resume()
            taken.reader.pause()
            taken.reader.resume()
            taken.reader.resume()
        await taken.end()
        assert taken.data == content


async def test_a_chunk_that_comes_during_a_pause_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("/dev/zero") as fd:
        reads = Reads(monkeypatch, fd)
        reads.gate.clear()
        taken = Taken(fd)
        taken.reader.start()
        await until(lambda: reads.begun == 1)
        taken.reader.pause()
        reads.gate.set()
        await until(lambda: reads.done == 1)
        await turns()
        assert taken.chunks == 0
        taken.reader.resume()
        assert taken.chunks == 0
        await taken.until(1)
        taken.reader.close()


@pytest.mark.parametrize("paused", [False, True])
async def test_after_closing_nothing_more_is_given_and_the_thread_ends(paused: bool) -> None:
    with opened("/dev/zero") as fd:
        taken = Taken(fd)
        taken.reader.start()
        await taken.until(3)
        if paused:
            taken.reader.pause()
        taken.reader.close()
        taken.reader.close()
        taken.reader.resume()
        chunks = taken.chunks
        await until(lambda: not threads())
        await turns()
        assert taken.chunks == chunks
        assert not taken.ended.is_set()


async def test_an_error_of_a_device_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("/dev/zero") as fd:
        real = os.read

        def read(read_fd: int, length: int) -> bytes:
            if read_fd == fd:
                raise OSError(5, "Input/output error")
            return real(read_fd, length)

        monkeypatch.setattr(os, "read", read)
        taken = Taken(fd)
        taken.reader.start()
        await taken.end()
        await until(lambda: not threads())


async def test_a_directory_cannot_be_read_and_is_at_its_end(tmp_path: Path) -> None:
    with opened(tmp_path) as fd:
        taken = Taken(fd)
        taken.reader.start()
        await taken.end()
        assert taken.chunks == 0


async def test_a_chunk_that_is_refused_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(3 * READ_BYTES))
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def refuse() -> None:
        raise ValueError("refused")

    with opened(tmp_path / "input") as fd:
        taken = Taken(fd)
        taken.on_chunk = refuse
        taken.reader.start()
        await taken.end()
    assert len(taken.data) == 3 * READ_BYTES
    assert [str(context["exception"]) for context in complaints] == ["refused"] * 3


def test_a_loop_that_is_closed_first_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    go, real = threading.Event(), os.read

    with opened("/dev/zero") as fd:

        def read(read_fd: int, length: int) -> bytes:
            if read_fd == fd:
                go.wait(PATIENCE_SECONDS)
            return real(read_fd, length)

        async def leave() -> None:
            Taken(fd).reader.start()
            await turns()

        monkeypatch.setattr(os, "read", read)
        asyncio.run(leave())
        go.set()
        for thread in threads():
            thread.join(PATIENCE_SECONDS)
        assert threads() == []
    assert complaints == []


async def test_a_pipe_is_polled_paused_and_resumed() -> None:
    reading, writing = os.pipe()
    try:
        taken = Taken(reading)
        taken.reader.start()
        assert threads() == []
        os.write(writing, b"one")
        await taken.until(1)
        taken.reader.pause()
        os.write(writing, b"two")
        await turns()
        assert taken.data == b"one"
        taken.reader.resume()
        await taken.until(2)
        assert taken.data == b"onetwo"
    finally:
        os.close(writing)
    await taken.end()
    os.close(reading)
