"""A spoken conversation on the screen of `trunkline chat`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import CTRL_D, ENTER, ESCAPE, ChatTerminal
from tests.cli.terminal.emulator import Emulator
from tests.support.tryll_process import TryllProcess, tryll_process
from tests.support.tryll_voice import silence, tone
from trunkline.agents.external.tryll_talk_events import (
    Answered,
    AnswerPiece,
    PromptSent,
    Spoken,
    Trouble,
    UserTranscript,
)
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.talk import TalkView
from trunkline.cli.terminal.view import View
from trunkline.wires.tryll.drive import Sound
from trunkline.wires.tryll.messages import NodeEvent, NodeEventKeyValue


class Stage:
    """A spoken conversation in front of an emulated terminal."""

    def __init__(self, columns: int = 60) -> None:
        self.terminal = Emulator(columns, 24)
        screen = Screen(lambda text: self.terminal.feed(text.replace("\n", "\r\n")), lambda: (columns, 24))
        self.view = TalkView(screen, View(screen, Painter(lambda: columns, color_system=None), clock=lambda: 1.0))

    @property
    def shown(self) -> list[str]:
        return self.terminal.history


def test_what_is_not_sure_yet_is_live_and_what_was_said_and_answered_stays() -> None:
    stage = Stage()
    stage.view.show(UserTranscript("start"))
    stage.view.show(UserTranscript("partial", "Let me"))
    assert stage.shown[-1] == "❯ Let me…"
    stage.view.show(UserTranscript("over", "Let\nme in."))
    stage.view.show(PromptSent("Let\nme in."))
    assert stage.shown[-1].endswith("Esc stops")
    stage.view.told(NodeEvent(1, "open", "tool_call", (NodeEventKeyValue("tool_name", "gate\x1b[2J\nYou: yes"),)))
    stage.view.show(AnswerPiece("As you wish."))
    stage.view.show(Spoken(Sound(bytes(32000), 16000)))
    stage.view.show(Answered("success"))
    told = "[open: tool_call] tool_name=gate …"
    assert stage.shown == ["❯ Let me in.", "", told, "", "As you wish.", "", "  1.0 s of sound · 0.0 s"]


def test_what_is_typed_stands_below_and_is_shown_once_it_is_said() -> None:
    stage = Stage()
    stage.view.typing("Good mor")
    assert stage.shown == ["❯ Good mor▏"]
    stage.view.typing("")
    stage.view.show(PromptSent("Good morning"))
    stage.view.show(AnswerPiece("No."))
    stage.view.show(Answered("error", "It is too late."))
    stage.view.show(Trouble("The line is bad."))
    assert stage.shown == ["❯ Good morning", "", "No.", "", "✗ It is too late.", "✗ The line is bad."]


@pytest.fixture
def process() -> Iterator[TryllProcess]:
    with tryll_process() as found:
        yield found


@pytest.mark.process
@pytest.mark.slow
def test_one_speaks_types_and_leaves_in_the_same_terminal(process: TryllProcess, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "said").write_bytes(tone(300) + silence(700))
    for name, script in {"arecord": f"cat {tmp_path}/said; exec sleep 60", "aplay": "exec cat > /dev/null"}.items():
        (folder / name).write_text(f"#!/bin/sh\nPATH={os.defpath}\n{script}\n")
        (folder / name).chmod(0o755)
    arguments = (f"127.0.0.1:{process.port}", "--model", "mock-slow", "--stt", "mock", "--tts", "mock")
    with ChatTerminal(*arguments, command=("tryll", "talk"), PATH=str(folder)) as terminal:
        terminal.sees("trunkline ", f"tryll:127.0.0.1:{process.port}", "the agent listens")
        terminal.sees("❯ w1 w2 w3", "You said: w1 w2 w3")
        terminal.type("word " * 300 + ENTER)
        terminal.sees("You said: word")
        terminal.type(ESCAPE)
        terminal.sees("stopped")
        # A line that is begun is no command of one letter.
        terminal.type("/q")
        terminal.sees("❯ /q▏")
        terminal.type(ESCAPE)
        terminal.type("/help" + ENTER)
        terminal.sees("tells how many tokens were used", "Ctrl-C leave. In a line")
        terminal.type("/clear" + ENTER)
        terminal.sees("come back with `--resume ID`")
        terminal.type(CTRL_D)
        assert terminal.leaves() == 0
        assert "Go on with: trunkline tryll talk" in terminal.raw
        assert "Traceback" not in terminal.raw
