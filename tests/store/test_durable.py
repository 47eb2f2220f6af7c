"""Durable against a power cut, without waiting for the disk in the event loop: both stores."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.store.shelves import Shelf, fill, kept, numbers
from tests.support.patience import PATIENCE_SECONDS
from trunkline.store import durable


class Disk:
    """Stands in for the calls that wait for the disk, and watches them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.threads: set[int] = set()
        self.before: Callable[[], None] = lambda: None
        self._sync_data, self._sync_directory = durable.sync_data, durable.sync_directory
        monkeypatch.setattr(durable, "sync_data", self.sync_data)
        monkeypatch.setattr(durable, "sync_directory", self.sync_directory)

    def sync_data(self, fd: int) -> None:
        self.threads.add(threading.get_ident())
        self.before()
        self._sync_data(fd)
        self.synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    def sync_directory(self, path: str) -> None:
        self._sync_directory(path)
        self.synced.append(path)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def test_what_was_synced_is_there_after_a_power_cut(shelf: Shelf, disk: Disk, tmp_path: Path) -> None:
    log = shelf.store().create("s", "/w")
    survivors = tmp_path / "after"
    for last in (3, 6):
        added = fill(log, range(last - 2, last + 1))
        assert added
        await log.sync()
        # What the disk holds for certain: of the files that grow, those that were synced.
        assert str(shelf.growing_file()) in disk.synced
        disk.synced.clear()
        shutil.rmtree(survivors, ignore_errors=True)
        shutil.copytree(shelf.root, survivors, ignore=shutil.ignore_patterns("after"))
        after = Shelf(survivors)
        try:
            assert numbers(kept(after.store())) == list(range(1, last + 1))
        finally:
            after.close()


async def test_the_names_of_new_files_are_synced_once(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    await log.sync()
    assert str(shelf.growing_file().parent) in disk.synced
    # The directory was new, too.
    assert str(shelf.root) in disk.synced
    disk.synced.clear()
    fill(log, [2])
    await log.sync()
    assert disk.synced == [str(shelf.growing_file())]


async def test_nothing_new_needs_no_sync(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    await log.sync()
    disk.synced.clear()
    await log.sync()
    assert disk.synced == []


async def test_the_event_loop_goes_on_while_the_disk_works(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    released = threading.Event()
    disk.before = lambda: _wait(released)
    syncing = asyncio.create_task(log.sync())
    await _until(lambda: bool(disk.threads))
    # The loop runs, and so does the session: this is written while the disk is busy.
    fill(log, [2])
    log.flush()
    assert not syncing.done()
    released.set()
    await asyncio.wait_for(syncing, PATIENCE_SECONDS)
    assert threading.get_ident() not in disk.threads
    disk.synced.clear()
    await log.sync()
    assert disk.synced == [str(shelf.growing_file())]


async def test_of_two_syncs_at_once_neither_is_done_before_the_disk_is(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    released = threading.Event()
    disk.before = lambda: _wait(released)
    first, second = asyncio.create_task(log.sync()), asyncio.create_task(log.sync())
    await _until(lambda: bool(disk.threads))
    await asyncio.wait([first, second], timeout=0.05)
    assert not first.done()
    assert not second.done()
    released.set()
    await asyncio.wait_for(asyncio.gather(first, second), PATIENCE_SECONDS)


async def test_a_session_can_be_closed_and_reopened_while_the_disk_works(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    released = threading.Event()
    disk.before = lambda: _wait(released)
    syncing = asyncio.create_task(log.sync())
    await _until(lambda: bool(disk.threads))
    log.close()
    assert numbers(kept(shelf.store())) == [1]
    released.set()
    await asyncio.wait_for(syncing, PATIENCE_SECONDS)


async def test_a_sync_that_is_cancelled_leaves_no_file_open_and_can_be_repeated(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    log.flush()
    before = len(os.listdir("/proc/self/fd"))
    released = threading.Event()
    disk.before = lambda: _wait(released)
    syncing = asyncio.create_task(log.sync())
    await _until(lambda: bool(disk.threads))
    syncing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await syncing
    released.set()
    await _until(lambda: len(os.listdir("/proc/self/fd")) == before)
    disk.synced.clear()
    await log.sync()
    assert str(shelf.growing_file()) in disk.synced


async def test_a_sync_that_is_cancelled_before_it_begins_leaves_no_file_open(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    log.flush()
    released = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        executor.submit(_wait, released)
        before = len(os.listdir("/proc/self/fd"))
        syncing = asyncio.create_task(log.sync())
        await asyncio.sleep(0)
        syncing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await syncing
        released.set()
        await _until(lambda: bool(disk.synced))
        await _until(lambda: len(os.listdir("/proc/self/fd")) == before)


async def test_after_a_failure_of_the_disk_no_sync_claims_success(shelf: Shelf, disk: Disk) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    disk.before = fail
    with pytest.raises(OSError, match="Input/output error"):
        await log.sync()
    # The kernel reports a failed write once, and takes the data for written from then on.
    disk.before = lambda: None
    for _ in range(2):
        with pytest.raises(OSError, match="an earlier write was lost: Input/output error"):
            await log.sync()
    # The records are not forgotten: they can be read, and survive the death of the process.
    assert numbers(log.read()) == [1]
    log.close()
    assert numbers(kept(shelf.store())) == [1]


async def test_a_closed_log_cannot_be_synced(shelf: Shelf) -> None:
    log = shelf.store().create("s", "/w")
    log.close()
    with pytest.raises(ValueError, match="is closed"):
        await log.sync()


def _wait(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110  (another thread makes it true, and cannot wake this loop)
            await asyncio.sleep(0.001)
