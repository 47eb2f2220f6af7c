"""What is offered while somebody types, and the history of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.terminal import prompt
from trunkline.cli.terminal.prompt import ChatCompleter, InputPrompt, standing
from trunkline.core.agent import Capabilities


def offered(text: str, workspace: Path) -> list[str]:
    commands = [("help", "lists"), ("mode", "changes")]
    completer = ChatCompleter(lambda: commands, lambda command: [f"{command[1:]}-1"], str(workspace))
    return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]


def test_commands_and_their_arguments_are_completed(tmp_path: Path) -> None:
    assert offered("/", tmp_path) == ["/help", "/mode"]
    assert offered("/mo", tmp_path) == ["/mode"]
    assert offered("/mode m", tmp_path) == ["mode-1"]
    assert offered("say /he", tmp_path) == []


def test_files_are_completed_after_an_at(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / "setup.py").touch()
    (tmp_path / "my notes.md").touch()
    (tmp_path / ".hidden").touch()
    assert offered("look at @s", tmp_path) == ["src/", "setup.py"]
    assert offered("look at @src/", tmp_path) == ["main.py"]
    assert offered("@.", tmp_path) == [".hidden"]
    assert offered('@"my', tmp_path) == ['my notes.md"']
    assert offered("@nowhere/x", tmp_path) == []
    assert offered("me@s", tmp_path) == []


def test_a_history_that_grew_too_long_loses_its_older_half(tmp_path: Path) -> None:
    path = tmp_path / "history"
    entry = "\n# 2026-11-15 07:00:00\n+something that was said\n"
    path.write_text(entry * (prompt.LONGEST_HISTORY // len(entry) + 2))
    prompt._shorten(str(path))
    kept = path.read_text()
    assert prompt.LONGEST_HISTORY // 3 < len(kept) < prompt.LONGEST_HISTORY
    assert kept.startswith("# 2026")
    assert os.path.getsize(path) == len(kept)


async def test_colours_in_what_is_pasted_are_left_out_and_fail_nothing(tmp_path: Path) -> None:
    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        reads = InputPrompt(list, lambda command: [], str(tmp_path), mode=lambda: "default", on_mode=lambda: None)
        keyboard.send_text("a\x1b[31mb\x1b[0m\x1b[<0;1;1Mc\r")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reads.read() == "abc"


def test_a_sandbox_is_said_before_the_mode() -> None:
    walled = Capabilities(sandbox=True)
    assert standing("default", walled) == "sandbox"
    assert standing("plan", walled) == "sandbox plan"
    assert standing("default", Capabilities()) == ""
    assert standing("plan", Capabilities()) == "plan"


def test_a_mode_in_which_nobody_is_asked_says_so() -> None:
    assert standing("yolo", Capabilities(sandbox=True)) == "sandbox yolo (acts unasked)"
    assert standing("yolo", Capabilities()) == "yolo (acts unasked)"
