"""Sessions as files: damage and crashes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.shelves import TidyFileStore, fill, kept, numbers
from trunkline.core.faults import ConfigError, SessionDamaged, SessionExists, SessionHeld, SessionNotFound
from trunkline.store import files, locks, logfile
from trunkline.store.files import FileStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    store = TidyFileStore(tmp_path / "sessions")
    yield store
    store.close()


@pytest.fixture
def path(tmp_path: Path, store: FileStore) -> Path:
    """The log of session `s`, which has five records."""
    log = store.create("s", "/w")
    fill(log, range(1, 6))
    log.close()
    return tmp_path / "sessions" / "s.log"


def _beside(path: Path) -> list[str]:
    return sorted(found.name for found in path.parent.iterdir() if found != path)


# Making sessions


def test_the_directory_is_made_with_the_first_session_and_not_before(tmp_path: Path, store: FileStore) -> None:
    assert store.list() == []
    with pytest.raises(SessionNotFound):
        store.open("s")
    with pytest.raises(SessionNotFound):
        store.latest("/w")
    assert list(tmp_path.iterdir()) == []
    store.create("s", "/w")
    assert (tmp_path / "sessions" / "s.log").is_file()


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 700, b"garbage", b"trunkline-log 1 0000", b"trunkline-log 2 of the future\n", b"\n\n\n"],
)
def test_what_cannot_be_resumed_is_set_aside_for_a_new_session(path: Path, store: FileStore, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(SessionDamaged, match=r"^The log of session 's' cannot be read: it "):
        store.open("s")
    assert _beside(path) == []
    log = store.create("s", "/w")
    fill(log, [1])
    log.close()
    assert numbers(kept(store)) == [1]
    assert _beside(path) == ["s.log.damaged-1"]
    assert path.with_name("s.log.damaged-1").read_bytes() == content


def test_a_creation_cut_short_at_any_byte_does_not_block_the_id(path: Path, store: FileStore) -> None:
    header = path.read_bytes().split(b"\n")[0] + b"\n"
    for size in range(len(header)):
        path.write_bytes(header[:size])
        with pytest.raises(SessionDamaged):
            store.open("s")
        store.create("s", "/w").close()
        assert kept(store) == []
    assert len(_beside(path)) == len(header)


def test_the_session_of_another_id_in_its_file_is_neither_opened_nor_set_aside(path: Path, store: FileStore) -> None:
    path.rename(path.with_name("t.log"))
    with pytest.raises(SessionDamaged, match="it holds session 's'"):
        store.open("t")
    with pytest.raises(SessionExists):
        store.create("t", "/w")


def test_a_damaged_file_that_another_process_holds_is_left_alone(path: Path, store: FileStore) -> None:
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDWR)
    try:
        assert locks.lock(fd)
        with pytest.raises(SessionHeld):
            store.create("s", "/w")
    finally:
        os.close(fd)
    assert _beside(path) == []


def test_a_file_that_was_replaced_while_waiting_for_its_lock_is_not_written(
    path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another process sets a damaged log aside between our opening and locking it."""
    real_lock = locks.lock
    replaced: list[Path] = []

    def lock(fd: int) -> bool:
        if not replaced:
            content = path.read_bytes()
            replaced.append(path.rename(path.with_name("moved")))
            path.write_bytes(content)
        return real_lock(fd)

    monkeypatch.setattr(locks, "lock", lock)
    log = store.open("s")
    fill(log, [6])
    log.close()
    assert b'"seq":6' in path.read_bytes()
    assert b'"seq":6' not in replaced[0].read_bytes()


def test_a_new_file_that_was_set_aside_before_it_was_locked_is_made_again(
    tmp_path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_wait = locks.wait
    path = tmp_path / "sessions" / "s.log"

    def wait(fd: int) -> None:
        monkeypatch.setattr(locks, "wait", real_wait)
        path.rename(path.with_name("s.log.damaged-1"))
        real_wait(fd)

    monkeypatch.setattr(locks, "wait", wait)
    store.create("s", "/w").close()
    store.open("s").close()
    assert path.with_name("s.log.damaged-1").read_bytes() == b""


def test_places_that_cannot_be_used_are_configuration_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for attempt in (FileStore(tmp_path / "file").open, lambda id: FileStore(tmp_path / "file").create(id, "/w")):
        with pytest.raises(ConfigError, match=r"cannot be opened: .*\. Check the permissions"):
            attempt("s")
    with pytest.raises(ConfigError, match="Not a directory"):
        FileStore(tmp_path / "file").list()
    (tmp_path / "d.log").mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        FileStore(tmp_path).open("d")


def test_an_id_too_long_for_a_header_is_refused(store: FileStore) -> None:
    with pytest.raises(ConfigError, match="300000 characters is too long"):
        store.create("x" * 300_000, "/w")
    store.create("x" * 250_000, "/w").close()
    assert kept(store, "x" * 250_000) == []


def test_a_file_that_vanishes_while_sessions_are_listed_is_left_out(
    path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("t", "/w").close()
    real = os.scandir

    class Vanishing:
        """The entries of a directory, whose files are removed as soon as they were seen."""

        def __init__(self, directory: str) -> None:
            self._entries = real(directory)

        def __enter__(self) -> Vanishing:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            for entry in self._entries:
                if entry.name == "t.log":
                    os.unlink(entry.path)
                yield entry

    monkeypatch.setattr(os, "scandir", Vanishing)
    assert [info.id for info in store.list()] == ["s"]


def test_files_that_are_no_logs_are_left_out_of_the_list(path: Path, store: FileStore) -> None:
    for name, content in [
        ("a.log", b""),
        ("b.log", b"garbage\n"),
        ("c.txt", b""),
        ("s.log.damaged-1", path.read_bytes()),
    ]:
        path.with_name(name).write_bytes(content)
    path.with_name("d.log").mkdir()
    path.with_name("e.log").symlink_to("nowhere")
    os.mkfifo(path.with_name("f.log"))
    assert [info.id for info in store.list()] == ["s"]
    assert store.latest("/w") == "s"


def test_of_sessions_with_one_time_the_one_that_began_last_is_the_latest(tmp_path: Path, store: FileStore) -> None:
    for number, name in enumerate("bca", start=1):
        store.create(name, "/w").close()
        path = tmp_path / "sessions" / f"{name}.log"
        path.write_bytes(logfile.encode_header(logfile.Header(name, "/w", float(number))))
    for path in (tmp_path / "sessions").iterdir():
        os.utime(path, (100, 100))
    assert store.latest("/w") == "a"
    assert [info.id for info in store.list()] == ["a", "c", "b"]


# Damage


@pytest.mark.parametrize(
    ("tail", "is_kept"),
    [
        (b"0", False),
        (b'00000000 {"seq":6,"turn":1,"at":17', False),
        (b"\0" * 200_000, False),
        (b'00000000 {"seq":6,"turn":1}\n', True),
        (b"\n", True),
        (b"torn\0" * 20_000 + b"\n" + b"\0" * 100_000, True),
    ],
)
def test_a_damaged_end_is_cut_off_and_kept_if_it_is_more_than_one_record(
    path: Path, store: FileStore, tail: bytes, is_kept: bool
) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    log = store.open("s")
    assert path.read_bytes() == whole
    assert log.restore().seq == 5
    assert _beside(path) == (["s.log.damaged-1"] if is_kept else [])
    if is_kept:
        aside = path.with_name("s.log.damaged-1")
        assert aside.read_bytes() == tail
        assert aside.stat().st_mode & 0o077 == 0
    fill(log, [6])
    log.close()
    assert path.read_bytes().startswith(whole)
    assert numbers(kept(store)) == [1, 2, 3, 4, 5, 6]


def test_what_is_cut_off_later_does_not_replace_what_was_kept_before(path: Path, store: FileStore) -> None:
    for number in (1, 2):
        with path.open("ab") as file:
            file.write(b"damage %d\n" % number)
        store.open("s").close()
    assert _beside(path) == ["s.log.damaged-1", "s.log.damaged-2"]
    assert path.with_name("s.log.damaged-2").read_bytes() == b"damage 2\n"


def test_damage_in_the_middle_is_a_gap_and_stays_as_it_is(path: Path, store: FileStore) -> None:
    content = path.read_bytes().replace(b"piece 2", b"peace 2").replace(b"piece 3", b"pie\0e\n3")
    path.write_bytes(content)
    log = store.open("s")
    assert numbers(log.read()) == [1, (2, 3), 4, 5]
    assert numbers(log.read(2)) == [(3, 3), 4, 5]
    assert log.restore().seq == 5
    assert path.read_bytes() == content
    assert _beside(path) == []


def test_a_log_without_a_whole_record_begins_again(path: Path, store: FileStore) -> None:
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(b"x" + line for line in lines))
    log = store.open("s")
    assert list(log.read()) == []
    assert log.restore().seq == 0
    assert path.read_bytes() == header
    assert _beside(path) == ["s.log.damaged-1"]


def test_a_last_record_that_this_version_cannot_read_keeps_its_number(path: Path, store: FileStore) -> None:
    """As written by a newer version: it is whole, so it is not cut off, and its number is not given again."""
    from binascii import crc32

    text = b'{"seq":6,"turn":1,"at":1.0,"event":"ModeChanged","data":{"mode":"telepathy"}}'
    with path.open("ab") as file:
        file.write(b"%08x %b\n" % (crc32(text), text))
    log = store.open("s")
    assert log.restore().seq == 6
    assert numbers(log.read()) == [1, 2, 3, 4, 5, (6, 6)]
    fill(log, [7])
    assert numbers(log.read()) == [1, 2, 3, 4, 5, (6, 6), 7]


# Writing


def test_a_write_that_the_kernel_splits_is_continued(
    path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write
    log = store.open("s")
    fill(log, range(6, 40))
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, bytes(data)[:7]))
    log.flush()
    monkeypatch.undo()
    log.close()
    assert numbers(kept(store)) == list(range(1, 40))


def test_an_interrupt_in_the_middle_of_a_write_neither_loses_nor_repeats_a_byte(
    path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write
    written = 0

    def write(fd: int, data: Any) -> int:
        nonlocal written
        if written:
            raise KeyboardInterrupt
        written = real_write(fd, bytes(data)[:33])
        return written

    log = store.open("s")
    fill(log, range(6, 9))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(KeyboardInterrupt):
            log.flush()
    assert numbers(log.read()) == list(range(1, 9))
    fill(log, [9])
    log.close()
    assert numbers(kept(store)) == list(range(1, 10))


def test_files_that_were_brought_to_a_session_go_with_it_and_do_not_fill_the_disk(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BROUGHT", 2 * 1024 * 1024)
    brought = Path(store.keep_file("s", "../../a picture.png", b"\x89PNG"))
    assert (brought.parent.parent, brought.suffix, brought.read_bytes()) == (path.parent, ".png", b"\x89PNG")
    assert brought.stat().st_mode & 0o777 == 0o600
    for name in ("none", ".hidden", "a.p/ng", "a.\udcff", "x" * 5000):
        assert Path(store.keep_file("s", name, b"")).suffix == ""
    with pytest.raises(ConfigError, match=r"may have 2 MiB at most\. Begin another session"):
        store.keep_file("s", "a.bin", bytes(2 * 1024 * 1024))
    assert [info.id for info in store.list()] == ["s"]
    store.remove("s")
    assert not brought.parent.exists()
