"""`trunkline chat` with somebody at the keyboard, on a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cli.terminal.chat_terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, PROMPT, SHIFT_TAB, ChatTerminal
from trunkline.agents.coder.extending import memory
from trunkline.base import paths
from trunkline.cli import shelf
from trunkline.cli.chat_session import ChatOptions, TerminalSession
from trunkline.cli.talk_voice import TerminalVoice
from trunkline.cli.terminal import commands
from trunkline.cli.terminal.conversation import TerminalConversation, on_terminal
from trunkline.core.events import Envelope, ToolCancelled, TurnEnded, UserMessage
from trunkline.core.session import Session

pytestmark = pytest.mark.process

SCRIPT = r"""
name: scenes
turns:
  - when: "^markdown"
    steps:
      - thinking: ["Two lines of\n", "thinking."]
      - text: ["# A plan\n\nSome **bold** ", "words.\n\n", "| file | lines |\n|---|--:|\n| `a.py` | 12 |\n\n"]
      - text: ["```python\nprint('code')\n", "```\n\n", "- one\n- two\n"]
    usage: {input_tokens: 12400, output_tokens: 380, cache_read_tokens: 11000}
  - when: "^edit"
    steps:
      - tool: {name: Read, args: {file_path: hello.py}, description: "Read hello.py", output: "     1\tprint('helo')\n"}
      - tool:
          name: Edit
          args: {file_path: hello.py, old_string: helo, new_string: hello}
          description: "Edit hello.py"
          output: "--- a/hello.py\n+++ b/hello.py\n@@ -1 +1 @@\n-print('helo')\n+print('hello')\n"
          output_type: diff
          approved: [{text: "It says hello now."}]
          denied: [{text: "The typo stays: {{reason}}."}]
  - when: "^slowly edit"
    steps:
      - wait: 3
      - tool: {name: Edit, args: {file_path: hello.py, old_string: a, new_string: b}, output: "Edited hello.py"}
  - when: "^slowly answer"
    steps:
      - wait: 4
      - text: "At last."
  - when: "^both edits"
    steps:
      - tools:
          - {name: Write, args: {file_path: a.txt, content: a}, output: "a is written"}
          - {name: Write, args: {file_path: b.txt, content: b}, output: "b is written"}
      - text: "Both are done."
  - when: "^write much"
    steps:
      - tool: {name: Write, args: {file_path: much.txt, content: "MUCH"}, output: "ok"}
      - text: "Much is written."
  - when: "^long command"
    steps:
      - tool: {name: Bash, args: {command: "rm -rf evil; : FILLER; ls -la"}, output: "ok"}
  - when: "^git twice"
    steps:
      - tools:
          - {name: Bash, args: {command: "git status --short"}, output: "short"}
          - {name: Bash, args: {command: "git status --short src"}, output: "long"}
          - {name: Bash, args: {command: "git status; rm -rf x"}, output: "gone"}
      - text: "Git was asked."
  - when: "^two"
    steps:
      - tools:
          - {name: Bash, args: {command: "first command"}, output: "Exit code: 0\nSTDOUT:\nfirst result\n\nSTDERR:\n"}
          - {name: Bash, args: {command: "second command"}, output: "Exit code: 0\nSTDOUT:\nsecond result\n\nSTDERR:\n"}
      - text: "Both are done."
  - when: "^hang"
    steps:
      - text: "Once upon a time. "
      - hang: true
  - when: "^long"
    steps:
      - text: "```text\n"
      - text: [LINES]
      - text: "```\n\nThe end of it.\n"
  - when: "^evil"
    steps:
      - text: "before \x1b[2J\x1b[H after"
  - steps:
      - text: "You said: {{input}}{{files}}"
"""


@pytest.fixture
def chat_arguments(tmp_path: Path) -> list[str]:
    """A workspace with a file, and an agent that plays the scenes above."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "hello.py").write_text("print('helo')\n")
    lines = ", ".join(f'"line {number}\\n"' for number in range(1, 61))
    script = tmp_path / "scenes.yaml"
    much = "".join(f"line {n}\\n" for n in range(300))
    filler = "harmless words " * 100
    script.write_text(SCRIPT.replace("LINES", lines).replace("MUCH", much).replace("FILLER", filler))
    return ["scripted", "--script", str(script), "--workspace", str(workspace)]


def last_session() -> list[object]:
    """The events of the session that was used last."""
    found = shelf.read(shelf.sessions()[0].id)
    return [record.event for record in found.records if isinstance(record, Envelope)]


def test_an_answer_is_shown_as_markdown_with_its_tokens(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("markdown")
        chat.sees("12.4k in · 380 out · 11k cached")
        chat.wait_for_prompt()
        screen = chat.terminal.screen
        assert "**" not in screen
        assert "```" not in screen
        assert "∴ Two lines of …" in screen
        assert " a.py     12" in screen
        assert "  print('code')" in screen
        assert " • two" in screen
        # The code is highlighted: its words have colours of their own.
        assert re.search(r"\x1b\[[0-9;]*mprint\x1b", chat.raw)
        chat.type(CTRL_D)
        assert chat.leaves() == 0
        # In one piece, however narrow the terminal is: it is there to be copied.
        assert re.search(
            r"Go on with: \S*trunkline chat scripted --script \S+ --workspace \S+ --resume \S+\r\n", chat.raw
        )


def test_one_key_allows_a_call_whose_change_is_shown_in_colour(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("edit it")
        chat.sees("? Edit hello.py", "1 - print('helo')", "1 + print('hello')", "Allow?", "always: every `edit` tool")
        assert re.search(r"\x1b\[32mprint\('hello'\)", chat.raw)
        assert re.search(r"\x1b\[31mprint\('helo'\)", chat.raw)
        chat.type("y")
        chat.sees("✓ allowed", "● Edit hello.py · +1 -1", "It says hello now.")
        chat.wait_for_prompt()
        # The change was seen before it was allowed, and is not shown again; nor is the question.
        assert chat.terminal.screen.count("+ print('hello')") == 1
        assert "Allow?" not in chat.terminal.screen
        assert "● Read hello.py" in chat.terminal.screen


def test_a_no_takes_a_reason_that_the_agent_hears(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("edit it")
        chat.sees("Allow?")
        chat.type("n")
        chat.sees("Why not?")
        chat.type("not to\x7f\x7ftoday" + ENTER)
        chat.sees("✗ refused: not today", "The typo stays: not today.")


def test_what_was_typed_before_a_question_stays_typed(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("slowly edit")
        chat.sees("Esc stops")
        chat.type("yes, and then")
        chat.sees("Allow?", f"{PROMPT} yes, and then")
        chat.type(CTRL_C)
        chat.sees("stopped")
        assert "allowed" not in chat.terminal.screen


def test_always_releases_the_other_calls_that_wait(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("both edits")
        chat.sees("? Write a.txt", "(1 more wait)", "every `edit` tool")
        chat.type("a")
        chat.sees(
            "from now on: every `edit` tool (`Edit`) (see /grants)", "a is written", "b is written", "Both are done."
        )
        chat.say("both edits again")
        chat.until(lambda: chat.terminal.screen.count("Both are done.") == 2)


def test_a_grant_for_a_command_is_for_its_first_words_and_can_be_taken_back(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, rows=60) as chat:
        chat.say("git twice")
        chat.sees("? Bash git status --short", "`Bash(git status --short:./**)`", "(2 more wait)")
        chat.type("a")
        # The second is covered; the third could hold anything.
        chat.sees("? Bash git status; rm -rf x", "`Bash(git status; rm -rf x)`")
        chat.type("n" + ENTER)
        chat.say("/grants")
        chat.sees("Read, Grep, Glob", "`Bash(git status --short:./**)`", "/grants revoke NUMBER")
        chat.say("/grants revoke 2")
        chat.sees("There is no grant 2.")
        chat.say("/grants revoke 1")
        chat.sees("Taken back: `Bash(git status --short:./**)`.")
        chat.say("/grants")
        chat.sees("Nothing was granted in this session.")
        chat.say("git twice")
        chat.until(lambda: chat.terminal.screen.count("? Bash git status --short") == 2)


def test_on_a_screen_that_is_too_small_for_it_both_ends_of_what_is_asked_about_are_seen(
    chat_arguments: list[str],
) -> None:
    with ChatTerminal(*chat_arguments, rows=12) as chat:
        chat.say("write much")
        chat.sees("? Write much.txt", "line 299", "characters are not shown ...]", "Allow?", "v  view all")
        chat.type("v")
        chat.until(lambda: "line 150" in "\n".join(chat.terminal.history) and "view all" not in chat.last_line)
        chat.type("y")
        chat.sees("Much is written.")


def test_a_command_cannot_push_its_beginning_out_of_sight(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, rows=24) as chat:
        chat.say("long command")
        chat.sees("rm -rf evil; : harmless", "; ls -la", "rows are not shown ...]", "Allow?", "v  view all")


def test_several_calls_are_asked_about_one_after_the_other(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("two")
        chat.sees("? Bash first command")
        assert "second command" not in chat.terminal.screen
        chat.type("y")
        chat.sees("? Bash second command")
        chat.type("y")
        chat.sees("second result", "Both are done.")


@pytest.mark.parametrize("key", [CTRL_C, ESCAPE])
def test_a_question_can_be_answered_by_stopping_the_turn(chat_arguments: list[str], key: str) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("edit it")
        chat.sees("Allow?")
        chat.type(key)
        chat.sees("stopped")
        chat.say("still there")
        chat.sees("You said: still there")
    assert any(isinstance(event, ToolCancelled) for event in last_session())


@pytest.mark.parametrize("key", [CTRL_C, ESCAPE])
def test_a_key_stops_the_answer_and_not_the_program(chat_arguments: list[str], key: str) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("hang on")
        chat.sees("Once upon a time.", "Esc stops")
        chat.type(key)
        chat.sees("stopped")
        chat.say("still there")
        chat.sees("You said: still there")
        chat.wait_for_prompt()
        chat.type(CTRL_D)
        assert chat.leaves() == 0
    ends = [event.outcome for event in last_session() if isinstance(event, TurnEnded)]
    assert ends == ["cancelled", "success"]


def test_ctrl_c_clears_the_line_and_twice_at_an_empty_prompt_leaves(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.wait_for_prompt()
        chat.type("half a thought")
        chat.sees("half a thought")
        chat.type(CTRL_C)
        chat.until(lambda: "half a thought" not in chat.terminal.screen)
        chat.type(CTRL_C)
        chat.sees("Ctrl-C again leaves")
        chat.type(CTRL_C)
        assert chat.leaves() == 0
    # Nothing was said: nothing is kept, and there is nothing to come back to.
    assert "--resume" not in chat.raw
    assert shelf.sessions() == []


def test_what_is_sent_after_ctrl_c_stays_without_the_hint(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.wait_for_prompt()
        chat.type(CTRL_C)
        chat.sees("Ctrl-C again leaves")
        chat.type("I stay" + ENTER)
        chat.sees("You said: I stay")
        assert "Ctrl-C again leaves" not in chat.terminal.screen


def test_what_is_typed_during_an_answer_is_sent_after_it_and_the_rest_stays_typed(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("slowly answer")
        chat.sees("Esc stops")
        chat.type("my next words" + ENTER + "and the rest")
        chat.sees("next: my next words", f"{PROMPT} and the rest")
        chat.sees("At last.", "You said: my next words")
        chat.until(lambda: chat.last_line == f"{PROMPT} and the rest")


def test_what_was_typed_before_a_stop_is_neither_sent_nor_lost(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("hang on")
        chat.sees("Once upon a time.")
        chat.type("my next words")
        chat.sees("my next words")
        chat.type(CTRL_C)
        # A stop sends nothing unasked: it is all at the prompt.
        chat.sees("stopped")
        chat.until(lambda: chat.last_line == f"{PROMPT} my next words")
        chat.type(ENTER)
        chat.sees("You said: my next words")


def test_a_session_is_resumed_with_its_last_turn_in_sight(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("remember this")
        chat.sees("You said: remember this")
        chat.wait_for_prompt()
        chat.type(CTRL_D)
        assert chat.leaves() == 0
    with ChatTerminal(*chat_arguments, "--resume") as chat:
        chat.sees("1 turn so far", f"{PROMPT} remember this", "You said: remember this")
        chat.say("and this")
        chat.sees("You said: and this")
        chat.say("/clear")
        chat.sees("is kept", "A new session.")
        chat.say("/sessions")
        chat.sees("remember this")
        chat.say("/resume 2")
        chat.sees("2 turns so far")


def test_help_lists_the_commands_of_the_coding_agent_and_a_slip_leads_there(tmp_path: Path) -> None:
    with ChatTerminal("--provider", "mock", "--workspace", str(tmp_path), rows=70) as chat:
        chat.say("/help")
        chat.sees("/resume [ID]", "/context", "how full the model's window is")
        chat.say("/contxt")
        chat.sees("There is no command `/contxt`. Did you mean `/context`?", "/help lists those")


def test_a_line_with_a_number_sign_is_remembered_and_the_memory_opens_in_the_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho '- by hand: use spaces' >> \"$1\"\n")
    editor.chmod(0o755)
    with ChatTerminal("--provider", "mock", "--workspace", str(tmp_path), rows=40, EDITOR=str(editor)) as chat:
        chat.say("# we use tabs")
        chat.sees("Remembered:", "we use tabs")
        chat.say("/memory")
        chat.sees("MEMORY.md", "we use tabs", "by hand: use spaces")
        chat.say("#12 is a number")
        chat.sees("#12 is a number")
    kept = Path(memory.file(str(tmp_path))).read_text()
    assert re.fullmatch(r"- \d{4}-\d\d-\d\d: we use tabs\n- by hand: use spaces\n", kept)


def test_skills_and_commands_of_ones_own_are_listed_completed_and_called(tmp_path: Path) -> None:
    commands = tmp_path / ".trunkline/commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("---\ndescription: greets somebody\n---\nSay hello to $ARGUMENTS.\n")
    with ChatTerminal("--provider", "mock", "--workspace", str(tmp_path), rows=50) as chat:
        chat.wait_for_prompt()
        chat.type("/gre")
        chat.sees("/greet", "greets somebody")
        chat.type(f"et Ada{ENTER}")
        chat.sees("Say hello to Ada.")
        chat.say("/help")
        chat.sees("/greet", "greets somebody", "/output-style")


def test_commands_are_ours_and_unknown_ones_the_agents(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, rows=40) as chat:
        chat.say("/help")
        chat.sees("/resume [ID]", "attaches a file")
        chat.say("/mode nonsense")
        chat.sees("There is no approval mode `nonsense`")
        chat.say("/mode yolo")
        chat.sees("The approval mode is `yolo` now: the agent acts unasked.", f"yolo (acts unasked) {PROMPT}")
        # In red.
        assert "\x1b[0;31;1myolo (acts unasked)" in chat.raw
        chat.say("/mode")
        chat.sees("The approval mode is `yolo`; there are default, auto_edit, plan, yolo.")
        chat.say("/thinking maybe")
        chat.sees("`/thinking maybe` was not understood.")
        chat.say("/thinking")
        chat.sees("Thinking is shown in full.")
        chat.say("/model")
        chat.sees("does not say what its model is")
        chat.say("/model other")
        chat.sees("The model is `other` now.")
        chat.say("/usage")
        chat.sees("In total (0 turns, commands included)")
        chat.say("/resume nothing-like-it")
        chat.sees("Session 'nothing-like-it' not found")
        chat.say("/compact")
        chat.sees("You said: /compact")
        chat.say("/exit")
        assert chat.leaves() == 0


def test_the_mode_changes_what_is_asked(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.wait_for_prompt()
        chat.type(SHIFT_TAB)
        chat.sees(f"auto_edit {PROMPT}")
        chat.type("edit it" + ENTER)
        chat.sees("● Edit hello.py · +1 -1", "1 + print('hello')", "It says hello now.")
        assert "Allow?" not in chat.raw


def test_files_are_completed_and_attached(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.wait_for_prompt()
        chat.type("look at @hel")
        chat.sees("hello.py")
        chat.type("\t")
        chat.sees("look at @hello.py")
        # The first one takes the completion, the second one sends.
        chat.type(ENTER)
        chat.type(ENTER)
        chat.sees("You said: look at @hello.pyhello.py")


def test_a_backslash_at_the_end_begins_another_line(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.wait_for_prompt()
        chat.type("one\\" + ENTER)
        chat.until(lambda: chat.last_line.strip().startswith("…"))
        chat.type("two" + ENTER)
        chat.sees("You said: one\ntwo")


def test_a_long_answer_scrolls_into_the_history_whole_and_once(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, columns=60, rows=15) as chat:
        chat.say("long story")
        chat.sees("The end of it.")
        chat.wait_for_prompt()
        told = [line.strip() for line in chat.terminal.history if re.fullmatch(r"\s*line \d+", line)]
        assert told == [f"line {number}" for number in range(1, 61)]


def test_a_narrow_terminal_without_colours_works(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, columns=40, NO_COLOR="1") as chat:
        chat.say("edit it")
        chat.sees("Allow?", "Esc", "stop")
        chat.type("y")
        chat.sees("It says hello now.")
        chat.wait_for_prompt()
        assert not re.search(r"\x1b\[(?:[0-9;]*;)?[34][0-7](?:;[0-9;]*)?m", chat.raw)


def test_a_dumb_terminal_gets_nothing_that_it_would_have_to_obey(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, TERM="dumb") as chat:
        chat.say("edit it")
        chat.sees("Allow?")
        chat.type("n")
        chat.type("no" + ENTER)
        chat.sees("refused: no", "The typo stays: no.")
        chat.say("/exit")
        assert chat.leaves() == 0
    assert not re.search(r"\x1b\[\d*[ABCDHJK]", chat.raw)


def test_a_terminal_that_knows_only_ascii_is_no_reason_to_crash(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments, PYTHONIOENCODING="ascii") as chat:
        chat.until(lambda: chat.last_line == ">")
        chat.type("markdown" + ENTER)
        chat.sees(" * two", "12.4k in - 380 out")


def test_control_characters_of_an_answer_are_shown_and_not_obeyed(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("evil")
        chat.sees("before", "after")
        assert "\x1b[2J" not in chat.raw


def test_a_signal_ends_the_program_and_keeps_the_session(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("hang on")
        chat.sees("Once upon a time.")
        chat.process.send_signal(signal.SIGTERM)
        assert chat.leaves() == 128 + signal.SIGTERM
    assert " --resume " in chat.raw
    assert isinstance(last_session()[-1], TurnEnded)
    # The terminal is as it was: the cursor is visible, and pasting is nobody's special case.
    assert chat.raw.rindex("\x1b[?25h") > chat.raw.rindex("\x1b[?25l")
    assert chat.raw.rindex("\x1b[?2004l") > chat.raw.rindex("\x1b[?2004h")


def test_what_people_type_is_kept_for_them_alone(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("remember me")
        chat.sees("You said: remember me")
        chat.wait_for_prompt()
        chat.type("\x1b[A")
        chat.sees(f"{PROMPT} remember me")
    kept = os.path.join(paths.state_dir(), "chat_history")
    assert os.stat(kept).st_mode & 0o077 == 0


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    with ChatTerminal("nobody") as chat:
        assert chat.leaves() == 1
        assert "There is no agent `nobody`" in chat.terminal.screen


BLOCKING_AGENT = """
import time
from trunkline import Capabilities, Notice, TextDelta, TurnEnded


class Conversation:
    session_id = None

    def turn(self, message):
        return self.answer(message)

    async def answer(self, message):
        yield TextDelta("Holding everything up.\\n\\n.")
        if message.text == "block":
            open(__file__.replace("blocking_agent.py", "blocked"), "w").close()
            time.sleep(600)
        yield TurnEnded("success")

    async def decide(self, call_id, decision): ...
    async def configure(self, change): ...
    async def cancel(self): ...
    async def close(self): ...


class Agent:
    name = "blocking"
    capabilities = Capabilities()

    async def open(self, request):
        request.announce(Notice("News from between the turns."))
        return Conversation()
"""


@pytest.fixture
def blocking_agent(tmp_path: Path) -> Path:
    (tmp_path / "blocking_agent.py").write_text(BLOCKING_AGENT)
    return tmp_path


def test_ctrl_c_again_and_again_gets_through_to_a_program_that_hangs(blocking_agent: Path) -> None:
    with ChatTerminal("blocking_agent:Agent", PYTHONPATH=str(blocking_agent)) as chat:
        chat.say("block")
        chat.until_true((blocking_agent / "blocked").exists)

        def insist() -> bool:
            chat.type(CTRL_C)
            return chat.process.poll() is not None

        # Not all at once: what the system has not delivered yet, it does not count twice.
        chat.until_true(insist)
        assert chat.leaves() == 130
    assert chat.raw.rindex("\x1b[?25h") > chat.raw.rindex("\x1b[?25l")


def test_what_happens_between_turns_is_shown(blocking_agent: Path) -> None:
    with ChatTerminal("blocking_agent:Agent", PYTHONPATH=str(blocking_agent)) as chat:
        chat.sees("News from between the turns.")
        chat.say("hello")
        chat.sees("Holding everything up.")


def test_ctrl_z_gives_the_terminal_back_until_somebody_wants_to_go_on(chat_arguments: list[str]) -> None:
    with ChatTerminal(*chat_arguments) as chat:
        chat.say("hang on")
        chat.sees("Once upon a time.", "Esc stops")
        chat.type("\x1a")
        chat.until_true(chat.is_stopped)
        chat.until(lambda: chat.raw.rindex("\x1b[?25h") > chat.raw.rindex("\x1b[?25l"))
        assert "Esc stops" not in chat.terminal.screen
        chat.process.send_signal(signal.SIGCONT)
        chat.sees("Once upon a time.", "Esc stops")
        chat.type(ESCAPE)
        chat.sees("stopped")


def test_escapes_in_a_directorys_name_are_not_printed() -> None:
    # In a place with a short name: else the line might be broken in the middle of it.
    with TemporaryDirectory() as place, ChatTerminal("echo", "--workspace", _evil(place), columns=300) as chat:
        chat.wait_for_prompt()
        assert "\x1b]0;pwned" not in chat.raw
        assert "\x1b[31mred" not in chat.raw
        assert r"evil\x1b]0;pwned\x07\x1b[31mred\nline" in chat.raw


def _evil(place: str) -> str:
    evil = Path(place) / "evil\x1b]0;pwned\x07\x1b[31mred\nline"
    evil.mkdir()
    return str(evil)


async def test_what_is_said_aloud_is_no_command_and_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = iter([("/mode yolo", True), ("read @/etc/passwd", True), ("/exit", True)])
    answered: list[UserMessage] = []

    async def following(self: TerminalConversation) -> tuple[str, bool]:
        try:
            return next(heard)
        except StopIteration:
            raise EOFError from None

    async def answer(self: TerminalConversation, message: UserMessage) -> None:
        answered.append(message)

    monkeypatch.setattr(TerminalConversation, "_next", following)
    monkeypatch.setattr(TerminalConversation, "_answer", answer)
    monkeypatch.setattr(TerminalConversation, "_show_news", lambda self: None)
    chat = TerminalConversation.__new__(TerminalConversation)
    chat._options, chat._leaving, chat.workspace = ChatOptions(quiet=True), False, "/"
    chat._talk = TerminalSession.__new__(TerminalSession)
    chat._talk._remote = None
    chat._talk.session = cast(Session, SimpleNamespace(turn=0))
    _, chat.view = on_terminal()
    await chat.run()
    assert answered == [UserMessage("/mode yolo"), UserMessage("read @/etc/passwd"), UserMessage("/exit")]


async def test_what_was_said_is_answered_before_what_was_typed_meanwhile() -> None:
    """The server answers it already: whatever was typed would stop that."""
    chat = TerminalConversation.__new__(TerminalConversation)
    chat._voice, chat._queue = TerminalVoice(), deque(["typed"])
    _, chat.view = on_terminal()
    chat._voice.spoken("said")
    assert [await chat._next(), await chat._next()] == [("said", True), ("typed", False)]


async def test_who_is_to_end_ends_also_when_a_command_ends_in_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    talk: Any = SimpleNamespace(view=SimpleNamespace(note=notes.append), _screen=SimpleNamespace(frame=lambda: None))
    ours = asyncio.ensure_future(TerminalConversation._command(talk, "/status"))

    async def end_both(talk: object, text: str) -> str:
        ours.cancel()
        return ""

    monkeypatch.setattr(commands, "run", end_both)
    await asyncio.wait({ours})
    assert ours.cancelled()
    assert notes == []
