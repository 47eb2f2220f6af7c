"""One message being answered, with a keyboard of our own and as much time as we want."""

from __future__ import annotations

import asyncio
import os
import pty
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.terminal.emulator import Emulator
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.chat_session import ChatOptions, EventQueue, TerminalSession, opening
from trunkline.cli.terminal import turn as turns
from trunkline.cli.terminal.paint import PROMPT, Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.turn import TerminalTurn
from trunkline.cli.terminal.view import View
from trunkline.core.events import Envelope, UserMessage

#: Longer than a test may take: whoever types does not stop typing.
ENDLESS_SECONDS = 600.0

SCRIPT = """
turns:
  - steps:
      - tool: {name: Bash, args: {command: make}, output: "Exit code: 0", approved: [{text: "It ran."}]}
"""


class FakeTerminal:
    """A keyboard and a screen."""

    def __init__(self, keyboard: int, master: int) -> None:
        self.keyboard = keyboard
        self._master = master
        self._terminal = Emulator(80, 24)
        self.screen = Screen(lambda text: self._terminal.feed(text.replace("\n", "\r\n")), lambda: (80, 24))
        self.view = View(self.screen, Painter(lambda: 80, color_system=None))

    @property
    def seen(self) -> str:
        return self._terminal.screen

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    async def sees(self, happened: Callable[[str], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened(self.seen):  # noqa: ASYNC110  (a screen does not tell)
                await asyncio.sleep(0.01)


@pytest.fixture
def terminal() -> Iterator[FakeTerminal]:
    master, keyboard = pty.openpty()
    yield FakeTerminal(keyboard, master)
    os.close(master)
    os.close(keyboard)


async def opened(workspace: Path, inbox: EventQueue, script: str = SCRIPT) -> TerminalSession:
    (workspace / "script.yaml").write_text(script)
    options = ChatOptions(script=str(workspace / "script.yaml"), workspace=str(workspace), no_session=True)
    talk = await TerminalSession.open(
        options, await opening(options), interactive=True, on_judged=inbox.put, tell=print
    )
    talk.session.attach(inbox)
    return talk


async def test_what_is_typed_across_the_appearance_of_a_question_is_no_answer_to_it(
    terminal: FakeTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TYPING_SECONDS", ENDLESS_SECONDS)
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox)
    turn = TerminalTurn(
        talk.session, inbox, terminal.screen, terminal.view, workspace=str(tmp_path), keyboard=terminal.keyboard
    )
    show = inbox.show
    held: list[Envelope] = []
    asking = asyncio.Event()

    def hold(envelopes: Sequence[Envelope]) -> None:
        """The question is to come in the middle of the typing."""
        held.extend(envelopes)
        asking.set()

    monkeypatch.setattr(inbox, "show", hold)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await asyncio.wait_for(asking.wait(), PATIENCE_SECONDS)
    terminal.type("yes")
    await terminal.sees(lambda seen: f"{PROMPT} yes" in seen)
    assert "Allow?" not in terminal.seen
    monkeypatch.setattr(inbox, "show", show)
    show(held)
    await terminal.sees(lambda seen: "Allow?" in seen)
    terminal.type(", yay")
    await terminal.sees(lambda seen: f"{PROMPT} yes, yay" in seen)
    assert "Allow?" in terminal.seen
    assert "allowed" not in terminal.seen
    turn.stop()
    assert (await running).outcome == "cancelled"
    assert turn.typed.text == "yes, yay"
    await talk.close()


async def test_one_key_is_the_answer_of_somebody_who_was_not_typing(terminal: FakeTerminal, tmp_path: Path) -> None:
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox)
    turn = TerminalTurn(
        talk.session, inbox, terminal.screen, terminal.view, workspace=str(tmp_path), keyboard=terminal.keyboard
    )
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Allow?" in seen)
    terminal.type("y")
    assert (await asyncio.wait_for(running, PATIENCE_SECONDS)).outcome == "success"
    assert "✓ allowed" in terminal.seen
    assert "It ran." in terminal.seen
    await talk.close()


async def test_every_key_of_whoever_types_on_puts_the_question_off(
    terminal: FakeTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TYPING_SECONDS", ENDLESS_SECONDS)
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox)
    # As after an answer during which somebody typed.
    turn = TerminalTurn(
        talk.session,
        inbox,
        terminal.screen,
        terminal.view,
        workspace=str(tmp_path),
        last_key=time.monotonic(),
        keyboard=terminal.keyboard,
    )
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Allow?" in seen)
    deaf_until = [turn._deaf_until]
    for typed in ("y", "ya", "yay"):
        terminal.type(typed[-1])
        await terminal.sees(lambda seen, typed=typed: f"{PROMPT} {typed}" in seen)  # type: ignore[misc]
        deaf_until.append(turn._deaf_until)
    assert deaf_until == sorted(set(deaf_until))
    assert "allowed" not in terminal.seen
    turn.stop()
    assert (await running).outcome == "cancelled"
    await talk.close()


def turn_of(talk: TerminalSession, inbox: EventQueue, terminal: FakeTerminal, workspace: Path) -> TerminalTurn:
    return TerminalTurn(
        talk.session, inbox, terminal.screen, terminal.view, workspace=str(workspace), keyboard=terminal.keyboard
    )


HANGING = """
turns:
  - steps:
      - text: "Once upon a time."
      - hang: true
"""


@pytest.mark.parametrize("keys", ["one\\\rtwo", "one\x1b\rtwo"])
async def test_the_keys_for_a_new_line_begin_one_during_an_answer_too(
    terminal: FakeTerminal, tmp_path: Path, keys: str
) -> None:
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, HANGING)
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Once upon a time." in seen)
    terminal.type(keys)
    await terminal.sees(lambda seen: f"{PROMPT} one ⏎ two" in seen)
    terminal.type("\r")
    await terminal.sees(lambda seen: "next: one ⏎ two" in seen)
    assert list(turn.queue) == ["one\ntwo"]
    turn.stop()
    await running
    await talk.close()


@pytest.mark.parametrize(("script", "shown"), [(HANGING, "Once upon a time."), (SCRIPT, "Allow?")])
async def test_ctrl_d_leaves_during_an_answer_and_at_a_question(
    terminal: FakeTerminal, tmp_path: Path, script: str, shown: str
) -> None:
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, script)
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: shown in seen)
    terminal.type("\x04")
    assert (await asyncio.wait_for(running, PATIENCE_SECONDS)).outcome == "cancelled"
    assert turn.gone
    await talk.close()
