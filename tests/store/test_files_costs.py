"""What sessions as files cost, by counting and not by the clock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.store.shelves import checkpoint, fill, record
from trunkline.core.events import TextDelta
from trunkline.store import logfile
from trunkline.store.files import FileStore


class Calls:
    """What goes through `os` while it watches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = 0
        self.written = 0
        self.others: list[str] = []
        real_pread, real_write = os.pread, os.write

        def pread(fd: int, length: int, offset: int) -> bytes:
            data = real_pread(fd, length, offset)
            self.read += len(data)
            return data

        def write(fd: int, data: Any) -> int:
            self.written += 1
            return real_write(fd, data)

        monkeypatch.setattr(os, "pread", pread)
        monkeypatch.setattr(os, "write", write)
        for name in ("lseek", "read", "ftruncate", "fsync", "fdatasync", "pwrite", "open", "stat", "fstat"):
            monkeypatch.setattr(os, name, lambda *_, name=name: self.others.append(name))


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> FileStore:
    """20,000 records, the 19,900th a checkpoint."""
    store = FileStore(tmp_path_factory.mktemp("long"))
    log = store.create("s", "/w")
    fill(log, range(1, 19_900))
    log.append(checkpoint(19_900, 77))
    fill(log, range(19_901, 20_001))
    log.close()
    return store


def test_appending_reads_nothing_seeks_nothing_and_flushing_is_one_write(
    long_log: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = long_log.open("s")
    with monkeypatch.context() as patch:
        calls = Calls(patch)
        for seq in range(20_001, 20_101):
            log.append(record(seq))
        assert (calls.read, calls.written, calls.others) == (0, 0, [])
        log.flush()
        log.flush()
        assert (calls.read, calls.written, calls.others) == (0, 1, [])
    log.close()


def test_opening_and_restoring_read_back_to_the_last_checkpoint_and_no_further(
    long_log: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        real_pread = os.pread
        read = 0

        def pread(fd: int, length: int, offset: int) -> bytes:
            nonlocal read
            data = real_pread(fd, length, offset)
            read += len(data)
            return data

        patch.setattr(os, "pread", pread)
        log = long_log.open("s")
        found = log.restore()
        opened_and_restored = read
        read = 0
        assert len(list(log.read(found.seq - 10))) == 10
        read_since = read
    log.close()
    assert found.state.turns == 77
    # The header, the last line, and what came after the checkpoint: a chunk each. The log has 2 MB.
    assert opened_and_restored <= 3 * logfile.CHUNK
    assert read_since <= 8 * logfile.CHUNK


def test_a_long_log_is_read_in_pieces(long_log: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = long_log.open("s")
    longest = 0
    real_pread = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        nonlocal longest
        longest = max(longest, length)
        return real_pread(fd, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    assert sum(1 for _ in log.read()) >= 20_000
    assert longest <= logfile.CHUNK
    log.close()


def test_records_longer_than_a_chunk_are_found_from_both_ends(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = store.create("s", "/w")
    added = [record(1), record(2, TextDelta("x" * 3 * logfile.CHUNK)), checkpoint(3, 5)]
    added += [record(4, TextDelta("y" * 5 * logfile.CHUNK)), record(5)]
    for envelope in added:
        log.append(envelope)
    log.close()
    log = store.open("s")
    assert list(log.read()) == added
    for since in range(6):
        assert list(log.read(since)) == added[since:]
    assert (log.restore().seq, log.restore().state.turns) == (5, 5)
    log.close()
