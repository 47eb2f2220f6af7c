"""`@path` in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli.chat_files import mentioned, unfound


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


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("@nosuch.txt look", "There is no file `nosuch.txt`: nothing is attached."),
        ("look at @nosuch.txt, please", "There is no file `nosuch.txt`: nothing is attached."),
        ("@./nosuch", "There is no file `./nosuch`: nothing is attached."),
        ("@sub/nosuch", "There is no file `sub/nosuch`: nothing is attached."),
        ('@"no such"', "There is no file `no such`: nothing is attached."),
        ("@gre", "There is no file `gre`: nothing is attached. Did you mean `@greeting.txt`?"),
        ("@sub/letter.txd", "There is no file `sub/letter.txd`: nothing is attached. Did you mean `@sub/letter.txt`?"),
    ],
)
def test_a_file_that_is_probably_meant_and_is_not_there_is_told(tmp_path: Path, text: str, meant: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "letter.txt").touch()
    (tmp_path / "greeting.txt").touch()
    assert unfound(text, str(tmp_path)) == (meant,)


@pytest.mark.parametrize(
    "text",
    ["@greeting.txt", "mail a@b.txt", "@ada", "@ada.lovelace", "@property", "@app.get('/')", "@types/node", "@gr", "@"],
)
def test_handles_decorators_and_packages_are_no_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "greeting.txt").touch()
    assert unfound(text, str(tmp_path)) == ()
