"""What of the files the model has seen, and files that must never be waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from trunkline.tools import files
from trunkline.tools.files import FileMemory, FileProblem, FileState, open_regular, read_whole, reason
from trunkline.tools.threads import Abandoned, StopFlag

ONE, OTHER = FileState(1, 10, b"one"), FileState(2, 10, b"other")


def test_a_file_is_known_in_the_state_in_which_it_was_read() -> None:
    memory = FileMemory()
    assert memory.state("/a") is None
    memory.note("/a", ONE, (0, None))
    assert memory.state("/a") == ONE


def test_the_content_decides_and_not_the_time() -> None:
    assert ONE.same_content(FileState(99, 10, b"one"))
    assert not ONE.same_content(FileState(1, 10, b"other"))
    assert FileState(1, 10).same_content(FileState(1, 10, b"one"))
    assert not FileState(1, 10).same_content(FileState(2, 10))


def test_a_part_counts_as_shown_until_the_content_changes() -> None:
    memory = FileMemory()
    memory.note("/a", ONE, (0, 5))
    memory.note("/a", ONE, (5, 5))
    assert memory.was_shown("/a", ONE, (0, 5))
    assert not memory.was_shown("/a", ONE, (0, None))
    assert not memory.was_shown("/a", OTHER, (0, 5))
    memory.note("/a", OTHER, (5, 5))
    assert not memory.was_shown("/a", OTHER, (0, 5))


def test_what_was_written_was_not_shown() -> None:
    memory = FileMemory()
    memory.note("/a", ONE, (0, None))
    memory.note("/a", ONE)
    assert not memory.was_shown("/a", ONE, (0, None))
    assert memory.state("/a") == ONE


def test_forgetting_what_was_shown_keeps_what_was_read() -> None:
    memory = FileMemory()
    memory.note("/a", ONE, (0, None))
    memory.forget_shown()
    assert not memory.was_shown("/a", ONE, (0, None))
    assert memory.state("/a") == ONE


def test_the_file_that_was_used_longest_ago_is_forgotten_first() -> None:
    memory = FileMemory(limit=2)
    memory.note("/a", ONE)
    memory.note("/b", ONE)
    memory.note("/a", ONE)
    memory.note("/c", ONE)
    assert len(memory) == 2
    assert memory.state("/b") is None
    assert memory.state("/a") == ONE


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, word in [("pipe", "pipe"), ("socket", "socket"), (".", "directory"), ("/dev/zero", "device")]:
            with pytest.raises(FileProblem, match=word):
                open_regular(str(tmp_path / path))


def test_a_whole_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 10)
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "b").write_bytes(b"x" * 11)
    assert read_whole(str(tmp_path / "a"), StopFlag())[0] == b"x" * 10
    with pytest.raises(FileProblem, match="larger than 10 bytes"):
        read_whole(str(tmp_path / "b"), StopFlag())


def test_files_of_the_system_that_claim_to_be_empty_are_read() -> None:
    if os.path.exists("/proc/self/status"):
        assert b"Name:" in read_whole("/proc/self/status", StopFlag())[0]


def test_reading_ends_when_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    stop = StopFlag()
    stop.set()
    with pytest.raises(Abandoned):
        read_whole(str(tmp_path / "a"), stop)


def test_reasons_are_words() -> None:
    assert reason(PermissionError(13, "x")) == "Permission denied"
    assert reason(FileNotFoundError(2, "x")).startswith("No such file or directory")
    assert reason(ValueError("embedded null byte")) == "no file can have that name"
    assert reason(FileProblem("because")) == "because"
