"""Logs whose writer is killed at random, cut at every byte and damaged in every bit."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.shelves import AT, Shelf, TidyFileStore, checkpoint, fill, record
from tests.support.killed_writer import lines_until_killed
from trunkline.core.events import Checkpointed, Envelope, Gap, Notice, TextDelta
from trunkline.core.faults import SessionDamaged
from trunkline.core.log import EventLog
from trunkline.store.files import FileStore

ROUNDS = 20

#: Appends what `expected` says, and reports each number only once it was flushed.
WRITER = """
import os, sys
from pathlib import Path
from tests.chaos.test_log_crash import expected
from tests.store.shelves import Shelf
from trunkline.core.faults import SessionNotFound

store = Shelf(Path(sys.argv[1])).store()
try:
    log = store.open("s")
except SessionNotFound:
    log = store.create("s", "/w")
seq = log.restore().seq
os.write(1, b"%d\\n" % seq)
while True:
    for _ in range(seq % 3 + 1):
        seq += 1
        log.append(expected(seq))
    log.flush()
    os.write(1, b"%d\\n" % seq)
"""


def expected(seq: int) -> Envelope:
    """Record `seq` of the sessions that get killed: mostly words, some of them long, some else, some checkpoints."""
    if seq % 50 == 0:
        return Envelope("s", seq, 0, AT, Checkpointed({"turns": seq}))
    if seq % 11 == 0:
        return Envelope("s", seq, 1, AT, Notice(f"{seq}"))
    return Envelope("s", seq, 1, AT, TextDelta(f"{seq} " * (20_000 if seq % 17 == 0 else 5)))


@pytest.mark.process
def test_what_was_flushed_survives_kill_9_and_nothing_torn_is_read(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    chance = random.Random(20_251_115)
    known = 0
    for _ in range(ROUNDS):
        reported = _write_until_killed(shelf, reports=chance.randrange(1, 120))
        # Nothing that was seen after one crash is missing after the next.
        assert reported >= known
        with closing(shelf.store().open("s")) as log:
            found = list(log.read())
            assert found == [expected(seq) for seq in range(1, len(found) + 1)]
            assert len(found) >= reported
            restored = log.restore()
            assert restored.seq == len(found)
            assert restored.state.turns == len(found) // 50 * 50
        known = len(found)
    shelf.close()


def _write_until_killed(shelf: Shelf, reports: int) -> int:
    """The last number that was reported."""
    return int(lines_until_killed([sys.executable, "-c", WRITER, str(shelf.root)], reports)[-1])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = TidyFileStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def whole(store: FileStore, tmp_path: Path) -> bytes:
    """A small log of four records, one of them a checkpoint."""
    with closing(store.create("s", "/w")) as log:
        fill(log, [1, 2])
        log.append(checkpoint(3, 9))
        fill(log, [4])
    return (tmp_path / "s.log").read_bytes()


def test_a_log_cut_at_any_byte_gives_exactly_the_whole_records_before_the_cut(
    store: FileStore, tmp_path: Path, whole: bytes
) -> None:
    path = tmp_path / "s.log"
    header = whole.index(b"\n") + 1
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        if cut < header:
            with pytest.raises(SessionDamaged):
                store.open("s")
            continue
        survivors = whole[header:cut].count(b"\n")
        with closing(store.open("s")) as log:
            assert [item.seq for item in _records(log)] == list(range(1, survivors + 1))
            assert log.restore().seq == survivors
            assert log.restore().state.turns == (9 if survivors >= 3 else 0)
            # And it goes on from there.
            log.append(record(survivors + 1))
            log.flush()
            assert [item.seq for item in _records(log)] == list(range(1, survivors + 2))
    # One record cut short is nothing to keep.
    assert sorted(os.listdir(tmp_path)) == ["s.log"]


def _records(log: EventLog) -> list[Envelope]:
    """All records of a log that must have no gap."""
    found = []
    for item in log.read():
        assert isinstance(item, Envelope)
        found.append(item)
    return found


@pytest.mark.slow
def test_a_log_with_any_bit_flipped_gives_no_wrong_record(store: FileStore, tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "s.log"
    header = whole.index(b"\n") + 1
    with closing(store.open("s")) as log:
        originals = {item.seq: item for item in _records(log)}
    damaged_headers = 0
    for position in range(len(whole)):
        for bit in range(8):
            content = bytearray(whole)
            content[position] ^= 1 << bit
            path.write_bytes(content)
            try:
                log = store.open("s")
            except SessionDamaged:
                assert position < header
                damaged_headers += 1
                continue
            with closing(log):
                assert position >= header
                _check_damaged(log, originals)
            for aside in tmp_path.glob("*.damaged-*"):
                aside.unlink()
    assert damaged_headers == header * 8


def _check_damaged(log: EventLog, originals: dict[int, Envelope]) -> None:
    """What is read is true, in order, with every missing number in a gap; and at most two records are missing."""
    seen: list[int] = []
    missing = 0
    for item in log.read():
        if isinstance(item, Gap):
            assert item.first == len(seen) + 1
            missing += item.last - item.first + 1
            seen += range(item.first, item.last + 1)
        else:
            assert item == originals[item.seq]
            seen.append(item.seq)
    assert seen == list(range(1, len(seen) + 1))
    assert missing + len(originals) - len(seen) <= 2
    assert log.restore().seq == len(seen)


@pytest.mark.slow
def test_a_log_with_damage_all_over_gives_no_wrong_record(store: FileStore, tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "s.log"
    header = whole.index(b"\n") + 1
    with closing(store.open("s")) as log:
        originals = {item.seq: item for item in _records(log)}
    chance = random.Random(20_251_115)
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            start = chance.randrange(header, len(content))
            end = min(len(content), start + chance.randrange(1, 80))
            # Overwritten by zeros or noise, taken out, or doubled.
            noise = chance.choice([bytes(end - start), chance.randbytes(end - start), b"", content[start:end] * 2])
            content[start:end] = noise
        path.write_bytes(content)
        with closing(store.open("s")) as log:
            for item in log.read():
                assert isinstance(item, Gap) or item == originals[item.seq]
            log.restore()
