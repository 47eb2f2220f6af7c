"""Files in and out: where they may lie, what they may be called, and what never leaves."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support.chat_platform import LIMITS, MemoryPlatform
from trunkline.chat.attachments import (
    KEPT_DAYS,
    LONGEST_NAME,
    MOST_FILES,
    MOST_SEARCHED,
    Folder,
    file_type,
    safe_name,
    shown,
)
from trunkline.chat.platform import InboundFile, SendFailed

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


def contents(path: str) -> bytes:
    return Path(path).read_bytes()


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("a b\n$(rm).txt", "a_b_rm_.txt"),
        ("-rf", "rf"),
        ("a\0b", "a_b"),
        ("Übung.png", "Übung.png"),
    ],
)
def test_a_name_that_somebody_chose_cannot_lead_anywhere(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_long_name_is_cut_and_keeps_its_ending() -> None:
    assert safe_name("x" * 500 + ".tar") == "x" * (LONGEST_NAME - 4) + ".tar"
    assert len(os.fsencode(safe_name("𝔸" * 500))) <= 2 * LONGEST_NAME


def test_the_ending_says_what_a_file_is() -> None:
    assert [file_type(name) for name in ("a.PNG", "a.mp4", "a.ogg", "a.pdf", "png")] == [
        "image", "video", "audio", "file", "image",
    ]  # fmt: skip


async def test_a_file_that_came_is_kept_for_this_user_alone(tmp_path: Path) -> None:
    platform = MemoryPlatform()
    platform.files["ref"] = b"data"
    folder = Folder(str(tmp_path / "files"), "memory", "../../chat")
    path = await folder.fetch(platform, InboundFile("file", "ref", "../notes.txt"), 7)
    assert contents(path) == b"data"
    assert path.startswith(str(tmp_path / "files" / "memory"))
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


async def test_a_file_keeps_its_own_name_beside_others_of_that_name(tmp_path: Path) -> None:
    platform = MemoryPlatform()
    platform.files["ref"] = b"data"
    folder = Folder(str(tmp_path), "memory", "c")
    wanted = [("a.txt", 1), ("a.txt", 1), ("a.txt", 2), ("b", 1), ("b", 1)]
    found = [await folder.fetch(platform, InboundFile("file", "ref", name), number) for name, number in wanted]
    assert [os.path.basename(path) for path in found] == ["a.txt", "a-2.txt", "a.txt", "b", "b-2"]
    assert len(set(found)) == 5


async def test_a_file_that_is_too_large_is_refused_by_what_is_said_and_by_what_comes(tmp_path: Path) -> None:
    platform = MemoryPlatform(LIMITS.replace(file_bytes=3))
    platform.files["ref"] = b"data"
    folder = Folder(str(tmp_path), "memory", "c")
    with pytest.raises(SendFailed, match="4 bytes, and 3"):
        await folder.fetch(platform, InboundFile("file", "ref", "a", size=4), 1)
    with pytest.raises(SendFailed, match="more than 3"):
        await folder.fetch(platform, InboundFile("file", "ref", "a"), 1)
    assert kept(tmp_path) == []


async def test_a_file_that_cannot_be_kept_is_a_failure_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("in the way")
    with pytest.raises(SendFailed, match="cannot be kept"):
        await Folder(str(tmp_path), "memory", "c").fetch(MemoryPlatform(), InboundFile("file", "ref", "a"), 1)


def test_an_answer_shows_files_of_the_workspace_and_no_others(tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(PNG)
    root = tmp_path / "workspace"
    (root / ".git").mkdir(parents=True)
    for name in ("a.png", "b c.pdf", ".env", ".git/config"):
        (root / name).write_bytes(PNG)
    (root / "link.png").symlink_to(outside)
    text = f"""
    ![](a.png) ![again](./a.png "title") ![spaces](<b c.pdf>) ![full]({root}/a.png) ![coded](b%20c.pdf)
    ![](.env) ![](.git/config) ![](link.png) ![](../outside.png) ![]({outside}) ![](nothing.png) ![](.) ![](a\0.png)
    ![](https://example.org/a.png) [a link](a.png)
    """
    assert shown(text, str(root)) == [str(root / "a.png"), str(root / "b c.pdf")]


def test_code_that_mentions_a_file_does_not_send_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    assert shown("```md\n![](a.png)\n```\n", str(tmp_path)) == []
    assert shown("```md\n![](a.png)", str(tmp_path)) == []


def test_one_answer_sends_a_few_files_at_most(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.png").write_bytes(PNG)
    assert len(shown("".join(f"![]({number}.png)" for number in range(20)), str(tmp_path))) == MOST_FILES


def test_what_goes_is_a_copy(tmp_path: Path) -> None:
    source = tmp_path / "a.png"
    source.write_bytes(PNG)
    folder = Folder(str(tmp_path / "files"), "memory", "c")
    copy = folder.copy(str(source), 1, 1000)
    assert copy is not None
    source.write_bytes(b"changed")
    assert Path(copy.path).read_bytes() == PNG
    assert (copy.type, copy.name) == ("image", "a.png")
    assert folder.copy(str(tmp_path), 1, 1000) is None


def test_what_has_become_a_link_since_it_was_found_does_not_go(tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(PNG)
    (tmp_path / "a.png").symlink_to(outside)
    assert Folder(str(tmp_path / "files"), "memory", "c").copy(str(tmp_path / "a.png"), 1, 1000) is None


def test_a_pipe_to_which_nobody_writes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    assert Folder(str(tmp_path / "files"), "memory", "c").copy(str(tmp_path / "a.png"), 1, 1000) is None


def test_a_file_that_is_too_large_to_go_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "a.png"
    source.write_bytes(PNG)
    folder = Folder(str(tmp_path / "files"), "memory", "c")
    with pytest.raises(SendFailed, match="it has 38 bytes, and 3 is the limit"):
        folder.copy(str(source), 1, 3)
    # Files of the kernel's say that they are empty, and are not.
    with pytest.raises(SendFailed, match="more than 3 bytes"):
        folder.copy("/proc/self/status", 1, 3)
    assert kept(tmp_path / "files") == []


def test_a_picture_of_a_tool_is_kept_if_it_is_one(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), "memory", "c")
    picture = folder.picture(b64encode(PNG).decode(), 1)
    assert picture is not None
    assert (picture.type, picture.name, Path(picture.path).read_bytes()) == ("image", "picture.png", PNG)
    assert folder.picture(b64encode(b"text").decode(), 1) is None
    assert folder.picture("*", 1) is None


def test_old_files_are_removed(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), "memory", "c")
    picture = folder.picture(b64encode(PNG).decode(), 1)
    assert picture is not None
    written = os.stat(picture.path).st_mtime
    folder.prune(written + 1)
    assert os.path.exists(picture.path)
    folder.prune(written + (KEPT_DAYS + 1) * 24 * 3600)
    assert not os.path.exists(os.path.dirname(picture.path))


@pytest.mark.parametrize("tail", ["", " ", "a", '"', "' "])
@pytest.mark.parametrize("beginning", ["![", "![](", "![](<", '![](a "', "![](a '", "![]( ", "![](a ", "```\n"])
def test_a_text_of_nothing_but_beginnings_is_read_once(beginning: str, tail: str) -> None:
    # Minutes, if what follows were read again for each of them.
    assert shown(beginning * (MOST_SEARCHED // len(beginning)), "/nowhere") == []
    assert shown(beginning + tail * MOST_SEARCHED, "/nowhere") == []


def test_no_more_of_an_answer_is_searched_than_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    picture = "![](a.png)"
    assert shown(" " * (MOST_SEARCHED - len(picture)) + picture, str(tmp_path))
    assert not shown(" " * MOST_SEARCHED + picture, str(tmp_path))


@pytest.mark.parametrize("name", ["a%00b", "a\ud800b", "x" * 9000])
def test_what_no_file_can_be_called_is_no_file(tmp_path: Path, name: str) -> None:
    assert shown(f"![]({name})", str(tmp_path)) == []
