"""Files that somebody named, read without waiting."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from trunkline.base.regular import Contents, NotRegular, read_regular


@pytest.mark.parametrize(("limit", "expected"), [(4, b"1234"), (5, b"12345"), (6, b"12345")])
def test_no_more_than_the_limit_is_read(tmp_path: Path, limit: int, expected: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    contents = read_regular(str(file), limit)
    assert contents == Contents(expected, 5)
    assert contents.cut is (limit < 5)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular):
        read_regular(str(tmp_path / "pipe"), 10)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_neither_a_device_nor_a_directory_is_read(path: str) -> None:
    with pytest.raises(NotRegular):
        read_regular(path, 10)


def test_a_socket_is_not_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(NotRegular):
            read_regular(str(tmp_path / "socket"), 10)


@pytest.mark.parametrize("name", ["absent", "a\0b", "half \ud800"])
def test_what_cannot_exist_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(f"{tmp_path}/{name}", 10)


def test_a_file_that_claims_to_be_empty_is_read_all_the_same() -> None:
    contents = read_regular("/proc/self/status", 1000)
    assert contents.data.startswith(b"Name:")
    assert contents.size >= len(contents.data)
