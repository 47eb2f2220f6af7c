"""One message being answered, with a keyboard of our own and as much time as we want."""

from __future__ import annotations

import asyncio
import os
import pty
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.terminal.emulator import Emulator
from tests.cli.terminal.test_pasting import png
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import browser
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
    assert turn.ahead.text == "yes, yay"
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
    assert list(turn.ahead.queue) == ["one\ntwo"]
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


@pytest.mark.parametrize("keys", ["in French", "@note.txt helps"])
async def test_tab_sends_what_was_typed_into_the_answer(terminal: FakeTerminal, tmp_path: Path, keys: str) -> None:
    (tmp_path / "note.txt").write_text("x")
    told: list[UserMessage] = []
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, HANGING)

    def steer(message: UserMessage) -> bool:
        told.append(message)
        return True

    talk.session.steer = steer  # type: ignore[method-assign]  # of an agent that can be steered
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Once upon a time." in seen)
    terminal.type(f"\t{keys}\t")
    await terminal.sees(lambda seen: f"{PROMPT} {keys}" in seen and bool(told))
    assert [message.text for message in told] == [keys]
    assert [len(message.files) for message in told] == [int(keys.startswith("@"))]
    assert (turn.ahead.text, list(turn.ahead.queue)) == ("", [])
    turn.stop()
    await running
    await talk.close()


async def test_what_is_pasted_during_an_answer_is_folded_and_sent_as_what_it_is(
    terminal: FakeTerminal, tmp_path: Path
) -> None:
    shot = tmp_path / "shot.png"
    shot.write_bytes(png(640, 480))
    lines, told = "line\n" * 30, deque[UserMessage]()
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, HANGING)

    def steer(message: UserMessage) -> bool:
        told.append(message)
        return True

    talk.session.steer = steer  # type: ignore[method-assign]  # of an agent that can be steered
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Once upon a time." in seen)
    terminal.type(f"see \x1b[200~{shot}\x1b[201~\x1b[200~{lines}\x1b[201~")
    await terminal.sees(lambda seen: f"{PROMPT} see [image #1 640x480] [pasted #2 30 lines]" in seen)
    terminal.type("\t")
    await terminal.sees(lambda seen: bool(told))
    assert list(told) == [UserMessage(f"see [image #1 640x480] {lines}", (str(shot),))]
    # There is no clipboard here, and nothing waits for one.
    terminal.type("\x16")
    await terminal.sees(lambda seen: "clipboard" in seen)
    turn.stop()
    await running
    await talk.close()


async def test_what_is_queued_is_shown_and_can_be_taken_back_and_the_keys_are_told(
    terminal: FakeTerminal, tmp_path: Path
) -> None:
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, HANGING)
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: f"\n{PROMPT} type ahead: Enter queues" in seen)
    # This agent reads nothing before the end of its turn.
    assert "Tab" not in terminal.seen
    terminal.type("one")
    await terminal.sees(lambda seen: "Enter queues it · Esc clears" in seen)
    terminal.type("\rtwo\r")
    await terminal.sees(lambda seen: "next: one" in seen and "next: two" in seen and "takes it back" in seen)
    terminal.type("\x1b[A")
    await terminal.sees(lambda seen: f"{PROMPT} two" in seen)
    assert (turn.ahead.text, list(turn.ahead.queue)) == ("two", ["one"])
    # With something in the line it stays where it is.
    terminal.type("\x1b[A!")
    await terminal.sees(lambda seen: f"{PROMPT} two!" in seen)
    assert list(turn.ahead.queue) == ["one"]
    turn.stop()
    await running
    await talk.close()


@pytest.mark.parametrize("keys", ["in French", "/context"])
async def test_tab_is_enter_where_the_agent_cannot_be_steered_and_for_commands(
    terminal: FakeTerminal, tmp_path: Path, keys: str
) -> None:
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, HANGING)
    if keys.startswith("/"):
        talk.session.steer = lambda message: True  # type: ignore[method-assign]  # of an agent that can be steered
    turn = turn_of(talk, inbox, terminal, tmp_path)
    running = asyncio.create_task(turn.run(UserMessage("go")))
    await terminal.sees(lambda seen: "Once upon a time." in seen)
    terminal.type(f"{keys}\t")
    await terminal.sees(lambda seen: f"next: {keys}" in seen)
    assert list(turn.ahead.queue) == [keys]
    turn.stop()
    await running
    await talk.close()


LOGIN = "https://auth.example.org/authorize?" + "a" * 200
LOGS_IN = f"""
turns:
  - steps:
      - notice: "Open this:\\n{LOGIN}"
      - extension: {{kind: mcp_login, data: {{name: web, url: "{LOGIN}"}}}}
  - steps:
      - extension: {{kind: mcp_login, data: {{name: web, url: "https://evil.example.org/"}}}}
"""


async def test_a_browser_is_opened_for_whoever_has_asked_for_a_login_and_for_nobody_else(
    terminal: FakeTerminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(browser, "show", shown.put)
    inbox = EventQueue()
    talk = await opened(tmp_path, inbox, LOGS_IN)
    for text in ("/mcp login web", "Hello."):
        turn = TerminalTurn(
            talk.session, inbox, terminal.screen, terminal.view, workspace=str(tmp_path), keyboard=terminal.keyboard
        )
        end = await asyncio.wait_for(turn.run(UserMessage(text)), PATIENCE_SECONDS)
        assert end.outcome == "success"
    assert await asyncio.to_thread(shown.get, timeout=PATIENCE_SECONDS) == LOGIN
    assert shown.empty()
    await talk.close()
