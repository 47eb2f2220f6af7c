"""Sub-agents on the screen: who is at what, and what each has found."""

from __future__ import annotations

from tests.cli.terminal.emulator import Emulator
from tests.cli.terminal.test_view import START, Stage
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.view import View
from trunkline.core.events import (
    Event,
    Progress,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.usage import Usage
from trunkline.tools.spawn import SubAgentOutcome, _told

WORKING = "⠋ working · 0.0 s · Esc stops"
TASKS = [{"name": "find", "prompt": "..."}, {"name": "find more", "prompt": "..."}, {"prompt": "..."}]
SPAWN = ToolJudged("c1", "Spawn", "exec", {"tasks": TASKS}, "Spawn: find, find more, task 3", "allow")
BEGUN: list[Event] = [START, SPAWN, ToolStarted("c1", "Spawn")]


def call(number: int, who: str, command: str) -> list[Event]:
    """A sub-agent begins to run a command."""
    id = f"sub{number}.x"
    return [ToolJudged(id, "Bash", "exec", {"command": command}, f"{who}: Execute", "allow"), ToolStarted(id, "Bash")]


def result(*outcomes: SubAgentOutcome) -> ToolFinished:
    return ToolFinished("c1", "Spawn", "success", "\n\n---\n\n".join(map(_told, outcomes)))


def test_each_has_a_line_that_says_what_it_is_at() -> None:
    stage = Stage()
    shown = stage.show(*BEGUN, Progress("find: at work", "c1"))
    assert shown == [
        "● Spawn find, find more, task 3 · 0.0 s",
        "  · find · 0.0 s · at work",
        "  · find more · 0.0 s · thinking",
        "  · task 3 · 0.0 s · thinking",
        WORKING,
    ]
    # A name that another begins with is not taken for it.
    shown = stage.show(*call(2, "find more", "grep x"), *call(1, "find", "ls"), Progress("find: out", "sub1.x"))
    assert shown[1:3] == ["  · find · 1 call · 0.0 s · Bash ls", "  · find more · 1 call · 0.0 s · Bash grep x"]
    stage.now += 4
    stage.show(ToolFinished("sub2.x", "Bash", "success", "found"), Progress("find more: done after 1 rounds", "c1"))
    stage.now += 4
    asked = ToolRequested("sub1.y", "Bash", "exec", {"command": "rm x"}, "find: Execute: rm x")
    shown = stage.show(ToolFinished("sub1.x", "Bash", "error", "no"), asked)
    assert shown[1:3] == ["  · find · 1 call · 8 s · waits for you", "  ✓ find more · 1 call · 4 s"]
    assert len(shown) == 5


def test_when_they_are_done_the_beginning_of_each_answer_stays() -> None:
    stage = Stage()
    stage.show(*BEGUN, *call(1, "find", "ls"), ToolFinished("sub1.x", "Bash", "success", "a\nb"))
    stage.now += 2
    shown = stage.show(
        result(
            SubAgentOutcome("find", True, "Three of them.\nHere.", 1, Usage(10, 5), "a1"),
            SubAgentOutcome("find more", False, "It ended badly.", 0, Usage(), "a2"),
            SubAgentOutcome("task 3", True, "", 0, Usage(), "a3"),
        ),
        TurnEnded("success"),
    )
    assert shown == [
        "● Spawn find, find more, task 3 · 2 s",
        "  ✓ find · 1 call · 2 s · Three of them. …",
        "  ✗ find more · 2 s · It ended badly.",
        "  ✓ task 3 · 2 s",
    ]


def test_a_result_that_cannot_be_told_apart_is_shown_as_any_other() -> None:
    stage = Stage()
    shown = stage.show(*BEGUN, ToolFinished("c1", "Spawn", "success", "## find [OK]\nx"), TurnEnded("success"))
    assert shown == ["● Spawn find, find more, task 3", "  └ ## find [OK]", "    x"]


def test_what_they_change_is_shown_with_their_name() -> None:
    stage = Stage()
    edit = ToolJudged("sub1.e", "Edit", "edit", {"file_path": "a.py"}, "find: Edit a.py", "allow")
    done = ToolFinished("sub1.e", "Edit", "success", "@@ -1 +1 @@\n-a\n+b\n", "diff")
    shown = stage.show(*BEGUN, edit, ToolStarted("sub1.e", "Edit"), done)
    assert shown[:3] == ["● find: Edit a.py · +1 -1", "    1 - a", "    1 + b"]
    stopped = stage.show(
        ToolCancelled("sub1.z", "Stopped"), ToolCancelled("c1", "Stopped by user"), TurnEnded("cancelled")
    )
    assert stopped[-1] == "✗ Spawn find, find more, task 3 · 0.0 s · Stopped by user"


def test_a_terminal_that_cannot_move_shows_each_call_with_whose_it_is() -> None:
    terminal = Emulator(60, 24)
    screen = Screen(lambda text: terminal.feed(text.replace("\n", "\r\n")), lambda: (60, 24), moves=False)
    view = View(screen, Painter(lambda: 60, color_system=None), clock=lambda: 0.0)
    for event in [*BEGUN, *call(1, "find", "ls"), ToolFinished("sub1.x", "Bash", "success", "a")]:
        view.show(event)
    view.draw()
    assert terminal.history == ["● find: Bash ls", "  └ a"]
