"""Tool calls in a few words, their changes in colour, and what is shown before they are allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.cli.terminal import diffs, words
from trunkline.cli.terminal.approval import Question, told
from trunkline.cli.terminal.calls import Caption, caption, clean, glance, one_line
from trunkline.cli.terminal.keys import EditedLine, Key
from trunkline.cli.terminal.paint import Painter
from trunkline.cli.terminal.preview import preview
from trunkline.cli.terminal.screen import Screen
from trunkline.cli.terminal.view import View
from trunkline.core.agent import Approve, Deny
from trunkline.core.change import change
from trunkline.core.events import ToolFinished, ToolRequested
from trunkline.core.grants import Grant
from trunkline.core.preview import SCREEN, WHOLE, Preview, PreviewSize
from trunkline.core.usage import Usage

SHOWN = Preview("Edit")


def result(output: str, **more: Any) -> ToolFinished:
    return ToolFinished("c1", more.pop("name", "Bash"), more.pop("status", "success"), output, **more)


def request(name: str = "Edit", outside: bool = False, **args: Any) -> ToolRequested:
    return ToolRequested("c1", name, "edit", args, f"{name} something", outside)


@pytest.mark.parametrize(
    ("args", "description", "expected"),
    [
        ({"command": "ls -l"}, "Execute: ls -l", Caption("Tool", "ls -l")),
        ({"command": "ls\nrm x"}, "", Caption("Tool", "ls …")),
        ({"file_path": "a.py", "limit": 3}, "Read a.py", Caption("Tool", "a.py")),
        ({"depth": 3}, "Look around", Caption("Tool", "Look around")),
        ({"depth": 3, "q": [1]}, "", Caption("Tool", "depth=3, q=[1]")),
        ({}, "Tool", Caption("Tool", "")),
    ],
)
def test_a_call_is_captioned_by_its_most_telling_argument(
    args: dict[str, Any], description: str, expected: Caption
) -> None:
    assert caption("Tool", args, description) == expected


def test_a_look_at_a_result_is_short_and_says_what_is_hidden() -> None:
    assert glance(result("1\n2\n3\n4\n5\n6\n")).lines == ("1", "2", "3", "4")
    assert glance(result("1\n2\n3\n4\n5\n6\n")).hidden == 2
    assert glance(result("x\n" * 40, name="Read")).lines == ("40 lines",)
    assert glance(result("")).lines == ("(no output)",)
    # What went wrong is said last.
    failed = glance(result("".join(f"{n}\n" for n in range(30)), status="error"))
    assert (failed.lines[-1], failed.hidden) == ("29", 20)


def test_the_form_that_commands_have_for_models_is_taken_off() -> None:
    assert glance(result("Exit code: 0\nSTDOUT:\nhello\n\nSTDERR:\n")).lines == ("hello",)
    failed = result("Exit code: 2\nSTDOUT:\n\nSTDERR:\nno such file\n", status="error")
    assert glance(failed).lines == ("no such file", "exit code 2")


def test_what_programs_print_is_shown_and_not_obeyed() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07\x07") == "red \\x07"
    assert clean("10%\r50%\r100%\r\ndone") == "100%\ndone"
    assert one_line("first\nsecond") == "first …"


DIFF = "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@ def f\n one\n-two\n+2\n+2b\n three\n@@ -20 +21 @@\n-x\n+y\n"


def test_a_diff_has_the_numbers_of_its_lines() -> None:
    shown = [(row.sign, row.number, row.text) for row in diffs.rows(DIFF)]
    assert shown == [
        (" ", 3, "one"),
        ("-", 4, "two"),
        ("+", 4, "2"),
        ("+", 5, "2b"),
        (" ", 6, "three"),
        ("@", None, "⋮"),
        ("-", 20, "x"),
        ("+", 21, "y"),
    ]
    assert diffs.counts(DIFF) == (3, 2)
    assert diffs.rows("no diff at all")[0].text == "no diff at all"


def test_a_long_line_of_a_diff_goes_on_below_its_beginning() -> None:
    lines = diffs.painted(change("", "some words and then\n\n0123456789012345678901234"))
    painter = Painter(lambda: 20, color_system=None)
    shown = [line for painted in lines for line in painter.lines(painted)]
    assert shown == ["1 + some words and", "    then", "2 +", "3 + 0123456789012345", "    678901234"]


def asked(request: ToolRequested, workspace: Path, room: PreviewSize | None = SCREEN) -> list[str]:
    """What stands on the screen when a call is asked about."""
    found = preview(request, str(workspace), room)
    screen = Screen(lambda text: None, lambda: (80, 24))
    head, *below = View(screen, Painter(lambda: 80, color_system=None)).asked(found)
    return [head, *(line.removeprefix("  ") for line in below)]


def test_an_edit_is_previewed_in_its_place_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    edit = request(file_path="a.py", old_string="two", new_string="2")
    assert asked(edit, tmp_path) == ["? Edit a.py", "  1   one", "  2 - two", "  2 + 2", "  3   three"]
    assert preview(edit, str(tmp_path)).is_change


def test_an_edit_of_a_file_that_is_not_there_shows_the_two_texts(tmp_path: Path) -> None:
    edit = request(file_path="gone.py", old_string="two", new_string="2")
    assert asked(edit, tmp_path) == ["? Edit gone.py", "  1 - two", "  1 + 2"]


def test_a_new_file_is_previewed_as_it_will_be_and_an_old_one_as_a_change(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("a = 1\n")
    new = request("Write", file_path="new.py", content="a = 2\n")
    assert asked(new, tmp_path) == ["? Write new.py", "  content:", "    a = 2"]
    assert not preview(new, str(tmp_path)).is_change
    old = request("Write", file_path="old.py", content="a = 2\n")
    assert asked(old, tmp_path) == ["? Write old.py", "  1 - a = 1", "  1 + a = 2"]


def test_a_file_is_looked_for_where_the_tool_will_find_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.py").write_text("a = 1\n")
    write = request("Write", file_path="~/a.py", content="a = 2\n")
    assert asked(write, tmp_path / "elsewhere")[1:] == ["  1 - a = 1", "  1 + a = 2"]


def test_what_is_asked_about_hides_nothing(tmp_path: Path) -> None:
    assert asked(request("Bash", command="ls -l"), tmp_path) == ["? Bash ls -l"]
    assert asked(request("Bash", command="touch pwned; : \rls -la"), tmp_path) == [
        "? Bash",
        "  command:",
        "    touch pwned; : <U+000D>ls -la",
        "  ! 1 character that would not be seen is shown by its number.",
    ]
    osc = asked(request("Bash", command="ls\x1b]0;\ntouch pwned\n\x07"), tmp_path)
    assert osc[2:5] == ["    ls<U+001B>]0;", "    touch pwned", "    <U+0007>"]
    extra = asked(request("Bash", command="touch pwned", content="harmless"), tmp_path)
    assert extra == ["? Bash touch pwned", '    content: "harmless"']
    other = asked(request("mcp__fs__rm", path="a", force=True, depth=[3]), tmp_path)
    assert other == ['? mcp__fs__rm path: "a", force: true, depth: [3]']


def test_a_very_long_file_is_cut_in_its_middle_and_seen_whole_if_asked_for(tmp_path: Path) -> None:
    write = request("Write", file_path="a.txt", content="".join(f"line {n}\n" for n in range(60_000)))
    lines = asked(write, tmp_path)
    assert lines[2:4] == ["    line 0", "    line 1"]
    assert lines[-1] == "    line 59999"
    assert sum("characters are not shown ...]" in line for line in lines) == 1
    assert len(asked(write, tmp_path, WHOLE)) == 60_002


def test_the_rows_of_a_long_line_cannot_be_taken_for_lines(tmp_path: Path) -> None:
    lines = asked(request("Bash", command="echo " + "word " * 60 + "\nrm -rf x"), tmp_path)
    rows = [line for line in lines if "word" in line]
    assert len(rows) > 2
    assert [row.strip()[:1] for row in rows] == ["e", *"↪" * (len(rows) - 1)]
    (new,) = [line for line in lines if "rm -rf x" in line]
    assert "↪" not in new
    # A line that begins like such a row is two columns further in.
    forged = asked(request("Bash", command="ls\n↪ rm"), tmp_path)
    assert rows[1].index("↪") + 2 == next(line for line in forged if "rm" in line).index("↪")
    head = asked(request("Bash", command="echo " + "word " * 60 + "end"), tmp_path)
    assert [line[:2] for line in head] == ["? ", *["↪ "] * (len(head) - 1)]


def test_both_ends_of_what_is_asked_about_fit_any_screen() -> None:
    view = View(Screen(lambda text: None, lambda: (80, 24), moves=True), Painter(lambda: 80, color_system=None))
    lines = [f"line {number}" for number in range(100)]
    for rows in (3, 4, 10, 99):
        seen = view.fitted(lines, rows)
        assert len(seen) == rows
        assert seen[0] == "line 0"
        assert f"{100 - rows + 1} rows are not shown" in "\n".join(seen)
        assert rows == 3 or seen[-1] == "line 99"
    assert view.fitted(lines, 100) == lines


def test_whose_tool_it_is_is_said(tmp_path: Path) -> None:
    said = ToolRequested("c", "send", "mcp", {"to": "x"}, 'MCP second/send: {"to":"x\n"}')
    assert asked(said, tmp_path) == ['? send to: "x"', '    It says: `MCP second/send: {"to":"x "}`']


def test_what_was_allowed_looks_as_it_did_when_it_was_asked_about() -> None:
    assert caption("Bash", {"command": "touch pwned; : \rls"}).about == "touch pwned; : <U+000D>ls"


def test_one_key_is_the_answer() -> None:
    assert Question(request(), SHOWN).press(Key(text="y")) == Approve()
    assert Question(request(), SHOWN).press(Key(text="a")) == Approve("always", narrow=True)
    assert Question(request(), SHOWN).press(Key("escape")) == "stop"
    # An Enter that was meant for something else allows nothing.
    assert Question(request(), SHOWN).press(Key("enter")) is None


@pytest.mark.parametrize(
    ("asked", "covers"),
    [
        (ToolRequested("c", "Edit", "edit", {}), "always: every `edit` tool "),
        (ToolRequested("c", "Edit", "edit", {}, outside=True), "always: every `edit` tool, outside the workspace too"),
        (
            ToolRequested("c", "Bash", "exec", {"command": "git status -s"}),
            "`git status -s` with other words or files",
        ),
        (ToolRequested("c", "Bash", "exec", {"command": "make && make x"}), "always: exactly `make && make x`"),
        (ToolRequested("c", "Bash", "exec", {"command": "x" * 99}), "always: exactly this"),
        (ToolRequested("c", "Spawn", "exec", {"tasks": []}), "always: the tool `Spawn`"),
        (ToolRequested("c", "send", "mcp", {"command": "ls"}), "always: the tool `send`"),
    ],
)
def test_always_says_what_it_covers(asked: ToolRequested, covers: str) -> None:
    assert covers in Question(asked, SHOWN).prompt(0).plain + " "


def test_what_reaches_out_of_the_workspace_says_so() -> None:
    assert "outside the workspace" in Question(request(outside=True), SHOWN).prompt(0).plain


def test_a_no_has_a_reason_or_none_and_can_be_taken_back() -> None:
    question = Question(request(), SHOWN)
    assert question.press(Key(text="n")) is None
    assert question.press(Key(text="y")) is None
    assert question.press(Key("escape")) is None
    assert question.press(Key(text="n")) is None
    assert question.press(Key(text="too late")) is None
    decision = question.press(Key("enter"))
    assert decision == Deny("too late")
    assert told(Deny("too late"), Grant("edit")) == ("✗ refused: too late", "red")


def test_there_is_a_key_to_see_what_was_left_out() -> None:
    question = Question(request(), SHOWN.replace(left_out=1))
    assert "view all" in question.prompt(0).plain
    assert question.press(Key(text="v")) == "all"
    question.is_cut = False
    assert question.press(Key(text="v")) is None
    assert "view all" not in question.prompt(0).plain


def test_a_line_is_edited_from_its_end() -> None:
    line = EditedLine("some words here")
    line.press(Key("rub word"))
    assert line.text == "some words"
    line.press(Key("backspace"))
    line.press(Key(text="k"))
    assert line.text == "some wordk"
    line.press(Key("clear"))
    assert line.text == ""


def test_numbers_are_for_people() -> None:
    assert [words.seconds(value) for value in (0.04, 0.99, 1.0, 59.9, 185)] == [
        "0.0 s",
        "0.9 s",
        "1 s",
        "59 s",
        "3 m 05 s",
    ]
    assert [words.count(value) for value in (999, 1000, 1849, 2_100_000)] == ["999", "1k", "1.8k", "2.1M"]
    assert words.tokens(Usage(1200, 30, 800)) == ["1.2k in", "30 out", "800 cached"]
    assert words.tokens(Usage(0, 0)) == []
    assert [words.money(value) for value in (1.5, 0.0123)] == ["$1.50", "$0.0123"]
