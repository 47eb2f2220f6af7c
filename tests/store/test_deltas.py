"""Deltas that follow each other are one record of a log file, and nothing of them is lost on the way there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.store.shelves import AT, TidyFileStore, kept, numbers, record
from trunkline.cli import shelf
from trunkline.core.events import Envelope, Event, Notice, TextDelta, ThinkingDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.store import deltas, logfile
from trunkline.store.filelog import FileLog
from trunkline.store.files import FileStore

WORDS = ("No", ",", " it", " is", " 7", ".")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TidyFileStore]:
    store = TidyFileStore(tmp_path / "sessions")
    yield store
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s.log"


def tail_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.tail")


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()[1:]


def say(log: FileLog, first: int, *events: Event, turn: int = 1) -> list[Envelope]:
    """Append events from a number on."""
    added = [record(seq, event, turn=turn) for seq, event in enumerate(events, first)]
    for envelope in added:
        log.append(envelope)
    return added


def answer(log: FileLog, first: int = 1, turn: int = 1) -> list[Envelope]:
    """A short turn: eight events."""
    message = TurnStarted(UserMessage("is it 7?"))
    return say(log, first, message, *map(TextDelta, WORDS), TurnEnded("success"), turn=turn)


def test_the_words_of_an_answer_are_one_record_and_are_read_back_one_by_one(store: TidyFileStore, path: Path) -> None:
    with closing(store.create("s", "/w")) as log:
        added = answer(log)
        log.flush()
        assert len(lines(path)) == 3
        assert list(log.read()) == added
    assert kept(store) == added


def test_words_that_came_one_by_one_are_one_record_as_well_once_their_turn_has_ended(
    store: TidyFileStore, path: Path
) -> None:
    with closing(store.create("s", "/w")) as log:
        added = say(log, 1, TurnStarted(UserMessage("?")))
        for seq, word in enumerate(WORDS, 2):
            added += say(log, seq, TextDelta(word))
            log.flush()
            assert list(log.read()) == added
            assert len(lines(path)) == 1
        added += say(log, 8, TurnEnded("success"))
        log.flush()
        assert len(lines(path)) == 3
    assert kept(store) == added


def test_a_reader_that_has_some_of_the_words_is_given_the_others(store: TidyFileStore) -> None:
    with closing(store.create("s", "/w")) as log:
        added = [envelope for turn in range(1, 400) for envelope in answer(log, 8 * turn - 7, turn)]
        for since in (0, 1, 2, 3, 6, 7, 8, 9, 1601, 1603, 1605, 3191):
            assert list(log.read(since)) == added[since:]


def test_words_and_thoughts_and_turns_are_not_mixed(store: TidyFileStore, path: Path) -> None:
    with closing(store.create("s", "/w")) as log:
        added = say(log, 1, ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("a"), TextDelta("b"))
        added += say(log, 5, TextDelta("c"), TextDelta("d"), turn=2)
    assert kept(store) == added
    assert [line.count(b"parts") for line in lines(path)] == [1, 1, 1]


def test_the_time_of_words_that_share_a_record_is_that_of_the_first(store: TidyFileStore) -> None:
    with closing(store.create("s", "/w")) as log:
        for seq in (1, 2, 3):
            log.append(Envelope("s", seq, 1, AT + seq, TextDelta("x")))
    assert [item.at for item in kept(store) if isinstance(item, Envelope)] == [AT + 1] * 3


def test_a_long_answer_is_several_records(store: TidyFileStore, path: Path) -> None:
    with closing(store.create("s", "/w")) as log:
        added = say(log, 1, *(TextDelta("x" * 1000) for _ in range(200)), TextDelta("y" * 2 * deltas.MAX_BYTES))
        log.flush()
        assert 3 <= len(lines(path)) <= 5
    assert kept(store) == added


@pytest.mark.parametrize(
    "texts", [("\ud83d", "\ude00"), ("a\ud83d", "\ude00b", "c"), ("", "", ""), ("\0", "\n", "\u2028"), ("👋", "é", "")]
)
def test_any_text_can_be_cut_anywhere(store: TidyFileStore, texts: tuple[str, ...]) -> None:
    with closing(store.create("s", "/w")) as log:
        added = say(log, 1, *map(TextDelta, texts))
        assert list(log.read()) == added
    assert kept(store) == added


# A process that dies


def copied(path: Path, to: Path) -> TidyFileStore:
    """The files as another process finds them after this one died at this moment."""
    shutil.copytree(path.parent, to)
    return TidyFileStore(to)


def test_what_was_flushed_is_there_after_a_crash_at_any_moment(
    store: TidyFileStore, path: Path, tmp_path: Path
) -> None:
    log = store.create("s", "/w")
    flushed: list[Envelope] = []
    for seq in range(1, 60):
        event = TurnEnded("success") if seq % 9 == 0 else ThinkingDelta("t") if seq % 9 < 4 else TextDelta(f"{seq}")
        flushed += say(log, seq, event, turn=seq // 9)
        log.flush()
        after = copied(path, tmp_path / f"after-{seq}")
        assert list(after.peek("s").records) == flushed
        opened = after.open("s")
        assert list(opened.read()) == flushed
        assert opened.restore().seq == seq
        say(opened, seq + 1, Notice("on"))
        opened.close()
        assert numbers(kept(after)) == list(range(1, seq + 2))
        assert [entry.name for entry in (tmp_path / f"after-{seq}").iterdir()] == ["s.log"]


def test_a_crash_at_any_byte_of_the_record_that_words_become_takes_none_of_them(
    store: TidyFileStore, path: Path, tmp_path: Path
) -> None:
    log = store.create("s", "/w")
    added = say(log, 1, TurnStarted(UserMessage("?")), *map(TextDelta, WORDS))
    log.flush()
    before, tail = path.stat().st_size, tail_of(path).read_bytes()
    say(log, 8, TurnEnded("success"))
    log.flush()
    whole = path.read_bytes()
    place = tmp_path / "cut"
    place.mkdir()
    after = TidyFileStore(place)
    for cut in range(before, len(whole)):
        (place / "s.log").write_bytes(whole[:cut])
        (place / "s.log.tail").write_bytes(tail)
        assert kept(after)[:7] == added, cut


def test_no_bit_that_flips_beside_the_log_makes_a_wrong_word(store: TidyFileStore, path: Path, tmp_path: Path) -> None:
    log = store.create("s", "/w")
    added = say(log, 1, Notice("n"), TextDelta("a"), TextDelta("b"))
    log.flush()
    place = tmp_path / "flipped"
    place.mkdir()
    shutil.copy(path, place)
    tail = tail_of(path).read_bytes()
    after = FileStore(place)
    for number in range(len(tail) * 8):
        damaged = bytearray(tail)
        damaged[number // 8] ^= 1 << number % 8
        (place / "s.log.tail").write_bytes(damaged)
        found = list(after.peek("s").records)
        assert found == added[: len(found)]
        assert found[0] == added[0]


def test_words_of_another_session_of_that_id_are_not_taken(store: TidyFileStore, path: Path) -> None:
    log = store.create("s", "/w")
    say(log, 1, TextDelta("old"), TextDelta("words"))
    log.flush()
    left = tail_of(path).read_bytes()
    log.discard()
    assert not tail_of(path).exists()
    log = store.create("s", "/w")
    tail_of(path).write_bytes(left)
    log.close()
    tail_of(path).write_bytes(left)
    assert kept(store) == []


def test_words_behind_a_hole_say_nothing(store: TidyFileStore, path: Path, tmp_path: Path) -> None:
    log = store.create("s", "/w")
    say(log, 1, Notice("a"), Notice("b"))
    log.flush()
    size = path.stat().st_size
    say(log, 3, Notice("c"), TextDelta("d"), TextDelta("e"))
    log.flush()
    after = copied(path, tmp_path / "after")
    os.truncate(tmp_path / "after" / "s.log", size)
    assert numbers(kept(after)) == [1, 2]


# A disk that is full


def test_words_that_could_not_be_kept_are_kept_later(
    store: TidyFileStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pwrite(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = store.create("s", "/w")
    added = say(log, 1, TextDelta("a"), TextDelta("b"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        with pytest.raises(OSError, match="No space left"):
            log.flush()
    added += say(log, 3, TextDelta("c"))
    log.flush()
    assert list(copied(path, tmp_path / "after").peek("s").records) == added
    log.close()
    assert kept(store) == added


def test_words_stay_beside_a_log_that_could_not_be_written(
    store: TidyFileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = store.create("s", "/w")
    added = say(log, 1, TextDelta("a"), TextDelta("b"))
    log.flush()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space left"):
            log.close()
        # Nor can the next process write it, but it has it.
        opened = store.open("s")
        assert list(opened.read()) == added
        with pytest.raises(OSError, match="No space left"):
            opened.close()
    assert kept(store) == added
    assert not tail_of(path).exists()


# Those who look on, and old logs


def test_who_looks_on_sees_each_word_as_soon_as_it_is_flushed(store: TidyFileStore, path: Path) -> None:
    log = store.create("s", "/w")
    added = say(log, 1, TurnStarted(UserMessage("?")))
    for seq, word in enumerate(WORDS, 2):
        added += say(log, seq, TextDelta(word))
        log.flush()
        assert list(store.peek("s").records) == added
    assert list(store.peek("s").records) == added


def test_who_looks_on_while_words_become_a_record_sees_them_once(
    store: TidyFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.create("s", "/w")
    added = say(log, 1, TextDelta("a"), TextDelta("b"))
    log.flush()
    last_record = logfile.last_record

    def meanwhile(*arguments: Any) -> tuple[int, int]:
        say(log, 3, Notice("c"))
        log.flush()
        return last_record(*arguments)

    monkeypatch.setattr(logfile, "last_record", meanwhile)
    assert list(store.peek("s").records) == added


def test_a_log_that_was_begun_in_the_old_form_goes_on_in_it(store: TidyFileStore, path: Path) -> None:
    path.parent.mkdir()
    old = [record(1, TextDelta("a")), record(2, TextDelta("b"))]
    header = logfile.encode_header(logfile.Header("s", "/w", AT, records=1))
    path.write_bytes(header + b"".join(map(logfile.encode_record, old)))
    log = store.open("s")
    added = old + say(log, 3, TextDelta("c"), TextDelta("d"))
    log.close()
    assert kept(store) == added
    assert len(lines(path)) == 4
    assert b"parts" not in path.read_bytes()


def test_a_session_that_is_removed_leaves_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "home"))
    store = TidyFileStore(tmp_path / "home" / "sessions")
    log = store.create("s", "/w")
    say(log, 1, TextDelta("a"), TextDelta("b"))
    log.flush()
    copied(tmp_path / "home" / "sessions" / "s.log", tmp_path / "other" / "sessions")
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "other"))
    shelf.remove("s")
    assert list((tmp_path / "other" / "sessions").iterdir()) == []
    store.close()


def test_words_that_come_fast_are_never_written_twice(store: TidyFileStore, path: Path) -> None:
    log = store.create("s", "/w")
    for turn in range(1, 20):
        answer(log, 8 * turn - 7, turn)
        log.flush()
    assert not tail_of(path).exists()


def test_the_file_beside_the_log_stays_small_however_long_the_session(store: TidyFileStore, path: Path) -> None:
    log = store.create("s", "/w")
    for turn in range(1, 200):
        for envelope in [record(8 * turn - 7 + number, event) for number, event in enumerate(_turn())]:
            log.append(envelope)
            log.flush()
    assert tail_of(path).stat().st_size < 1000


def _turn() -> list[Event]:
    return [TurnStarted(UserMessage("?")), *map(TextDelta, WORDS), TurnEnded("success")]
