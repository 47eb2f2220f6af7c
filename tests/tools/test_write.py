"""The Write tool."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.tools.calling import Box
from trunkline.tools import write
from trunkline.tools.atomic import replace_file
from trunkline.tools.write import count_lines


async def test_a_new_file_is_created_with_its_directories(box: Box, tmp_path: Path) -> None:
    output = await box.call("Write", file_path="a/b.txt", content="one\ntwo\n")
    assert output.text == "Created a/b.txt (2 lines)"
    assert output.metadata == {"file_path": f"{tmp_path}/a/b.txt"}
    assert (tmp_path / "a/b.txt").read_bytes() == b"one\ntwo\n"


async def test_an_existing_file_is_replaced_without_having_been_read(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    assert await box.text("Write", file_path=str(tmp_path / "a"), content="x") == f"Updated {tmp_path}/a (1 lines)"
    assert (tmp_path / "a").read_text() == "x"


async def test_what_was_written_may_be_edited_at_once(box: Box, tmp_path: Path) -> None:
    await box.text("Write", file_path="a", content="one two")
    await box.text("Edit", file_path="a", old_string="two", new_string="three")
    assert (tmp_path / "a").read_text() == "one three"


async def test_text_is_written_as_it_is(box: Box, tmp_path: Path) -> None:
    content = "\ufeffä\r\n\u2028\N{GRINNING FACE}\0end"
    await box.text("Write", file_path="a", content=content)
    assert (tmp_path / "a").read_bytes() == content.encode()


async def test_half_a_character_is_refused(box: Box, tmp_path: Path) -> None:
    text = await box.error("Write", file_path="a", content="ok \ud83d")
    assert text.startswith("Failed to write file a: `content` holds half a character")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("path", "why"), [(".", "it is a directory"), ("file/x", "Not a directory"), ("a\0b", "no file can have that name")]
)
async def test_what_cannot_be_written_is_said(box: Box, tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").touch()
    assert (await box.error("Write", file_path=path, content="x")).startswith(f"Failed to write file {path}: {why}")


async def test_too_much_is_refused(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.tools.atomic.LARGEST_FILE", 3)
    assert "the limit is 3" in await box.error("Write", file_path="a", content="four")


async def test_a_write_that_is_cancelled_before_it_happens_never_happens(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, gate, left = threading.Event(), threading.Event(), threading.Event()
    encode = write.encode

    def slow(text: str, parameter: str) -> bytes:
        entered.set()
        gate.wait(PATIENCE_SECONDS)
        return encode(text, parameter)

    def watched(path: str, data: bytes, check: Callable[[], None], *, private: bool) -> bool:
        try:
            return replace_file(path, data, check, private=private)
        finally:
            left.set()

    monkeypatch.setattr(write, "encode", slow)
    monkeypatch.setattr(write, "replace_file", watched)
    task = asyncio.ensure_future(box.call("Write", file_path="a", content="x"))
    assert await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert await asyncio.to_thread(left.wait, PATIENCE_SECONDS)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("a\n\n", 2), ("a\x0cb", 1)]
)
def test_lines_are_counted_as_an_editor_shows_them(text: str, lines: int) -> None:
    assert count_lines(text) == lines


async def test_it_says_where_it_leads(box: Box) -> None:
    away = box.toolbox.read("Write", {"file_path": "/x/y", "content": ""})
    assert (away.description, away.outside, away.tool.category) == ("Write to /x/y", True, "edit")
    assert not box.toolbox.read("Write", {"file_path": "x", "content": ""}).outside
