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
from trunkline.tools.read import UNCHANGED

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
        ({"depth": 3}, "Tool: look around", Caption("Tool", "look around")),
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
    assert glance(result(UNCHANGED, name="Read")).lines == ("unchanged since it was read",)
    assert glance(result("")).lines == ("(no output)",)
    # What went wrong is said last.
    failed = glance(result("".join(f"{n}\n" for n in range(30)), status="error"))
    assert (failed.lines[-1], failed.hidden) == ("29", 20)


def test_the_form_that_commands_have_for_models_is_taken_off() -> None:
    assert glance(result("Exit code: 0\nSTDOUT:\nhello\n\nSTDERR:\n")).lines == ("hello",)
    failed = result("Exit code: 2\nSTDOUT:\n\nSTDERR:\nno such file\n", status="error")
    assert glance(failed).lines == ("no such file", "exit code 2")


def test_of_a_command_in_the_background_its_state_and_its_newest_lines_are_shown() -> None:
    begun = "The command runs in the background.\nbash_id: bash_1\nBashOutput gives its output."
    assert glance(result(begun)).lines == ("runs in the background as bash_1",)
    printed = "".join(f"{number}\n" for number in range(6))
    told = f"bash_id: bash_1\nStatus: running for 3.142 s\nOUTPUT:\n{printed}"
    expected = ("still running, 2 more lines before these:", "2", "3", "4", "5")
    assert glance(result(told, name="BashOutput")).lines == expected
    ended = "bash_id: bash_1\nExit code: 3\nOUTPUT:\n(nothing new)"
    assert glance(result(ended, name="BashOutput")).lines == ("exit code 3:", "(nothing new)")
    killed = "bash_id: bash_1\nExit code: 143\n[ended by KillBash]\nOUTPUT:\nx"
    assert glance(result(killed, name="KillBash")).lines == ("ended by KillBash:", "x")
    assert caption("KillBash", {"bash_id": "bash_1"}, "End bash_1") == Caption("KillBash", "bash_1")


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


def test_the_diffs_of_several_files_are_in_colours() -> None:
    text = (
        "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-- old\n+new\n same\ndiff --git a/y b/y\n"
    )
    shown = diffs.whole(text)
    looks = {shown.plain[span.start : span.end].rstrip("\n"): span.style for span in shown.spans}
    assert looks["diff --git a/y b/y"] == "bold"
    assert (looks["--- a/x"], looks["@@ -1,2 +1,2 @@"]) == ("dim", "cyan")
    # A line that was taken out, and not the name of a file.
    assert (looks["-- old"], looks["+new"], looks[" same"]) == ("red", "green", "dim")


def test_a_long_line_of_a_diff_goes_on_below_its_beginning() -> None:
    lines = diffs.painted(change("", "some words and then\n\n0123456789012345678901234"))
    painter = Painter(lambda: 20, color_system=None)
    shown = [line for painted in lines for line in painter.lines(painted)]
    assert shown == ["1 + some words and", "    then", "2 +", "3 + 0123456789012345", "    678901234"]


def asked(request: ToolRequested, workspace: Path, room: PreviewSize | None = SCREEN) -> list[str]:
    """What stands on the screen when a call is asked about."""
    found = preview(request, str(workspace), room)
    screen = Screen(lambda text: None, lambda: (80, 24))
    head, *below = View(screen, Painter(lambda: 80, color_system=None)).calls.asked(found)
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
        seen = view.calls.fitted(lines, rows)
        assert len(seen) == rows
        assert seen[0] == "line 0"
        assert f"{100 - rows + 1} rows are not shown" in "\n".join(seen)
        assert rows == 3 or seen[-1] == "line 99"
    assert view.calls.fitted(lines, 100) == lines
    # What was left out before is said, too: the line that said so may be among those that go.
    assert "[... 91 rows and 9,227 characters are not shown ...]" in "\n".join(
        view.calls.fitted(lines, 10, ("9,227 characters",))
    )


def test_a_small_screen_says_how_much_of_a_long_file_it_does_not_show(tmp_path: Path) -> None:
    shown = preview(request("Write", file_path="big.py", content="a = 1\n" * 2000), str(tmp_path), SCREEN)
    (missing,) = shown.missing
    assert missing.endswith(" characters")
    view = View(Screen(lambda text: None, lambda: (50, 24), moves=True), Painter(lambda: 50, color_system=None))
    fitted = view.calls.fitted(view.calls.asked(shown), 6, shown.missing)
    assert f" rows and {missing} " in "\n".join(fitted)
    assert not preview(request("Write", file_path="big.py", content="a"), str(tmp_path), SCREEN).missing


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
        (ToolRequested("c", "Edit", "edit", {}, outside=True), "`edit` tool (`Edit`), outside the workspace too"),
        (ToolRequested("c", "Bash", "exec", {"command": "git status -s a"}), "always: `Bash(git status -s:./**)` "),
        (ToolRequested("c", "Bash", "exec", {"command": "make && make x"}), "always: `Bash(make && make x)`"),
        (ToolRequested("c", "Bash", "exec", {"command": "x" * 99}), "always: exactly this"),
        (ToolRequested("c", "Spawn", "exec", {"tasks": []}), "always: `Spawn`"),
        (ToolRequested("c", "send", "mcp", {"command": "ls"}), "always: `send`"),
        (ToolRequested("c", "send", "mcp", {}, rule_name="mcp__hub__send"), "always: `mcp__hub__send`"),
        (ToolRequested("c", "WebFetch", "exec", {"url": "https://x.org/a"}), "always: `WebFetch(domain:x.org)`"),
    ],
)
def test_always_says_what_it_covers(asked: ToolRequested, covers: str) -> None:
    assert covers in Question(asked, SHOWN).prompt(0).plain + " "


def test_always_is_for_later_sessions_too_where_that_can_be_kept_and_means_something() -> None:
    kept = Question(request(), SHOWN, keeps=True)
    assert "p  always, in later sessions too" in kept.prompt(0).plain
    # The rule is what lasts: a grant besides it would outlive its removal.
    assert kept.press(Key(text="p")) == Approve()
    assert kept.is_kept
    for asked, keeps in (
        (request(), False),
        (request(outside=True), True),
        (request().replace(asking="confirm"), True),
        # No rule can name it.
        (ToolRequested("c", "a tool", "mcp", {}), True),
    ):
        question = Question(asked, SHOWN, keeps=keeps)
        assert question.press(Key(text="p")) is None
        assert "later sessions" not in question.prompt(0).plain


def test_what_has_to_be_confirmed_is_not_offered_for_always() -> None:
    question = Question(request().replace(asking="confirm"), SHOWN)
    assert question.press(Key(text="a")) is None
    assert "always" not in question.prompt(0).plain


def test_why_somebody_is_asked_stands_where_they_answer() -> None:
    why = "this could send data out (`curl`) after `Read a`,\nwhich may\u202e have told it"
    question = Question(request().replace(asking="confirm", why=why), SHOWN)
    first, second, third = question.prompt(0, 60).plain.split("\n")
    assert first == "  This could send data out (`curl`) after `Read a`, which"
    assert second == "  may<U+202E> have told it."
    assert third.startswith("  Allow?")
    assert Question(request(), SHOWN).prompt(0).plain.startswith("  Allow?")


def test_what_can_be_pressed_goes_on_below_the_first_of_it() -> None:
    lines = Question(request(), SHOWN, keeps=True).prompt(0, 40).plain.split("\n")
    assert len(lines) > 2
    assert [line.index(key) for line, key in zip(lines, (" y ", " a ", " p "), strict=False)] == [10, 10, 10]


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


def test_a_plan_is_agreed_to_or_not_and_there_is_no_always() -> None:
    asked = ToolRequested("c", "ExitPlanMode", "info", {"plan": "# A plan"})
    assert Question(asked, SHOWN).press(Key(text="a")) is None
    assert "always" not in Question(asked, SHOWN).prompt(0).plain
    assert Question(asked, SHOWN).press(Key(text="y")) == Approve()
    # Whatever comes with it is shown, as with any other call.
    more = asked.replace(args={"plan": "# A plan", "and": "more"})
    assert (preview(asked, ".").name, preview(more, ".").name) == ("Plan", "ExitPlanMode")
    assert "and: " in preview(more, ".").about.text


def test_tasks_for_sub_agents_are_shown_one_by_one_and_who_asks_is_told(tmp_path: Path) -> None:
    tasks = [
        {"name": "find", "prompt": "Look.\nAnd tell."},
        {"name": "test", "prompt": "Test\u200b", "agent": "tester"},
    ]
    spawn = ToolRequested("c1", "Spawn", "exec", {"tasks": tasks}, "Spawn: find, test")
    assert asked(spawn, tmp_path) == [
        "? Spawn",
        "  1. find:",
        "    Look.",
        "    And tell.",
        "  2. test (agent tester):",
        "    Test<U+200B>",
        "  ! 1 character that would not be seen is shown by its number.",
    ]
    # Anything else is shown as what it is.
    assert "tasks:" in "".join(asked(spawn.replace(args={"tasks": [{"name": "x"}]}), tmp_path))
    theirs = ToolRequested("sub2.c1", "Bash", "exec", {"command": "ls"}, "find: Execute: ls")
    assert asked(theirs, tmp_path) == ["? Bash ls", "    It says: `find: Execute: ls`"]


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
