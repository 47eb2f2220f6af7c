"""Files are replaced in one step, and stay what they were otherwise."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.conftest import require
from trunkline.tools import atomic
from trunkline.tools.atomic import replace_file, writing
from trunkline.tools.files import FileProblem


def nothing() -> None:
    """Nobody minds."""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("old")
    return path


def test_new_files_get_the_directories_that_they_need_and_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    before = os.umask(0o027)
    try:
        assert replace_file(str(path), b"new", nothing) is True
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o640


def test_what_is_private_is_made_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    assert replace_file(str(path), b"new", nothing, private=True) is True
    assert [mode_of(place) for place in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


def test_the_permissions_of_a_file_are_kept(file: Path) -> None:
    file.chmod(0o755)
    assert replace_file(str(file), b"new", nothing) is False
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o755)


def test_whoever_has_the_file_open_still_sees_the_old_content(file: Path) -> None:
    with file.open() as before:
        replace_file(str(file), b"new content", nothing)
        assert before.read() == "old"


def test_a_link_stays_and_its_target_is_written(tmp_path: Path, file: Path) -> None:
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to("file")
    dangling.symlink_to("later")
    replace_file(str(link), b"new", nothing)
    assert replace_file(str(dangling), b"x", nothing) is True
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new")
    assert (dangling.is_symlink(), (tmp_path / "later").read_bytes()) == (True, b"x")


def test_extended_attributes_are_kept(file: Path) -> None:
    try:
        os.setxattr(file, "user.trunkline", b"yes")
    except OSError:
        require("extended attributes", False, "run the tests on a file system that has them")
    replace_file(str(file), b"new", nothing)
    assert os.getxattr(file, "user.trunkline") == b"yes"


def test_the_owner_is_kept_where_the_system_allows_it(file: Path) -> None:
    require("the superuser's rights", os.geteuid() == 0, "run the tests as root")
    os.chown(file, 12345, 23456)
    file.chmod(0o4755)
    replace_file(str(file), b"new", nothing)
    status = file.stat()
    assert (status.st_uid, status.st_gid, mode_of(file)) == (12345, 23456, 0o4755)


def test_where_the_owner_cannot_be_kept_nobody_gets_the_owners_rights(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, uid: int, gid: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    file.chmod(0o4755)
    owner = file.stat()
    monkeypatch.setattr(os, "fchown", refuse)
    # As if the new file belonged to somebody else than the old one.
    changed = os.stat_result((owner.st_mode, 1, 1, 1, owner.st_uid + 1, owner.st_gid, 1, 1, 1, 1))
    monkeypatch.setattr(os, "fstat", lambda fd: changed)
    replace_file(str(file), b"new", nothing)
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o755)


def test_a_check_that_raises_leaves_everything_as_it_was(tmp_path: Path, file: Path) -> None:
    def refuse() -> None:
        assert file.read_text() == "old"
        raise KeyError

    with pytest.raises(KeyError):
        replace_file(str(file), b"new", refuse)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_disk_that_is_full_leaves_everything_as_it_was(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "_write_all", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(str(file), b"new", nothing)
    assert (file.read_text(), os.listdir(tmp_path)) == ("old", ["file"])


@pytest.mark.parametrize("number", [13, 16], ids=["directory-is-closed", "file-is-a-mount"])
def test_where_renaming_is_not_possible_the_file_is_written_in_place(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    inode = file.stat().st_ino
    replace_file(str(file), b"no", nothing)
    assert (file.read_text(), file.stat().st_ino, os.listdir(tmp_path)) == ("no", inode, ["file"])


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, word in [(".", "directory"), ("pipe", "pipe")]:
        with pytest.raises(FileProblem, match=word):
            replace_file(str(tmp_path / name), b"x", nothing)


def test_a_file_that_is_read_only_stays_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The superuser may write everything, and tests may run as one.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileProblem, match="read-only"):
        replace_file(str(file), b"x", nothing)


def test_the_longest_name_that_there_can_be_works(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    replace_file(str(path), b"x", nothing)
    replace_file(str(path), b"y", nothing)
    assert path.read_bytes() == b"y"


def test_two_who_look_and_then_write_do_not_lose_each_others_work(file: Path) -> None:
    file.write_text("0")

    def count() -> None:
        for _ in range(20):
            with writing(str(file)):
                replace_file(str(file), str(int(file.read_text()) + 1).encode(), nothing)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() == "80"
