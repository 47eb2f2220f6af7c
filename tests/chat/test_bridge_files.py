"""Files in both directions, through the whole bridge."""

from __future__ import annotations

import threading
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, Stage
from tests.support.chat_platform import LIMITS, MemoryPlatform
from trunkline.chat.attachments import MOST_FILES
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.platform import InboundFile
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings
from trunkline.core.events import TextDelta, ToolFinished, ToolStarted

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


def contents(path: str) -> bytes:
    return Path(path).read_bytes()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.platform.files["ref"] = PNG
    return stage


@pytest.mark.virtual_time
async def test_a_picture_without_a_word_reaches_the_agent(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("", files=(InboundFile("image", "ref"),))
        await stage.asked()
        message = stage.agent.heard[0]
        assert (message.text, len(message.files)) == ("", 1)
        assert contents(message.files[0]) == PNG
        await stage.answers("a picture")


@pytest.mark.virtual_time
async def test_a_file_that_cannot_be_had_is_told_and_the_text_goes_on(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("look", files=(InboundFile("file", "gone", "a.txt"), InboundFile("image", "ref", "b.png")))
        await stage.sees("The file `a.txt` could not be taken: there is no such file.")
        await stage.asked()
        assert (stage.agent.heard[0].text, len(stage.agent.heard[0].files)) == ("look", 1)
        await stage.answers("ok")


@pytest.mark.virtual_time
async def test_a_message_of_which_nothing_is_left_is_an_error_and_not_a_turn(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("", files=(InboundFile("file", "gone"),))
        await stage.sees("There is nothing to answer in this message.")
        assert not stage.fakes


@pytest.mark.virtual_time
async def test_more_files_than_anybody_needs_are_left_out(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("many", files=tuple(InboundFile("image", "ref") for _ in range(MOST_FILES + 1)))
        await stage.sees("Only the first 10 files were taken.")
        await stage.asked()
        assert len(stage.agent.heard[0].files) == MOST_FILES


@pytest.mark.virtual_time
async def test_a_caption_that_looks_like_a_command_is_a_caption(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/stop", files=(InboundFile("image", "ref"),))
        await stage.asked()
        assert stage.agent.heard[0].text == "/stop"


@pytest.mark.virtual_time
async def test_pictures_of_tools_and_files_that_the_answer_shows_are_sent_after_it(stage: Stage) -> None:
    (stage.directory / "plot.png").write_bytes(PNG)
    (stage.directory / ".env").write_bytes(b"KEY=1")
    async with stage.bridge():
        stage.platform.says("plot it")
        await stage.asked()
        stage.agent.say(
            ToolStarted("1", "Shot"),
            ToolFinished("1", "Shot", "success", b64encode(PNG).decode(), "image"),
            TextDelta("Here: ![the plot](plot.png) and ![](.env)"),
            DONE,
        )
        await stage.sees("[image] plot.png")
        assert stage.platform.shown()[1:] == ["[image] picture.png", "[image] plot.png"]
        for message in stage.platform.chats["c"][1:]:
            assert message.file is not None
            assert contents(message.file) == PNG


@pytest.mark.virtual_time
async def test_an_answer_that_is_only_a_picture_is_an_answer(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("show me")
        await stage.asked()
        stage.agent.say(
            ToolStarted("1", "Shot"), ToolFinished("1", "Shot", "success", b64encode(PNG).decode(), "image"), DONE
        )
        await stage.sees("[image]")
        assert stage.platform.shown() == ["[image] picture.png"]


@pytest.mark.virtual_time
async def test_a_picture_that_cannot_be_kept_does_not_cost_the_answer(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    shot = ToolFinished("1", "Shot", "success", b64encode(PNG).decode(), "image")
    async with stage.bridge():
        stage.platform.says("show me")
        await stage.asked()
        await stage.answers("Here it is.", ToolStarted("1", "Shot"), shot)
        await stage.sees("A picture was not sent: it cannot be kept:")
        stage.platform.says("/retry")
        await stage.sees("There is nothing to retry.")
        assert not stage.platform.sees("Error")


@pytest.mark.virtual_time
async def test_a_file_that_came_has_its_own_name_for_the_agent(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says(
            "look", files=(InboundFile("file", "ref", "My report.pdf"), InboundFile("file", "ref", "a.txt"))
        )
        await stage.asked()
        assert [Path(path).name for path in stage.agent.heard[0].files] == ["My_report.pdf", "a.txt"]


@pytest.mark.virtual_time
async def test_a_file_that_is_too_large_to_go_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, MemoryPlatform(LIMITS.replace(file_bytes=100)))
    (tmp_path / "big.png").write_bytes(bytes(101))
    (tmp_path / "small.png").write_bytes(PNG)
    async with stage.bridge():
        stage.platform.says("plot it")
        await stage.asked()
        stage.agent.say(TextDelta("![](big.png) ![](small.png)"), DONE)
        await stage.sees("The file `big.png` was not sent: it has 101 bytes, and 100 is the limit.")
        await stage.sees("[image] small.png")


async def test_files_are_copied_where_they_hold_up_nobody(tmp_path: Path) -> None:
    """In a thread, unless a test says otherwise."""
    bridge = Bridge(
        MemoryPlatform(), ChatStore(str(tmp_path / "db")), Opener(BridgeSettings(), environ={}), Senders(())
    )
    bridge._store.close()
    here = threading.get_ident()
    assert await bridge._context.aside(threading.get_ident) != here
