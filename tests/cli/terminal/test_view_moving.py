"""What moves on the screen while an agent works: its plan, and the output of its commands."""

from __future__ import annotations

import pytest

from tests.cli.terminal.emulator import Emulator
from tests.cli.terminal.test_view import BASH, START, Stage
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.running import OUTPUT_LINES
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.todos import MOST_SHOWN
from trunkline.cli.terminal.view import View
from trunkline.core.events import (
    Event,
    Plan,
    PlanEntry,
    Progress,
    TextDelta,
    ToolFinished,
    ToolJudged,
    ToolStarted,
    TurnEnded,
)

WORKING = "⠋ working · 0.0 s · Esc stops"


def plan(done: int, *contents: str) -> Plan:
    """Some things to do, of which the first are done, and the next is being done."""
    known = contents or ("Look", "Write", "Test")
    marks = ["completed"] * done + ["in_progress"] + ["pending"] * len(known)
    return Plan(tuple(PlanEntry(content, status=mark) for content, mark in zip(known, marks, strict=False)))  # type: ignore[arg-type]


def test_a_plan_is_one_list_that_changes_in_place_and_stays_once_at_the_end() -> None:
    stage = Stage()
    assert stage.show(START, plan(0)) == [WORKING, "  ▸ Look", "  ○ Write", "  ○ Test"]
    assert stage.show(plan(1)) == [WORKING, "  ✓ Look", "  ▸ Write", "  ○ Test"]
    shown = stage.show(TextDelta("Half of it."), TurnEnded("success"))
    assert shown == ["Half of it.", "", "To-dos · 1 of 3 done", "  ✓ Look", "  ▸ Write", "  ○ Test"]


def test_a_plan_that_is_done_stands_above_the_answer() -> None:
    stage = Stage()
    shown = stage.show(START, plan(0), plan(3), plan(3), TextDelta("All done."), TurnEnded("success"))
    assert shown == ["To-dos · 3 of 3 done", "  ✓ Look", "  ✓ Write", "  ✓ Test", "", "All done."]


def test_a_plan_that_another_takes_the_place_of_stays_and_an_empty_one_shows_nothing() -> None:
    stage = Stage()
    first = ["To-dos · 1 of 3 done", "  ✓ Look", "  ▸ Write", "  ○ Test"]
    assert stage.show(START, plan(1), plan(0, "Rest")) == [*first, "", WORKING, "  ▸ Rest"]
    stage = Stage()
    assert stage.show(START, plan(1), Plan(), TurnEnded("success")) == first


def test_of_a_long_plan_the_part_is_live_that_is_being_worked_on() -> None:
    stage = Stage(rows=15)
    many = [f"Thing {number}" for number in range(1, 61)]
    assert stage.show(START, plan(20, *many)) == [
        WORKING,
        "  ✓ Thing 20",
        "  ▸ Thing 21",
        "  ○ Thing 22",
        "  ○ Thing 23",
        "  … 56 more, 19 of them done",
    ]
    assert len(stage.show(TurnEnded("success"))) == MOST_SHOWN + 1


def test_the_call_that_writes_the_plan_is_not_shown_beside_it_unless_it_failed() -> None:
    stage = Stage()
    call = ToolJudged("t1", "TodoWrite", "info", {"todos": []}, "", "allow")
    shown = stage.show(START, call, ToolStarted("t1", "TodoWrite"), plan(0))
    assert shown == [WORKING, "  ▸ Look", "  ○ Write", "  ○ Test"]
    assert stage.show(ToolFinished("t1", "TodoWrite", "success", "ok")) == shown
    assert "TodoWrite" in "".join(stage.show(ToolFinished("t2", "TodoWrite", "error", "`todos` is missing")))
    # Who tells no plan has nothing else to show.
    other = Stage()
    assert other.show(call, ToolStarted("t1", "TodoWrite"), ToolFinished("t1", "TodoWrite", "success", "ok"))


def test_a_terminal_that_cannot_move_gets_the_plan_once_and_then_what_is_new_of_it() -> None:
    terminal = Emulator(60, 24)
    screen = Screen(lambda text: terminal.feed(text.replace("\n", "\r\n")), lambda: (60, 24), moves=False)
    view = View(screen, Painter(lambda: 60, color_system=None), clock=lambda: 0.0)
    life = [Progress("Still working"), Progress("Still working")]
    shown: list[Event] = [START, plan(0), plan(1), plan(1), *life, plan(0, "Rest"), Plan(), TurnEnded("success")]
    for event in shown:
        view.show(event)
    view.draw()
    assert terminal.history == [
        "Plan:",
        "[>] Look",
        "[ ] Write",
        "[ ] Test",
        "[x] Look",
        "[>] Write",
        "Still working",
        "Plan:",
        "[>] Rest",
        "There is no plan any more.",
    ]


def test_the_last_lines_that_a_command_prints_move_below_it() -> None:
    stage = Stage()
    lines = [Progress(f"  line {number}\x1b[31m", "c1") for number in range(1, 9)]
    shown = stage.show(START, BASH, ToolStarted("c1", "Bash"), *lines, Progress("still running after 5 s", "c1"))
    assert shown == ["● Bash make · 0.0 s", *(f"  │   line {number}" for number in range(4, 9)), WORKING]
    assert len(shown) == OUTPUT_LINES + 2
    # When it is over, a look at the result takes their place.
    stage.now += 1
    assert stage.show(ToolFinished("c1", "Bash", "success", "all\n"), TurnEnded("success")) == [
        "● Bash make · 1 s",
        "  └ all",
    ]


def test_a_tool_that_is_no_command_says_beside_its_name_what_it_is_at() -> None:
    stage = Stage()
    shown = stage.show(START, ToolStarted("c1", "fetch"), Progress("one of two", "c1"), Progress("two of two", "c1"))
    assert shown == ["● fetch · 0.0 s · two of two", WORKING]


@pytest.mark.parametrize("rows", [6, 8, 12])
def test_a_small_screen_shows_less_of_each_and_nothing_twice(rows: int) -> None:
    stage = Stage(rows=rows)
    calls = [ToolJudged(f"c{n}", "Bash", "exec", {"command": f"run {n}"}, "", "allow") for n in range(2)]
    stage.show(START, plan(1), *calls, *(ToolStarted(call.call_id, "Bash") for call in calls))
    for number in range(9):
        stage.show(Progress(f"a{number}", "c0"), Progress(f"b{number}", "c1"), plan(number % 3))
    seen = stage.terminal.screen
    assert len(seen.split("\n")) < rows
    assert seen.count("run 1") <= 1
    assert "▸ " in seen
    shown = stage.show(*(ToolFinished(call.call_id, "Bash", "success", "x") for call in calls), TurnEnded("success"))
    assert shown == [
        "● Bash run 0", "  └ x", "● Bash run 1", "  └ x",
        "", "To-dos · 2 of 3 done", "  ✓ Look", "  ✓ Write", "  ▸ Test",
    ]  # fmt: skip
