"""What a conversation looks like, event by event, on a small terminal with a clock that we move."""

from __future__ import annotations

import pytest
from rich.text import Text

from tests.cli.terminal.emulator import Emulator
from trunkline.cli.terminal.calls_view import DIFF_LINES
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.thoughts import ThoughtView
from trunkline.cli.terminal.view import View
from trunkline.core.events import (
    Audio,
    Event,
    Extension,
    Failed,
    Notice,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolJudged,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)


class Stage:
    """A view in front of an emulated terminal."""

    def __init__(self, columns: int = 60, rows: int = 24) -> None:
        self.now = 100.0
        self.terminal = Emulator(columns, rows)
        screen = Screen(lambda text: self.terminal.feed(text.replace("\n", "\r\n")), lambda: (columns, rows))
        self.view = View(screen, Painter(lambda: columns, color_system=None), clock=lambda: self.now)

    def show(self, *events: Event) -> list[str]:
        for event in events:
            self.view.show(event)
        self.view.draw()
        return self.terminal.history


START = TurnStarted(UserMessage("hello"))
BASH = ToolJudged("c1", "Bash", "exec", {"command": "make"}, "Execute: make", "allow")


def test_a_spinner_tells_how_long_it_takes_and_what_goes_on() -> None:
    stage = Stage()
    assert stage.show(START)[-1].endswith("working · 0.0 s · Esc stops")
    stage.now += 75
    assert stage.show(Progress("retrying"))[-1].endswith("retrying · 1 m 15 s · Esc stops")
    assert stage.show(TextDelta("Done."), TurnEnded("success")) == ["Done."]


def test_a_tool_is_live_while_it_runs_and_then_its_result() -> None:
    stage = Stage()
    stage.show(START, BASH, ToolStarted("c1", "Bash"))
    stage.now += 3
    assert stage.show(Progress("building", "c1")) == [
        "● Bash make · 3 s",
        "  │ building",
        "⠹ working · 3 s · Esc stops",
    ]
    shown = stage.show(ToolFinished("c1", "Bash", "success", "one\ntwo\n"), TurnEnded("success"))
    assert shown == ["● Bash make · 3 s", "  └ one", "    two"]


def test_a_long_result_and_a_failed_one_say_what_is_hidden() -> None:
    stage = Stage()
    output = "".join(f"{number}\n" for number in range(20))
    shown = stage.show(BASH, ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "success", output))
    assert shown[-1] == "    … 16 more lines"
    shown = stage.show(ToolStarted("c2", "Bash"), ToolFinished("c2", "Bash", "error", output), TurnEnded("error"))
    assert shown[7:9] == ["  └ … 10 more lines", "    10"]


def test_a_change_is_shown_as_far_as_anybody_reads() -> None:
    stage = Stage(rows=100)
    diff = "@@ -0,0 +1,60 @@\n" + "".join(f"+line {number}\n" for number in range(60))
    shown = stage.show(ToolStarted("c1", "Write"), ToolFinished("c1", "Write", "success", diff, "diff"))
    assert shown[0] == "● Write · +60 -0"
    assert shown[1] == "     1 + line 0"
    assert shown[-1] == f"    … {60 - DIFF_LINES} more lines"
    assert len(shown) == DIFF_LINES + 2


def test_a_tool_that_was_stopped_says_so() -> None:
    stage = Stage()
    shown = stage.show(BASH, ToolStarted("c1", "Bash"), ToolCancelled("c1", "Stopped by user"), TurnEnded("cancelled"))
    assert shown == ["✗ Bash make · 0.0 s · Stopped by user"]


def test_what_ran_for_two_seconds_did_so_although_its_start_was_seen_late() -> None:
    stage = Stage()
    stage.show(BASH, ToolStarted("c1", "Bash"))
    stage.now += 1.97
    assert stage.show(ToolFinished("c1", "Bash", "success", "x"))[0] == "● Bash make · 2 s"


def test_thinking_is_folded_to_a_line_when_it_is_over_unless_all_of_it_is_wanted() -> None:
    stage = Stage()
    thought = "First this.\nThen that.\nAnd so on.\nAnd on."
    live = stage.show(ThinkingDelta(thought))
    assert live == ["Then that.", "And so on.", "And on."]
    stage.now += 4
    assert stage.show(TextDelta("Now."), TurnEnded("success")) == ["∴ thought for 4 s: First this. …", "", "Now."]
    # How long nothing took is not worth saying.
    assert Stage().show(ThinkingDelta(thought), TurnEnded("success")) == ["∴ First this. …"]
    stage = Stage()
    stage.view.whole_thoughts = True
    assert stage.show(ThinkingDelta(thought), TurnEnded("success"))[-1] == "And on."


def test_what_is_said_around_tools_stands_apart() -> None:
    stage = Stage()
    shown = stage.show(
        START,
        TextDelta("Before."),
        BASH,
        ToolStarted("c1", "Bash"),
        ToolFinished("c1", "Bash", "success", "x"),
        ToolStarted("c2", "Read"),
        ToolFinished("c2", "Read", "success", "x\n"),
        TextDelta("After.\n\nMore."),
        TurnEnded("success"),
    )
    assert shown == ["Before.", "", "● Bash make", "  └ x", "● Read", "  └ 1 line", "", "After.", "", "More."]


def test_everything_else_is_a_line_of_its_own() -> None:
    stage = Stage()
    shown = stage.show(
        Notice("For display only."),
        Failed("provider", "Rate limit exceeded", retryable=True),
        Extension("commands", {"commands": []}),
        Extension("demo", {"any": "thing"}),
        Extension("node_event", {"node": "tools", "type": "tool_call", "pairs": {"tool_name": "open"}}),
        Audio(b"1234", 16000),
        TurnEnded("error"),
    )
    assert shown == [
        "For display only.",
        "✗ Rate limit exceeded (worth another try)",
        "demo: {'any': 'thing'}",
        "[tools: tool_call] tool_name=open",
    ]
    assert stage.view.sound_seconds == 2 / 16000


@pytest.mark.parametrize(
    ("tools", "told"), [(("add", "sub"), "add, sub"), ((), "no tools"), (tuple(map(str, range(41))), "41 tools")]
)
def test_a_server_that_is_connected_is_told_in_words(tools: tuple[str, ...], told: str) -> None:
    assert Stage().show(Extension("mcp_ready", {"name": "web", "tools": tools})) == [
        f"MCP server `web` is connected: {told}."
    ]


def test_the_way_through_a_graph_is_shown_to_whoever_wants_it() -> None:
    stage = Stage()
    way = Extension("turn_diagnostics", {"nodes": [{"name": "guard", "exit": "triggered"}], "wall_ms": 1.0})
    assert stage.show(way) == []
    stage.view.traces = True
    assert stage.show(way) == ["(guard triggered; 1 ms)"]


def test_an_address_in_a_notice_is_left_for_the_terminal_to_break() -> None:
    written: list[str] = []
    screen = Screen(written.append, lambda: (20, 24))
    address = f"https://auth.example.org/{'a' * 50}"
    View(screen, Painter(lambda: 20, color_system=None)).note(f"Open this now, please:\n{address}\nThat is all.")
    screen.frame()
    assert f"\n{address}\n" in "".join(written).replace("\r", "")


def test_a_line_to_copy_is_not_broken_and_others_are_cut() -> None:
    stage = Stage(columns=20)
    stage.view.unbroken(Text("a" * 50))
    assert stage.show() == ["a" * 20, "a" * 20, "a" * 10]
    assert stage.view.line("b" * 50) == "b" * 18 + "…"


def test_a_change_is_shown_although_one_of_the_same_id_was_shown_in_another_turn() -> None:
    stage = Stage()
    stage.show(START)
    request = ToolRequested("c1", "Edit", "edit", {"file_path": "a"})
    stage.view.calls.put_asked(request, ["? Edit a"], is_change=True)
    changed = ToolFinished("c1", "Edit", "success", "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n", "diff")
    assert not any("two" in line for line in stage.show(changed))
    assert any("two" in line for line in stage.show(TurnEnded("success"), START, changed))


def test_of_a_long_thought_only_the_end_is_painted() -> None:
    thought = "".join(f"{number} is a number, and the next one is larger. " for number in range(5000))
    stage = Stage()
    live = stage.show(START, ThinkingDelta(thought))
    shown = " ".join(live[-5:-2])
    assert shown.endswith("4999 is a number, and the next one is larger.")
    assert len(shown) > 2 * 50
    view = ThoughtView(0.0)
    view.feed(thought)
    end = view.end(180)
    assert end is not None
    assert len(end.plain) < 3000
    assert thought.strip().endswith(end.plain)
