"""Attachments that lie elsewhere are here while the turn lasts."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from trunkline.agents.coder.files import attach
from trunkline.base import http_public
from trunkline.base.http_public import NotFetched
from trunkline.core.faults import RemoteProtocolError
from trunkline.models.messages import Image
from trunkline.wires.agentproc import serve_files
from trunkline.wires.agentproc.messages import Attachment, TurnRequest
from trunkline.wires.agentproc.serve_files import MOST_BYTES, MOST_FILES, SECONDS, brought

#: One dot.
PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, dict[str, Any]]]:
    """What is fetched: each address gives itself, and what is `gone` gives nothing."""
    found: list[tuple[str, dict[str, Any]]] = []

    async def fetch(url: str, **limits: Any) -> bytes:
        found.append((url, limits))
        await asyncio.sleep(0)
        if "gone" in url:
            raise NotFetched("the server answers 404")
        return url.encode()

    monkeypatch.setattr(http_public, "fetch", fetch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return found


def contents(path: str) -> bytes:
    return Path(path).read_bytes()


async def test_images_and_files_are_fetched_named_and_gone_when_the_turn_is_over(
    asked: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    turn = TurnRequest(
        "look",
        attachments=(
            Attachment("image", "https://example.org/cat.jpg?size=1"),
            Attachment("file", "/here.txt"),
            Attachment("file", "http://example.org/x", "../../notes für alle.txt"),
        ),
    )
    async with brought(turn, images=True) as message:
        here, cat, notes = message.files
        assert here == "/here.txt"
        assert (os.path.basename(cat), os.path.basename(notes)) == ("1-cat.jpg", "2-notes-für-alle.txt")
        assert contents(cat) == b"https://example.org/cat.jpg?size=1"
        assert os.path.dirname(cat).startswith(str(tmp_path))
        assert message.text.split("\n")[2:] == [
            "[Attached image: https://example.org/cat.jpg?size=1]",
            "[Attached file `../../notes für alle.txt`: http://example.org/x]",
        ]
    assert os.listdir(tmp_path) == []
    assert asked[0][1] == {"most": MOST_BYTES, "seconds": SECONDS, "private": False}


async def test_the_coding_agent_sees_the_picture(
    asked: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def fetch(url: str, **limits: Any) -> bytes:
        return PICTURE

    monkeypatch.setattr(http_public, "fetch", fetch)
    turn = TurnRequest("what is this?", attachments=(Attachment("image", "https://example.org/download?id=7"),))
    async with brought(turn, images=True) as message:
        blocks, notices = await attach(message, str(tmp_path), images=True)
    assert [block.data for block in blocks if isinstance(block, Image)] == [b64encode(PICTURE).decode()]
    assert notices == ()


async def test_what_cannot_be_had_is_told_to_the_agent_and_the_rest_arrives(
    asked: list[tuple[str, dict[str, Any]]],
) -> None:
    turn = TurnRequest("", attachments=(Attachment("file", "https://x/gone"), Attachment("file", "https://x/there")))
    async with brought(turn, images=True, private=True) as message:
        assert [os.path.basename(path) for path in message.files] == ["2-there"]
        assert "[Attached file: https://x/gone (not here: the server answers 404)]" in message.text
    assert asked[0][1]["private"] is True


async def test_nothing_is_fetched_that_nobody_can_see(asked: list[tuple[str, dict[str, Any]]]) -> None:
    turn = TurnRequest(
        "look",
        attachments=(
            Attachment("image", "https://x/a.png"),
            Attachment("audio", "https://x/a.mp3"),
            Attachment("video", "https://x/a.mp4"),
            Attachment("file", "ftp://x/a"),
        ),
    )
    async with brought(turn, images=False) as message:
        assert message.files == ()
        assert message.text.count("[Attached ") == 4
    async with brought(turn, images=True, enabled=False) as message:
        assert message.files == ()
    assert asked == []


async def test_no_more_files_are_fetched_than_anybody_attaches(asked: list[tuple[str, dict[str, Any]]]) -> None:
    attached = tuple(Attachment("file", f"https://x/{number}") for number in range(MOST_FILES + 2))
    async with brought(TurnRequest("look", attachments=attached), images=True) as message:
        assert len(message.files) == MOST_FILES
        assert message.text.count(f"(not here: only the first {MOST_FILES} are fetched)") == 2
    assert len(asked) == MOST_FILES


async def test_a_name_is_as_long_as_file_systems_allow_whatever_its_letters(
    asked: list[tuple[str, dict[str, Any]]],
) -> None:
    turn = TurnRequest("look", attachments=(Attachment("file", "https://example.org/x", "𠜎" * 200 + ".txt"),))
    async with brought(turn, images=True) as message:
        (path,) = message.files
        assert contents(path) == b"https://example.org/x"
        assert path.endswith("𠜎.txt")
        assert len(os.path.basename(path).encode()) <= 255


async def test_a_message_that_says_and_brings_nothing_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="empty"):
        async with serve_files.brought(TurnRequest(" "), images=True):
            raise AssertionError
