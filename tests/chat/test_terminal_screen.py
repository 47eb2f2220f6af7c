"""The chat on a screen: what somebody sees who sits in front of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable

import pytest

from tests.support.loop import run
from trunkline.chat.terminal.screen import GREETING, QUIET_SECONDS, WORKING_SECONDS, ChatScreen

TOKENS = re.compile("\x1b\\[([0-9;]*)([A-Za-z])|(.|\n|\r)", re.DOTALL)
A_WHILE = 5.0


class Terminal:
    """As much of a terminal as a screen uses, 80 columns wide and without end. It echoes what is typed."""

    def __init__(self) -> None:
        self.rows = [""]
        self.row = self.column = 0
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text
        for number, letter, char in TOKENS.findall(text):
            if letter == "A":
                self.row = max(0, self.row - int(number or 1))
            elif letter == "J":
                self.rows[self.row :] = [self.rows[self.row][: self.column]]
            elif char == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif char == "\r":
                self.column = 0
            elif char:
                self.rows[self.row] = self.rows[self.row][: self.column] + char
                self.column += 1


class Chat:
    """A screen in front of a terminal."""

    def __init__(self) -> None:
        self.terminal = Terminal()
        # No terminal behind this descriptor: the size is the usual one.
        self.screen = ChatScreen(-1, self.terminal.write, asks=True)

    def types(self, line: str) -> None:
        self.terminal.write(f"{line}\n")
        self.screen.typed()

    @property
    def rows(self) -> list[str]:
        return self.terminal.rows


def plays(scene: Callable[[Chat], Awaitable[None]]) -> Chat:
    async def play() -> Chat:
        chat = Chat()
        chat.screen.start()
        await asyncio.sleep(QUIET_SECONDS)
        await scene(chat)
        return chat

    return run(play())


def test_it_says_what_it_is_and_asks() -> None:
    async def begin() -> Chat:
        chat = Chat()
        chat.screen.greet()
        chat.screen.start()
        await asyncio.sleep(A_WHILE)
        return chat

    rows = run(begin()).rows
    assert rows == [f"  {GREETING.replace('`', '')}", "", "> "]
    assert len(rows[0]) <= 80


def test_answers_stand_apart_from_what_people_type() -> None:
    async def scene(chat: Chat) -> None:
        for line in ("hello", "again"):
            chat.types(line)
            chat.screen.send(line, f"**You** said {line}")
            await asyncio.sleep(A_WHILE)

    assert plays(scene).rows == ["> hello", "  You said hello", "", "> again", "  You said again", "", "> "]


def test_an_answer_grows_in_place_and_there_is_no_prompt_before_its_end() -> None:
    async def scene(chat: Chat) -> None:
        chat.types("go")
        chat.screen.busy(A_WHILE)
        await asyncio.sleep(WORKING_SECONDS)
        assert chat.rows == ["> go", "  ... "]
        text = ""
        for number in range(60):
            text += f"word{number} "
            chat.screen.send("k", text) if not number else chat.screen.edit("k", text.rstrip())
            assert not any(row.startswith(">") for row in chat.rows[1:])
        await asyncio.sleep(2 * A_WHILE)

    chat = plays(scene)
    assert chat.rows[0] == "> go"
    assert chat.rows[-2:] == ["", "> "]
    assert " ".join(row.strip() for row in chat.rows[1:-2]) == " ".join(f"word{number}" for number in range(60))
    assert all(len(row) <= 80 for row in chat.rows)
    # Not all of it again for each word.
    assert len(chat.terminal.written) < 10_000


def test_what_grows_goes_on_below_what_was_typed_in_between() -> None:
    async def scene(chat: Chat) -> None:
        chat.types("go")
        chat.screen.send("k", "one two")
        chat.types("/status")
        chat.screen.send("l", "busy")
        chat.screen.edit("k", "one two three\n\nend")
        await asyncio.sleep(A_WHILE)

    assert plays(scene).rows == ["> go", "  one two", "/status", "  busy", "", "  three", "", "  end", "", "> "]


def test_what_is_logged_in_between_stays() -> None:
    async def scene(chat: Chat) -> None:
        chat.types("go")
        chat.screen.send("k", "one")
        chat.terminal.write("WARNING: look\n")
        chat.screen.disturbed()
        chat.screen.edit("k", "one two")
        await asyncio.sleep(A_WHILE)

    assert plays(scene).rows == ["> go", "  one", "WARNING: look", "", "  two", "", "> "]


def test_a_text_that_changes_otherwise_is_told_by_its_new_lines() -> None:
    async def scene(chat: Chat) -> None:
        chat.screen.send("k", "**Approval 7**: the agent wants to use `shell`\nls\n`/approve 7`")
        await asyncio.sleep(A_WHILE)
        chat.types("/approve 7")
        chat.screen.edit("k", "**Approval 7**: `shell`\nls\nApproved by you.")
        await asyncio.sleep(A_WHILE)

    assert plays(scene).rows[-5:] == ["> /approve 7", "  Approval 7: shell", "  Approved by you.", "", "> "]


def test_a_change_of_what_an_earlier_run_has_written_is_shown_whole() -> None:
    async def scene(chat: Chat) -> None:
        chat.screen.edit("gone", "all of it")

    assert "  all of it" in plays(scene).rows


def test_rows_that_have_left_the_screen_are_not_written_again() -> None:
    async def scene(chat: Chat) -> None:
        chat.screen.send("k", "**" + "word " * 398)
        before = len(chat.terminal.written)
        chat.screen.edit("k", "**" + "word " * 398 + "end**")
        assert "\x1b[23A" in chat.terminal.written[before:]
        assert chat.terminal.written[before:].count("\n") <= 25

    plays(scene)


def test_it_ends_on_a_line_of_its_own() -> None:
    async def scene(chat: Chat) -> None:
        chat.screen.close()
        await asyncio.sleep(A_WHILE)

    assert plays(scene).rows == ["> ", ""]


def test_who_wants_no_colours_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")

    async def scene(chat: Chat) -> None:
        chat.screen.send("k", "**bold** and `code`")

    assert "m" not in plays(scene).terminal.written


def test_nobody_is_asked_where_nobody_types() -> None:
    async def play() -> Terminal:
        terminal = Terminal()
        screen = ChatScreen(-1, terminal.write, asks=False)
        screen.greet()
        screen.start()
        screen.send("k", "one")
        screen.send("l", "two")
        await asyncio.sleep(A_WHILE)
        return terminal

    assert run(play()).rows == ["  one", "", "  two", ""]
