"""`@path` in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli.chat_files import mentioned


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("read @a.txt", ("a.txt",)),
        ("@a.txt and @sub/b.txt, please", ("a.txt", "sub/b.txt")),
        ("(see @a.txt)", ("a.txt",)),
        ("what is in @a.txt?", ("a.txt",)),
        ('read @"with space.txt" now', ("with space.txt",)),
        ("@sub", ("sub",)),
        ("@a.txt @a.txt", ("a.txt",)),
        ("mail me@a.txt", ()),
        ("@missing.txt", ()),
        ("@property", ()),
        ("@a\0b", ()),
        ("@", ()),
    ],
)
def test_what_exists_is_attached(tmp_path: Path, text: str, files: tuple[str, ...]) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "with space.txt").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").touch()
    assert mentioned(text, str(tmp_path)) == files


def test_the_home_directory_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").touch()
    assert mentioned("@~/a.txt", "/") == (str(tmp_path / "a.txt"),)
