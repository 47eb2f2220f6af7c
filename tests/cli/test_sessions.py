"""`trunkline sessions`: what was kept can be listed, read and exported, also while it is being written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support import spawned
from trunkline.base import paths
from trunkline.cli import sessions, shelf, table
from trunkline.core import events, records
from trunkline.core.events import Envelope, Event
from trunkline.core.usage import Usage
from trunkline.store.files import FileStore

NASTY_ID = "../../etc/\x1b[2J\u2028\ud800 passwd"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(sessions.command, arguments)


def run(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def keep(session: str, *happened: Event, workspace: str | None = None) -> Path:
    """A session with these events in its first turn; gives its log."""
    folder = Path(paths.sessions_dir())
    before = set(folder.glob("*.log"))
    log = FileStore(folder).create(session, workspace or os.getcwd(), "coder")
    for seq, event in enumerate(happened, 1):
        log.append(Envelope(session, seq, 1, 1_700_000_000.0 + seq, event))
    log.close()
    (made,) = set(folder.glob("*.log")) - before
    return made


def a_turn(text: str, usage: Usage | None = None) -> tuple[Event, ...]:
    return (
        events.TurnStarted(events.UserMessage(text, (), "m1")),
        events.TextDelta("You said: "),
        events.TextDelta(text),
        events.TurnEnded("success", usage),
    )


def test_an_empty_shelf_is_said_to_people_and_is_an_empty_list_to_programs() -> None:
    result = invoke("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No sessions are kept here yet." in result.stderr
    assert json.loads(run("list", "--json")) == {"sessions": []}


def test_the_list_has_the_session_used_last_first() -> None:
    for number, name in enumerate(("one", "two", "three")):
        os.utime(keep(name), (0, 1_700_000_000 + number * 60))
    names = [line.split()[0] for line in run("list").splitlines()]
    assert names == ["ID", "three", "two", "one"]
    listed = json.loads(run("list", "--json"))["sessions"]
    assert [entry["id"] for entry in listed] == ["three", "two", "one"]
    assert listed[0].keys() == {"id", "agent", "workspace", "created", "updated", "title", "turns"}
    assert listed[0]["updated"] == 1_700_000_120


def test_the_list_tells_each_session_by_its_first_words_in_a_line_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "room", lambda: 80)
    keep("long", *a_turn("why does\n\tthe \x1b[2J build " + "fail " * 100), workspace="/some/where")
    keep("silent")
    head, *rows = run("list").splitlines()
    assert head.split() == ["ID", "UPDATED", "AGENT", "DIRECTORY", "TURNS", "TITLE"]
    assert len(rows) == 2
    assert max(len(row) for row in rows) <= 80
    (long,) = (row for row in rows if row.startswith("long "))
    assert "  coder  " in long
    assert "  /some/where " in long
    assert "1      why does" in long
    assert long.endswith("...")
    wide = run("list", "--wide")
    assert "/some/where" in wide
    listed = {entry["id"]: entry for entry in json.loads(run("list", "--json"))["sessions"]}
    assert (listed["silent"]["title"], listed["silent"]["turns"]) == ("", 0)
    assert listed["long"]["turns"] == 1


def test_the_list_is_whole_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    name = "an id that is as long as those of hosts may well be, and longer"
    keep(name, *a_turn("why does the build " + "fail " * 20 + "again"))
    _, row = run("list").splitlines()
    assert row.startswith(f"{name}  ")
    assert row.endswith("fail again")


def test_removed_sessions_are_gone_and_others_stay() -> None:
    for name in ("one", "two", "three"):
        keep(name, *a_turn("hello"))
    result = invoke("rm", "one", "two")
    assert (result.exit_code, result.stderr) == (0, "Removed `one`.\nRemoved `two`.\n")
    assert [entry["id"] for entry in json.loads(run("list", "--json"))["sessions"]] == ["three"]
    result = invoke("rm", "thre")
    assert (result.exit_code, result.stderr) == (1, "Error: Session 'thre' not found. Did you mean `three`?\n")


def test_a_session_that_is_at_work_is_not_removed() -> None:
    log = FileStore(paths.sessions_dir()).create("busy", "/")
    try:
        result = invoke("rm", "busy")
        assert result.exit_code == 1
        assert "Close it there first; then it can be removed." in result.stderr
    finally:
        log.close()
    assert [entry["id"] for entry in json.loads(run("list", "--json"))["sessions"]] == ["busy"]


def test_the_list_can_be_limited_to_a_workspace(tmp_path: Path) -> None:
    keep("here", workspace=str(tmp_path))
    keep("there", workspace="/elsewhere")
    assert [entry["id"] for entry in json.loads(run("list", "--json", "--workspace", str(tmp_path)))["sessions"]] == [
        "here"
    ]


def test_show_tells_who_said_what_and_what_it_cost() -> None:
    keep("s1", *a_turn("hello", Usage(24, 19, 1800)))
    text = run("show", "s1")
    assert "you       hello\n" in text
    assert "agent     You said: hello\n" in text
    assert "end       success, tokens: 24 in, 19 out, 1800 read from the cache\n" in text
    assert "last turn  tokens: 24 in, 19 out" in text
    assert text.endswith("in total   tokens: 24 in, 19 out, 1800 read from the cache; turns: 1\n")


def test_show_as_json_has_all_events_as_the_log_has_them() -> None:
    keep("s1", *a_turn("hello", Usage(24, 19, 1800)))
    found = json.loads(run("show", "s1", "--json"))
    assert (found["session"]["id"], found["session"]["turns"]) == ("s1", 1)
    exported = [json.loads(line) for line in run("export", "s1").splitlines()[1:]]
    assert found["events"] == exported


@pytest.mark.process
def test_a_real_conversation_can_be_read_afterwards_with_its_tools_and_its_total() -> None:
    said = ["create hello.py", "clean up"]
    answers = iter(["tool_approve", "tool_approve", "tool_deny"])

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return {"type": next(answers), "call_id": request["call_id"]}

    spawned.converse(["--agent", "scripted", "--script", "tour", "--session-id", "real"], said, answer)
    text = run("show", "real")
    for words in (
        "asks for  Write to hello.py (edit)",
        '"file_path": "hello.py"',
        "result    Write: success",
        "+print('hello')",
        "cancelled: User denied",
        "in total   tokens: 765 in, 136 out; turns: 2",
    ):
        assert words in text, words


@pytest.mark.process
def test_a_session_can_be_read_while_an_agent_is_at_work_on_it() -> None:
    with spawned.agent("--agent", "scripted", "--script", "tour", "--session-id", "busy") as process:
        assert process.stdout is not None
        spawned.send(process, {"type": "message", "msg_id": "m1", "input": "clean up"})
        while json.loads(process.stdout.readline())["type"] != "tool_request":
            pass
        assert "asks for  Execute: rm -rf build (exec)" in run("show", "busy")
        assert json.loads(run("export", "busy").splitlines()[-1])["event"] == "ToolRequested"
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0


def test_latest_is_the_session_used_last_in_this_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    os.utime(keep("older", *a_turn("before")), (0, 1_700_000_000))
    os.utime(keep("newer", *a_turn("after")), (0, 1_700_000_060))
    keep("elsewhere", workspace="/elsewhere")
    assert "session    newer" in run("show", "latest")
    monkeypatch.chdir("/")
    result = invoke("show", "latest")
    assert result.exit_code == 1
    assert "No sessions found in `/`. `trunkline sessions list` shows those of all directories." in result.stderr


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("my-cnv-123", "Did you mean `my-conv-123`?"),
        ("something else", "`trunkline sessions list` shows those there are."),
    ],
)
@pytest.mark.parametrize("verb", ["show", "export"])
def test_an_unknown_id_is_an_error_that_suggests_another(verb: str, wrong: str, hint: str) -> None:
    keep("my-conv-123")
    result = invoke(verb, wrong)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"Error: Session '{wrong}' not found. {hint}\n"


@pytest.mark.parametrize("verb", ["show", "export"])
def test_the_beginning_of_an_id_is_enough_while_no_other_has_it(verb: str) -> None:
    keep("my-conv-123", *a_turn("hello"))
    assert "hello" in run(verb, "my")
    keep("my-conv-124")
    result = invoke(verb, "my")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "`my` is the beginning of several sessions: `my-conv-124`, `my-conv-123`." in result.stderr
    assert "hello" in run(verb, "my-conv-123")


def test_a_session_is_only_removed_by_its_whole_id() -> None:
    keep("my-conv-123")
    assert invoke("rm", "my").stderr == "Error: Session 'my' not found. Did you mean `my-conv-123`?\n"


def test_the_list_on_a_terminal_has_ids_that_open_what_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "room", lambda: 100)
    ids = ["01a1e258-7f6b-78a7-8118-1be119a9aae8", "01a1e258-8084-7cea-b9a7-7b8ac225ee88", "another"]
    for name in ids:
        keep(name)
    shown = sorted(line.split()[0] for line in run("list").splitlines()[1:])
    assert shown == ["01a1e258-7", "01a1e258-8", "another"]
    assert [shelf.named(name) for name in shown] == ids


def test_without_any_session_the_error_says_so() -> None:
    assert "No sessions are kept here yet." in invoke("show", "s1").stderr


def test_a_log_that_does_not_begin_like_one_is_an_error_that_names_the_file() -> None:
    log = keep("s1")
    log.write_bytes(b"something else\n")
    result = invoke("show", "s1")
    assert result.exit_code == 1
    assert f"The log `{log}` cannot be read" in result.stderr


def test_reading_neither_repairs_nor_hides_damage() -> None:
    log = keep("s1", *a_turn("hello"), *a_turn("again"))
    lines = log.read_bytes().splitlines(keepends=True)
    # What was said in the first turn, in two pieces that share a record.
    lines[2] = b"00000000" + lines[2][8:]
    damaged = b"".join(lines) + b"half a rec"
    log.write_bytes(damaged)
    assert "Records 2 to 3 are damaged or missing." in run("show", "s1")
    assert {"gap": [2, 3]} in [json.loads(line) for line in run("export", "s1").splitlines()]
    assert log.read_bytes() == damaged


def test_an_export_has_a_line_about_the_session_and_then_every_event() -> None:
    happened = a_turn("caf\u00e9 \ud800", Usage(1, 2))
    keep("s1", *happened, workspace="/w")
    first, *rest = CliRunner().invoke(sessions.command, ["export", "s1"]).stdout_bytes.splitlines()
    about = json.loads(first)
    created = about.pop("created")
    assert isinstance(created, float)
    assert about == {"trunkline_export": 1, "records": records.VERSION, "session": "s1", "workspace": "/w"}
    assert [records.decode("s1", line).event for line in rest] == list(happened)


def test_an_export_leaves_out_what_the_agent_keeps_for_itself_unless_asked() -> None:
    keep("s1", events.Journaled({"block": 1}), *a_turn("hello"))
    assert "Journaled" not in run("export", "s1")
    assert "Journaled" in run("export", "s1", "--all")


def test_a_markdown_export_is_a_document_with_a_heading_for_every_turn() -> None:
    keep("s1", *a_turn("hello"), workspace="/w")
    text = run("export", "s1", "--format", "md")
    assert text.startswith("# Session `s1`\n\nWorkspace `/w`, created ")
    assert "\n## Turn 1\n" in text
    assert "\n**you**\n\n> hello\n" in text
    assert "\nYou said: hello\n" in text
    assert "\n- success, usage not known\n" in text


def test_ids_may_hold_any_characters_and_are_shown_harmlessly() -> None:
    keep(NASTY_ID, *a_turn("hello"))
    for arguments in (("list",), ("show", NASTY_ID), ("export", NASTY_ID, "--format", "md")):
        text = run(*arguments)
        assert "\x1b" not in text
        assert "\\x1b[2J" in text
    assert json.loads(run("list", "--json"))["sessions"][0]["id"] == NASTY_ID
    assert json.loads(run("export", NASTY_ID).splitlines()[0])["session"] == NASTY_ID


def test_escapes_in_a_directorys_name_are_not_printed() -> None:
    keep("s1", *a_turn("hello"), workspace="/evil\x1b]0;pwned\x07\nline")
    for arguments in (("list",), ("list", "--wide"), ("export", "s1", "--format", "md")):
        text = run(*arguments)
        assert "\x1b" not in text
        assert "\nline" not in text


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("s1", *a_turn("hello"))
    coloured = CliRunner().invoke(sessions.command, ["show", "s1"], color=True).stdout
    assert "\x1b[" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in CliRunner().invoke(sessions.command, ["show", "s1"], color=True).stdout


@pytest.mark.process
@pytest.mark.parametrize("verb", [["show"], ["export"], ["export", "--format", "md"]])
def test_a_reader_that_has_seen_enough_may_leave(verb: list[str]) -> None:
    keep("long", *(events.Notice(f"{number} " + "x" * 1000) for number in range(1000)))
    command = [sys.executable, "-m", "trunkline", "sessions", *verb, "long"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
