"""The Edit tool."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.calling import Box
from trunkline.tools import edit
from trunkline.tools.atomic import replace_file


async def ready(box: Box, name: str, content: bytes) -> Path:
    """A file that the model has read."""
    path = box.root / name
    path.write_bytes(content)
    await box.text("Read", file_path=name)
    return path


async def test_the_model_gets_a_sentence_and_people_a_diff(box: Box, tmp_path: Path) -> None:
    path = await ready(box, "a.py", b"one\ntwo\nthree\n")
    output = await box.call("Edit", file_path="a.py", old_string="two", new_string="2")
    assert output.text == "Edited a.py: replaced 1 occurrence(s)"
    assert output.output_type == "diff"
    assert output.metadata == {"file_path": str(path)}
    assert output.shown == "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert path.read_text() == "one\n2\nthree\n"


async def test_every_occurrence_is_replaced_when_asked(box: Box) -> None:
    path = await ready(box, "a", b"x y x")
    assert await box.error("Edit", file_path="a", old_string="x", new_string="z") == (
        "Multiple matches found (2). Use replace_all or provide more context."
    )
    text = await box.text("Edit", file_path="a", old_string="x", new_string="z", replace_all="true")
    assert text == "Edited a: replaced 2 occurrence(s)"
    assert path.read_text() == "z y z"


async def test_a_file_must_have_been_read(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    text = await box.error("Edit", file_path="a", old_string="x", new_string="y")
    assert text.startswith("You must Read a before editing")
    assert (tmp_path / "a").read_text() == "x"


async def test_a_part_that_was_read_is_enough(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    await box.text("Read", file_path="a", limit=1)
    await box.text("Edit", file_path="a", old_string="two", new_string="2")


async def test_a_file_that_somebody_else_has_changed_must_be_read_again(box: Box) -> None:
    path = await ready(box, "a", b"one")
    status = path.stat()
    path.write_text("One")
    # Not even the same size and time hide it.
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    text = await box.error("Edit", file_path="a", old_string="One", new_string="2")
    assert text.startswith("File a has been modified externally since last read")
    await box.text("Read", file_path="a")
    await box.text("Edit", file_path="a", old_string="One", new_string="2")


async def test_a_file_that_was_only_touched_has_not_changed(box: Box) -> None:
    path = await ready(box, "a", b"one")
    os.utime(path, (1, 1))
    await box.text("Edit", file_path="a", old_string="one", new_string="2")


async def test_two_edits_in_a_row_need_no_reading_between_them(box: Box) -> None:
    path = await ready(box, "a", b"one")
    await box.text("Edit", file_path="a", old_string="one", new_string="two")
    await box.text("Edit", file_path="a", old_string="two", new_string="three")
    assert path.read_text() == "three"


async def test_a_file_read_through_a_link_may_be_edited_by_its_name(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "link").symlink_to("a")
    await box.text("Read", file_path="link")
    await box.text("Edit", file_path="a", old_string="one", new_string="two")
    await box.text("Edit", file_path="link", old_string="two", new_string="three")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "three"


async def test_a_change_while_the_edit_is_on_its_way_is_noticed(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await ready(box, "a", b"one")

    def late(target: str, data: bytes, check: Callable[[], None], *, private: bool) -> bool:
        path.write_text("somebody else's")
        return replace_file(target, data, check, private=private)

    monkeypatch.setattr(edit, "replace_file", late)
    text = await box.error("Edit", file_path="a", old_string="one", new_string="two")
    assert "modified externally" in text
    assert path.read_text() == "somebody else's"


@pytest.mark.parametrize(
    ("content", "old", "new", "result"),
    [
        (b"a\r\nb\r\n", "a\nb", "1\n2", b"1\r\n2\r\n"),
        (b"\xef\xbb\xbfone\n", "one", "two", b"\xef\xbb\xbftwo\n"),
        (b"caf\xe9 one\xff\n", "one", "\u00e9", b"caf\xe9 \xc3\xa9\xff\n"),
        (b"no end", "end", "END", b"no END"),
    ],
)
async def test_bytes_that_are_not_meant_are_not_touched(
    box: Box, content: bytes, old: str, new: str, result: bytes
) -> None:
    path = await ready(box, "a", content)
    output = await box.call("Edit", file_path="a", old_string=old, new_string=new)
    assert output.status == "success"
    assert path.read_bytes() == result
    assert output.shown is not None
    output.shown.encode("utf-8")


async def test_the_permissions_are_kept(box: Box) -> None:
    path = await ready(box, "a", b"one")
    path.chmod(0o751)
    await box.text("Edit", file_path="a", old_string="one", new_string="two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listdir(box.root) == ["a"]


async def test_an_empty_old_string_creates_a_file_or_fills_an_empty_one(box: Box, tmp_path: Path) -> None:
    output = await box.call("Edit", file_path="new/a", old_string="", new_string="one\n")
    assert output.text == "Created new/a (1 lines)"
    assert output.shown == "--- /dev/null\n+++ b/new/a\n@@ -0,0 +1 @@\n+one\n"
    (tmp_path / "empty").touch()
    output = await box.call("Edit", file_path="empty", old_string="", new_string="one\n")
    assert output.text == "Updated empty (1 lines)"
    assert output.shown == "--- a/empty\n+++ b/empty\n@@ -0,0 +1 @@\n+one\n"
    await box.text("Edit", file_path="empty", old_string="one", new_string="two")


async def test_an_empty_old_string_never_overwrites(box: Box) -> None:
    path = await ready(box, "a", b"one")
    assert "a has content" in await box.error("Edit", file_path="a", old_string="", new_string="x")
    assert path.read_text() == "one"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("nowhere", "x", "old_string not found in file"),
        ("one", "one", "the same"),
        ("one", "\ud800", "`new_string` holds half a character"),
        ("\udce9", "x", "`old_string` holds half a character"),
        ("", "", "both empty"),
    ],
)
async def test_what_cannot_be_done_is_said_and_nothing_is_changed(box: Box, old: str, new: str, problem: str) -> None:
    path = await ready(box, "a" if old else "b", b"one")
    assert problem in await box.error("Edit", file_path="a", old_string=old, new_string=new)
    assert path.read_text() == "one"


async def test_what_is_not_there_or_no_text_cannot_be_edited(box: Box, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a\0b")
    edit = {"old_string": "a", "new_string": "b"}
    assert (await box.error("Edit", file_path="no", **edit)).startswith("Failed to read file no: No such file")
    assert "it is binary" in await box.error("Edit", file_path="binary", **edit)
    assert "it is a directory" in await box.error("Edit", file_path=".", **edit)


async def test_a_file_that_is_too_large_is_refused(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    await ready(box, "a", b"one two")
    monkeypatch.setattr("trunkline.tools.files.LARGEST_FILE", 3)
    assert "larger than 3 bytes" in await box.error("Edit", file_path="a", old_string="one", new_string="2")


async def test_a_long_diff_stays_within_the_limit(box: Box) -> None:
    await ready(box, "a", b"".join(b"%d\n" % (number % 10) for number in range(5000)))
    output = await box.call("Edit", file_path="a", old_string="5\n", new_string="five\n", replace_all=True)
    assert output.shown is not None
    assert output.shown.startswith("--- a/a\n")
    assert len(output.shown) <= 10_000
    assert output.shown.rstrip().endswith(" chars] ...")


async def test_it_says_what_it_does(box: Box) -> None:
    reading = box.toolbox.read("Edit", {"path": "../x", "old_string": "a", "new_string": "b"})
    assert (reading.description, reading.outside) == ("Edit ../x", True)
    assert (reading.tool.category, reading.tool.concurrent) == ("edit", False)
