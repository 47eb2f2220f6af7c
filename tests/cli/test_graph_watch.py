"""`trunkline graph watch`: a conversation that goes on with what its graph's file becomes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import CTRL_D, ChatTerminal
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.graph_watch import GraphWatch, Repeated

GRAPH = """start: answer
default_model: mock
storages: {lines: lines.txt}
nodes:
  answer: {type: CannedResponse, string_storage: lines}
tests:
  - name: it
    turns: [{say: x, expect: {text: First}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("First.\n")
    (tmp_path / "g.yaml").write_text(GRAPH)
    return tmp_path / "g.yaml"


class Talk:
    """The command with pipes: what it says on both, in their order."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trunkline", "graph", "watch", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def until(self, text: str) -> list[str]:
        """Read up to a line that has this."""
        assert self.process.stdout is not None
        found: list[str] = []
        for line in self.process.stdout:
            found.append(line.rstrip("\n"))
            if text in line:
                return found
        raise AssertionError(f"`{text}` did not come: {found}")

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(PATIENCE_SECONDS)


@pytest.fixture
def talk(file: Path) -> Iterator[Talk]:
    made = Talk(str(file), "--no-trace")
    yield made
    made.close()


def test_the_conversation_goes_on_with_what_was_saved_and_with_the_last_good_graph(file: Path, talk: Talk) -> None:
    talk.say("one")
    talk.until("First.")
    # Saved in place, and wrong.
    file.write_text(GRAPH.replace("CannedResponse", "CanedResponse"))
    told = talk.until("The last good graph goes on.")
    assert f"{file}:5:12: `nodes.answer.type` must be one of" in told[-2]
    talk.say("two")
    talk.until("First.")
    # Replaced by another file, as many editors do.
    (file.parent / "new").write_text(GRAPH.replace("string_storage: lines", "inline_strings: [Second.]"))
    os.replace(file.parent / "new", file)
    talk.until("has changed: the next message is for the new graph.")
    talk.say("three")
    talk.until("Second.")
    assert talk.end() == 0


def test_a_file_that_the_graph_names_is_followed_too(file: Path, talk: Talk) -> None:
    talk.say("one")
    talk.until("First.")
    (file.parent / "lines.txt").write_text("Another.\n")
    talk.until("has changed")
    talk.say("two")
    talk.until("Another.")


def test_the_new_graph_knows_what_was_said(file: Path, tmp_path: Path) -> None:
    file.write_text("start: a\ndefault_model: agent:echo\nnodes:\n  a: {type: Generate}\n")
    talk = Talk(str(file), "--no-trace")
    try:
        talk.say("one")
        talk.until("one")
        file.write_text(file.read_text().replace("Generate}", "Generate, system_prompt: Be kind.}"))
        talk.until("has changed")
        talk.say("two")
        assert talk.until("two")[-1].endswith("two")
    finally:
        talk.close()


def test_messages_and_tests_are_repeated_at_every_save_until_ctrl_c(file: Path) -> None:
    talk = Talk(str(file), "-m", "hello", "--test", "--model", "mock")
    try:
        assert talk.until("Waiting for the file")[:2] == ["> hello", "First."]
        file.write_text(GRAPH.replace("First}", "Never}"))
        told = talk.until("Waiting for the file")
        assert [line for line in told if "expected" in line] == [f"    {file}:8:31: expected text: Never"]
        talk.process.send_signal(signal.SIGINT)
        assert talk.process.wait(PATIENCE_SECONDS) == 130
    finally:
        talk.close()


def test_what_is_wrong_is_told_in_place_of_a_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GRAPH.replace("start: answer", "start: x"))
    repeat = Repeated(str(file), ["hi"], True, model="mock", models_dir=None)
    report = GraphWatch(str(file)).examine()
    asyncio.run(repeat.once(report))
    assert capsys.readouterr().out.startswith(f"problem  {file}:1:1: `start` is `x`")


def test_a_watch_sees_each_save_once_and_not_half_of_it(file: Path) -> None:
    watch = GraphWatch(str(file))
    watch.examine()
    assert [watch.look(), watch.look()] == [False, False]
    file.write_text("half")
    assert watch.look() is False
    file.write_text("half and whole")
    assert [watch.look(), watch.look(), watch.look()] == [False, True, False]
    file.unlink()
    assert [watch.look(), watch.look()] == [False, False]
    file.write_text(GRAPH)
    assert [watch.look(), watch.look(), watch.look()] == [False, True, False]


@pytest.mark.parametrize("flag", [["-m", "x"], ["--test"], ["--engine", "mock"]])
def test_what_runs_here_does_not_go_with_a_server_elsewhere(file: Path, flag: list[str]) -> None:
    talk = Talk(str(file), "--connect", "127.0.0.1:1", *flag)
    try:
        talk.until("goes with neither")
        assert talk.process.wait(PATIENCE_SECONDS) == 2
    finally:
        talk.close()


def test_a_graph_that_is_wrong_from_the_beginning_begins_no_conversation(file: Path) -> None:
    file.write_text("start: x\n")
    talk = Talk(str(file))
    try:
        talk.until("needs the key `nodes`")
        assert talk.process.wait(PATIENCE_SECONDS) == 1
    finally:
        talk.close()


@pytest.mark.parametrize("flags", [[], ["-m", "x"], ["--test"]])
def test_a_folder_is_not_waited_for(tmp_path: Path, flags: list[str]) -> None:
    talk = Talk(str(tmp_path), *flags)
    try:
        talk.until("cannot be read: Is a directory. Name a file")
        assert talk.process.wait(PATIENCE_SECONDS) == 1
    finally:
        talk.close()


@pytest.mark.process
def test_in_a_terminal_a_save_is_told_while_nobody_speaks(file: Path) -> None:
    with ChatTerminal(str(file), command=("graph", "watch")) as terminal:
        # Words alone: the path is of any length, and where the lines break depends on it.
        terminal.sees("watched:")
        terminal.say("one")
        terminal.sees("First.")
        file.write_text(GRAPH.replace("CannedResponse", "CanedResponse"))
        terminal.sees("`CannedResponse`?", "The last good graph goes on.")
        file.write_text(GRAPH.replace("string_storage: lines", "inline_strings: [Second.]"))
        terminal.sees("changed:")
        terminal.say("two")
        terminal.sees("Second.")
        terminal.wait_for_prompt()
        terminal.type(CTRL_D)
        assert terminal.leaves() == 0
