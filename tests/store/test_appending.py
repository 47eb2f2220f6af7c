"""How much a log holds in memory while it cannot be written, and what that costs."""

from __future__ import annotations

import errno
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.store.shelves import Shelf, TidyFileStore, fill, kept, numbers, record
from tests.support.full_disk import files_limited_to
from trunkline.core.events import Gap, Notice
from trunkline.core.log import EventLog
from trunkline.store import appending
from trunkline.store.filelog import FileLog

CAP = 64 * 1024
MEBIBYTE = 1024 * 1024
PIECE = 1000


@pytest.fixture
def cap(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(appending, "UNWRITTEN_BYTES", CAP)
    return CAP


def _fail_to_flush(log: EventLog, seqs: range, times: int = 1) -> int:
    """Append long records and fail to write them, a few times in between; gives what they take."""
    size = 0
    for seq in seqs:
        size += log.append(record(seq, Notice("x" * PIECE)))
        if seq % max(1, len(seqs) // times) == 0:
            with pytest.raises(OSError, match=r"."):
                log.flush()
    with pytest.raises(OSError, match=r"."):
        log.flush()
    return size


def _one_gap(found: list[int | tuple[int, int]], first: int, last: int) -> int:
    """Check that all records up to `first` are there, then one gap, then the rest; gives how many the rest are."""
    assert found[:first] == list(range(1, first + 1))
    gap, *rest = found[first:]
    assert isinstance(gap, tuple)
    assert gap[0] == first + 1
    assert rest == list(range(gap[1] + 1, last + 1))
    return len(rest)


@pytest.mark.parametrize("times", [1, 7, 300])
def test_beyond_the_limit_the_oldest_unwritten_records_are_a_gap_at_once_and_for_ever(
    shelf: Shelf, cap: int, times: int
) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, range(1, 11))
    log.flush()
    with files_limited_to(shelf.growing_file().stat().st_size):
        _fail_to_flush(log, range(11, 311), times)
        held = _one_gap(numbers(log.read()), 10, 310)
        assert cap / 2 < held * PIECE <= cap
        assert numbers(log.read(305)) == list(range(306, 311))
        assert log.restore().seq == 310
    fill(log, [311])
    log.flush()
    assert _one_gap(numbers(log.read()), 10, 311) == held + 1
    log.close()
    assert _one_gap(numbers(kept(shelf.store())), 10, 311) == held + 1


def test_up_to_the_limit_nothing_is_given_up(shelf: Shelf, cap: int) -> None:
    log = shelf.store().create("s", "/w")
    fill(log, [1])
    log.flush()
    with files_limited_to(shelf.growing_file().stat().st_size):
        assert _fail_to_flush(log, range(2, 52), 10) < cap
    assert numbers(log.read()) == list(range(1, 52))


def test_what_was_appended_and_not_flushed_is_not_limited(shelf: Shelf, cap: int) -> None:
    log = shelf.store().create("s", "/w")
    assert sum(log.append(record(seq, Notice("x" * PIECE))) for seq in range(1, 200)) > 2 * cap
    assert numbers(log.read()) == list(range(1, 200))
    log.close()
    assert numbers(kept(shelf.store())) == list(range(1, 200))


@pytest.mark.parametrize("spare", [0, 1, 500, PIECE, 1200])
def test_a_record_that_the_file_has_the_beginning_of_is_completed(tmp_path: Path, cap: int, spare: int) -> None:
    store = TidyFileStore(tmp_path)
    log = store.create("s", "/w")
    path = tmp_path / "s.log"
    with files_limited_to(path.stat().st_size + spare):
        _fail_to_flush(log, range(1, 301), 20)
    log.close()
    found = kept(store)
    # Each line is whole: those that are missing were given up, and none was damaged on top of that.
    begun = 2 if spare > PIECE + 100 else int(spare > 0)
    assert _one_gap(numbers(found), begun, 300) * PIECE <= cap
    assert sum(isinstance(item, Gap) for item in found) == 1
    store.close()


@contextmanager
def _full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def write(fd: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        yield


def _most_memory(log: FileLog, seq: int) -> int:
    """What appending a short record and failing to flush it takes for a moment."""
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    fill(log, [seq])
    with pytest.raises(OSError, match="No space left"):
        log.flush()
    return tracemalloc.get_traced_memory()[1] - before


@pytest.mark.parametrize("limit", [64 * MEBIBYTE, 4 * MEBIBYTE])
def test_a_flush_that_fails_does_not_copy_what_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also when the limit was reached, and room is made every now and then."""
    monkeypatch.setattr(appending, "UNWRITTEN_BYTES", limit)
    log = TidyFileStore(tmp_path).create("s", "/w")
    with _full_disk(monkeypatch):
        for seq in range(1, 9):
            log.append(record(seq, Notice("x" * MEBIBYTE)))
            with pytest.raises(OSError, match="No space left"):
                log.flush()
        tracemalloc.start()
        try:
            taken = sum(_most_memory(log, seq) for seq in range(9, 109))
        finally:
            tracemalloc.stop()
        assert taken < 16 * MEBIBYTE
    log.close()
