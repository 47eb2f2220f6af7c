"""Plans in the terminal: those that a person agrees to, and those that an agent ticks off while it works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal.chat_terminal import ENTER, PROMPT, SHIFT_TAB, ChatTerminal

pytestmark = pytest.mark.process

SCRIPT = r"""
name: planner
turns:
  - when: "^plan"
    steps:
      - tool:
          name: ExitPlanMode
          category: info
          args: {plan: "# Move it\n\n1. Read **all** of it\n2. Split it\n\nDETAILS\n- the last one\u200b\n"}
          output: "The plan was approved."
          approved: [{text: "Off we go."}]
          denied: [{text: "Once more: {{reason}}."}]
  - when: "^work"
    steps:
      - plan: [{content: "Look", status: in_progress}, "Write"]
      - tool: {name: Read, args: {file_path: a.txt}, output: "x\n"}
      - plan: [{content: "Look", status: completed}, {content: "Write", status: in_progress}]
      - tool: {name: Write, args: {file_path: a.txt, content: a}, output: "ok"}
      - text: "It is done."
      - hang: true
  - steps:
      - text: "You said: {{input}}"
"""


@pytest.fixture
def planner(tmp_path: Path) -> list[str]:
    script = tmp_path / "planner.yaml"
    script.write_text(SCRIPT.replace("DETAILS", "\\n".join(f"- detail {number}" for number in range(60))))
    return ["scripted", "--script", str(script), "--workspace", str(tmp_path)]


def test_a_plan_is_read_whole_and_agreed_to_and_never_for_always(planner: list[str]) -> None:
    with ChatTerminal(*planner, "--mode", "plan", rows=30) as chat:
        chat.say("plan it")
        chat.sees(
            "? Plan", "  Move it", " 1. Read all of it", "rows are not shown", "Go on with this plan?", "view all"
        )
        assert "always" not in chat.terminal.screen
        chat.type("a")
        chat.type("v")
        chat.until(lambda: "detail 30" in "\n".join(chat.terminal.history) and "view all" not in chat.last_line)
        # What nobody would see in it is shown.
        chat.sees("the last one<U+200B>", "1 character that would not be seen", "Go on with this plan?")
        chat.type("y")
        chat.sees("✓ allowed", "Off we go.")
        assert "The plan was approved." not in chat.terminal.screen
        # Back in the mode before it.
        chat.until(lambda: chat.last_line == PROMPT)


def test_a_plan_that_is_refused_goes_back_with_what_should_be_different(planner: list[str]) -> None:
    with ChatTerminal(*planner, rows=60) as chat:
        chat.wait_for_prompt()
        chat.type(SHIFT_TAB * 2)
        chat.until(lambda: chat.last_line == f"plan {PROMPT}")
        chat.type("plan it" + ENTER)
        chat.sees("Go on with this plan?")
        chat.type("n")
        chat.sees("What should be different?")
        chat.type("smaller steps" + ENTER)
        chat.sees("✗ refused: smaller steps", "Once more: smaller steps.")
        chat.until(lambda: chat.last_line == f"plan {PROMPT}")


def test_slash_plan_changes_the_mode_and_sends_what_stands_behind_it(planner: list[str]) -> None:
    with ChatTerminal(*planner, rows=60) as chat:
        chat.say("/plan")
        chat.sees("changes nothing", f"plan {PROMPT}")
        chat.say("/mode default")
        chat.say("/plan the new parser")
        chat.sees("You said: the new parser", f"plan {PROMPT}")


def test_a_list_of_things_to_do_moves_below_the_answer_and_stays_once(planner: list[str]) -> None:
    with ChatTerminal(*planner) as chat:
        chat.say("work")
        chat.sees("? Write a.txt", "Allow?")
        chat.type("y")
        chat.sees("It is done.", "  ✓ Look", "  ▸ Write", "Esc stops")
        chat.type("\x1b")
        chat.sees("To-dos · 1 of 2 done", "stopped")
        chat.wait_for_prompt()
        assert "\n".join(chat.terminal.history).count("Look") == 1


def test_on_a_dumb_terminal_the_list_is_lines_that_are_not_repeated(planner: list[str]) -> None:
    with ChatTerminal(*planner, TERM="dumb") as chat:
        chat.say("work")
        chat.sees("Plan:", "[>] Look", "[ ] Write", "Allow?")
        chat.type("y")
        chat.sees("[x] Look", "[>] Write", "● Write a.txt")
        assert "\n".join(chat.terminal.history).count("Plan:") == 1
