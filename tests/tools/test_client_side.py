"""The file tools through the client's own files: an editor's, with what is not saved."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from pathlib import Path

import pytest

from tests.support.editor import EditorFiles
from tests.support.loop import until
from tests.tools.calling import Box
from trunkline.tools import client_side
from trunkline.tools.client_side import ClientSide
from trunkline.tools.files import LARGEST_FILE
from trunkline.tools.tool import Interrupted

DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


class Open:
    """The tools, and the editor that they are used with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = ClientSide()
        self.files = EditorFiles()
        self.client.use(self.files)
        self.box = Box(root, client=self.client)

    def path(self, name: str) -> str:
        return str(self.root / name)

    def unsaved(self, name: str, text: str) -> None:
        self.files.buffers[self.path(name)] = text


@pytest.fixture
def open_(tmp_path: Path) -> Open:
    return Open(tmp_path)


async def test_what_is_not_saved_yet_is_read(open_: Open) -> None:
    (open_.root / "a.txt").write_text("saved\n")
    open_.unsaved("a.txt", "not saved\n")
    open_.unsaved("new.txt", "only in the editor\n")
    assert "not saved" in await open_.box.text("Read", file_path="a.txt")
    assert "only in the editor" in await open_.box.text("Read", file_path="new.txt")
    assert open_.files.asked == [("read", open_.path("a.txt")), ("read", open_.path("new.txt"))]


async def test_an_edit_appears_in_the_editor_and_leaves_the_disk_to_it(open_: Open) -> None:
    (open_.root / "a.txt").write_text("one\n")
    open_.unsaved("a.txt", "one\ntwo\n")
    await open_.box.text("Read", file_path="a.txt")
    output = await open_.box.call("Edit", file_path="a.txt", old_string="two", new_string="three")
    assert output.output_type == "diff"
    assert "-two\n+three" in (output.shown or "")
    assert open_.files.buffers[open_.path("a.txt")] == "one\nthree\n"
    assert (open_.root / "a.txt").read_text() == "one\n"
    # What it has written counts as read.
    assert "replaced 1" in await open_.box.text("Edit", file_path="a.txt", old_string="one", new_string="1")


async def test_an_edit_needs_to_know_what_its_user_has_typed_since(open_: Open) -> None:
    open_.unsaved("a.txt", "one\n")
    assert "must Read" in await open_.box.error("Edit", file_path="a.txt", old_string="one", new_string="two")
    await open_.box.text("Read", file_path="a.txt")
    open_.unsaved("a.txt", "one, typed\n")
    assert "modified externally" in await open_.box.error("Edit", file_path="a.txt", old_string="one", new_string="two")


async def test_files_are_created_through_the_editor_with_their_directories(open_: Open) -> None:
    assert (await open_.box.text("Write", file_path="deep/a.txt", content="a\nb\n")).startswith("Created")
    assert (await open_.box.text("Edit", file_path="deep/b.txt", old_string="", new_string="b\n")).startswith("Created")
    assert open_.files.buffers == {open_.path("deep/a.txt"): "a\nb\n", open_.path("deep/b.txt"): "b\n"}
    assert (open_.root / "deep").is_dir()
    (open_.root / "old.txt").write_text("old")
    assert (await open_.box.text("Write", file_path="old.txt", content="new")).startswith("Updated")


async def test_what_no_editor_could_give_back_stays_with_the_disk(
    open_: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "b.txt"
    outside.write_text("outside")
    (open_.root / "dot.png").write_bytes(DOT)
    (open_.root / "data").write_bytes(b"\0\1")
    (open_.root / "latin").write_bytes("café".encode("latin-1"))
    (open_.root / "link").symlink_to(outside)
    with (open_.root / "large").open("wb") as large:
        large.truncate(LARGEST_FILE + 1)
    (open_.root / "folder").mkdir()
    assert (await open_.box.call("Read", file_path="dot.png")).images
    assert "binary file" in await open_.box.text("Read", file_path="data")
    assert "caf" in await open_.box.text("Read", file_path="latin")
    assert "outside" in await open_.box.text("Read", file_path=str(outside))
    assert "outside" in await open_.box.text("Read", file_path="link", offset=0, limit=1)
    assert "binary" in await open_.box.text("Read", file_path="large", limit=1)
    assert "directory" in await open_.box.error("Read", file_path="folder")
    assert not open_.files.asked


async def test_what_the_editor_says_against_it_is_the_tools_error(open_: Open) -> None:
    assert "the editor has no such file" in await open_.box.error("Read", file_path="none.txt")


async def test_an_editor_that_does_not_answer_is_not_waited_for_for_ever(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_side, "CLIENT_SECONDS", 0.01)
    open_.files.answers = False
    for tool, more in (("Read", {}), ("Write", {"content": "x"}), ("Edit", {"old_string": "a", "new_string": "b"})):
        assert "did not answer" in await open_.box.error(tool, file_path="a.txt", **more)


async def test_a_stop_does_not_wait_for_the_editor(open_: Open) -> None:
    open_.files.answers = False
    task = asyncio.ensure_future(open_.box.call("Read", file_path="a.txt"))
    await until(lambda: open_.files.asked)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Interrupted)):
        await task


async def test_without_a_client_the_disk_is_used_again(open_: Open) -> None:
    (open_.root / "a.txt").write_text("saved\n")
    open_.unsaved("a.txt", "not saved\n")
    open_.client.use()
    assert "\tsaved" in await open_.box.text("Read", file_path="a.txt")


async def test_only_what_the_client_offers_is_asked_of_it(open_: Open) -> None:
    (open_.root / "a.txt").write_text("saved\n")
    open_.unsaved("a.txt", "not saved\n")
    open_.files.can_read = False
    assert "\tsaved" in await open_.box.text("Read", file_path="a.txt")
    await open_.box.text("Edit", file_path="a.txt", old_string="saved", new_string="on the disk")
    assert (open_.root / "a.txt").read_text() == "on the disk\n"
    open_.files.can_read, open_.files.can_write = True, False
    assert "not saved" in await open_.box.text("Read", file_path="a.txt")
    await open_.box.text("Write", file_path="a.txt", content="written")
    assert (open_.root / "a.txt").read_text() == "written"
    assert open_.files.asked == [("read", open_.path("a.txt"))]
