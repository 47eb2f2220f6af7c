"""What interrupts a sitting, and what is left of it: nothing that was said, typed or asked is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import CTRL_C, CTRL_D, PROMPT, ChatTerminal
from tests.cli.terminal.test_conversation_coder import coder
from tests.support.provider import HANG, StubProvider
from tests.support.provider_streams import anthropic_text, anthropic_tool_calls
from trunkline.agents.coder.extending import memory
from trunkline.cli import shelf

pytestmark = pytest.mark.process

UP, EDIT = "\x1b[A", "\x18\x05"


def editor(tmp_path: Path, script: str) -> str:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_ctrl_c_in_the_editor_is_the_editors(tmp_path: Path) -> None:
    program = editor(tmp_path, "trap 'echo interrupted; exit 0' INT; echo editing; read line")
    with ChatTerminal("coder", "--provider", "mock", "--workspace", str(tmp_path), EDITOR=program) as chat:
        chat.say("/memory")
        chat.sees("editing")
        chat.type(CTRL_C)
        chat.sees("interrupted", "Nothing is remembered of this workspace yet.")
        chat.say("hello")
        chat.sees("hello", PROMPT)
        chat.wait_for_prompt()
        chat.type(CTRL_D)
        assert chat.leaves() == 0
    assert not os.path.exists(memory.file(str(tmp_path)))


def test_what_is_typed_can_be_edited_elsewhere(tmp_path: Path) -> None:
    program = editor(tmp_path, 'cat "$1" > seen; echo "and more" >> "$1"')
    with ChatTerminal("echo", "--workspace", str(tmp_path), EDITOR=f"sh -c 'cd {tmp_path} && {program} $0'") as chat:
        chat.wait_for_prompt()
        chat.type(f"some words{EDIT}")
        chat.sees("and more")
        assert (tmp_path / "seen").read_text() == "some words"


def test_ctrl_c_stops_a_command_that_takes_long_and_nothing_else(tmp_path: Path) -> None:
    stub = StubProvider()
    stub.raw(HANG)
    stub.anthropic(anthropic_text("Here I am."))
    with coder(stub, tmp_path) as chat:
        chat.say("/model")
        chat.sees("The model is `claude-sonnet-4-5`.")
        chat.until_true(lambda: len(stub.requests) == 1)
        chat.type(CTRL_C)
        chat.sees("Stopped.")
        chat.say("are you there?")
        chat.sees("Here I am.")
        assert "Traceback" not in chat.raw


@pytest.mark.parametrize("how", ["closed", "SIGHUP", "SIGTERM"])
def test_what_is_half_typed_when_the_terminal_goes_is_in_the_history(tmp_path: Path, how: str) -> None:
    with ChatTerminal("echo", "--workspace", str(tmp_path)) as chat:
        chat.wait_for_prompt()
        chat.type("half a thought")
        chat.sees(f"{PROMPT} half a thought")
        if how != "closed":
            chat.process.send_signal(getattr(signal, how))
            assert chat.leaves() == 128 + getattr(signal, how)
    with ChatTerminal("echo", "--workspace", str(tmp_path)) as chat:
        chat.wait_for_prompt()
        chat.type(UP)
        chat.sees(f"{PROMPT} half a thought")


@pytest.mark.parametrize("how", ["closed", "SIGTERM", "SIGKILL"])
def test_a_question_that_was_open_when_the_terminal_went_is_asked_again(tmp_path: Path, how: str) -> None:
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Write", {"file_path": "a.txt", "content": "hello\n"})]))
    stub.anthropic(anthropic_text("It is written."))
    with coder(stub, tmp_path) as chat:
        chat.say("write it")
        chat.sees("? Write a.txt", "Allow?")
        if how != "closed":
            chat.process.send_signal(getattr(signal, how))
            chat.leaves()
    with coder(stub, tmp_path, "--resume") as chat:
        chat.sees(f"{PROMPT} write it", "? Write a.txt", "Allow?")
        chat.type("y")
        chat.sees("✓ allowed", "It is written.")
        chat.wait_for_prompt()
    assert (tmp_path / "a.txt").read_text() == "hello\n"
    assert len(shelf.sessions()) == 1


def test_an_edit_that_was_asked_about_when_the_process_was_killed_is_made_when_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    change = {"file_path": "a.py", "old_string": "one", "new_string": "two"}
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Read", {"file_path": "a.py"})]))
    stub.anthropic(anthropic_tool_calls([("Edit", change)]))
    stub.anthropic(anthropic_text("It is edited."))
    with coder(stub, tmp_path) as chat:
        chat.say("edit it")
        chat.sees("? Edit a.py", "Allow?")
        chat.process.send_signal(signal.SIGKILL)
        chat.leaves()
    with coder(stub, tmp_path, "--resume") as chat:
        chat.sees("? Edit a.py", "Allow?")
        chat.type("y")
        chat.sees("✓ allowed", "It is edited.")
        chat.wait_for_prompt()
    assert (tmp_path / "a.py").read_text() == "two\n"
