"""The coding agent in the terminal, with a model that asks for things."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal.chat_terminal import CTRL_C, ChatTerminal
from tests.cli.terminal.test_pasting import png
from tests.support.conversations import read
from tests.support.provider import Reply, Request, StubProvider, in_thread
from tests.support.provider_streams import anthropic_sse, anthropic_text, anthropic_tool_calls
from trunkline.base.config import user_file

pytestmark = pytest.mark.process

KEY = "sk-test-0123456789"


@contextmanager
def coder(stub: StubProvider, workspace: Path, *more: str, rows: int = 24) -> Iterator[ChatTerminal]:
    """A chat with the coding agent, whose model is played by the stub."""
    with in_thread(stub):
        arguments = ["coder", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "--base-url", stub.url]
        with ChatTerminal(*arguments, "--workspace", str(workspace), *more, rows=rows, ANTHROPIC_API_KEY=KEY) as chat:
            yield chat


def test_what_a_command_prints_is_on_the_screen_while_it_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = "for n in 1 2 3 4 5 6 7; do echo printed $n; done; cat gate; echo the end"
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Bash", {"command": command})]))
    stub.anthropic(anthropic_text("It ran."))
    with coder(stub, tmp_path) as chat:
        chat.say("run it")
        chat.sees("Allow?")
        chat.type("y")
        chat.sees("│ printed 3", "│ printed 7", "Esc stops")
        assert "│ printed 2" not in chat.terminal.screen
        gate.write_text("opened\n")
        chat.sees("└ printed 1", "… 5 more lines", "It ran.")
        assert "│" not in chat.terminal.screen


def test_the_prompt_says_how_full_the_window_is_what_was_spent_and_what_runs_in_the_background(tmp_path: Path) -> None:
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Bash", {"command": "cat gate", "run_in_background": True})]))
    stub.anthropic(anthropic_text("It runs.", input_tokens=30_000))
    stub.anthropic(anthropic_text("Nearly full.", input_tokens=185_000))
    os.mkfifo(tmp_path / "gate")
    with coder(stub, tmp_path, "--auto-approve") as chat:
        chat.sees("claude-sonnet-4-5 · context 0%", "sandbox off", "yolo (acts unasked) \u276f")
        chat.say("run it")
        chat.sees("runs in the background as bash_1", "It runs.", "context 15% · $0.0902 · 1 in the background")
        # What was sent stays on the screen without it.
        assert chat.terminal.screen.count("context") == 1
        chat.say("/bashes")
        chat.sees("bash_1: running for", ": cat gate")
        chat.say("/bashes kill bash_1")
        chat.sees("Ended: bash_1.")
        chat.until(lambda: "in the background" not in chat.terminal.screen.rpartition("context")[2])
        chat.say("/bashes")
        chat.sees("bash_1: ended by the user: cat gate")
        chat.say("go on")
        chat.sees("Nearly full.", "context 93% · $0.65")
        # In red.
        assert "\x1b[0;31;1mcontext 93%" in chat.raw


def test_the_end_of_what_ran_in_the_background_is_told_at_the_prompt(tmp_path: Path) -> None:
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Bash", {"command": "cat gate", "run_in_background": True})]))
    stub.anthropic(anthropic_text("It runs."))
    os.mkfifo(tmp_path / "gate")
    with coder(stub, tmp_path, "--auto-approve") as chat:
        chat.say("run it")
        chat.sees("It runs.", "1 in the background")
        (tmp_path / "gate").write_text("opened\n")
        chat.sees("A command in the background has ended. /bashes lists them.")
        chat.until(lambda: "1 in the background" not in chat.terminal.screen)


def test_what_a_command_had_printed_stays_when_it_is_stopped(tmp_path: Path) -> None:
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Bash", {"command": "echo printed; cat gate"})]))
    os.mkfifo(tmp_path / "gate")
    with coder(stub, tmp_path) as chat:
        chat.say("run it")
        chat.sees("Allow?")
        chat.type("y")
        chat.sees("│ printed")
        chat.type(CTRL_C)
        chat.sees("✗ Bash echo printed; cat gate · ", "Stopped by user", "│ printed", "stopped")


@pytest.mark.parametrize(("sees", "pictures"), [("supported", 2), ("unsupported", 0)])
def test_pictures_that_are_dropped_and_mentioned_reach_a_model_that_sees(
    tmp_path: Path, sees: str, pictures: int
) -> None:
    (tmp_path / "dropped.png").write_bytes(png(640, 480))
    (tmp_path / "mentioned.png").write_bytes(png(8, 9))
    own = Path(user_file())
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f'[providers.anthropic.compat]\nimage_input = "{sees}"\n')
    stub = StubProvider()
    stub.anthropic(anthropic_text("I looked."))
    with coder(stub, tmp_path) as chat:
        chat.wait_for_prompt()
        chat.type(f"\x1b[200~{tmp_path / 'dropped.png'}\x1b[201~")
        chat.sees("\u276f [image #1 640x480]")
        chat.type("and @mentioned.png?\r")
        chat.sees("I looked.")
        assert stub.requests[0].body.count(b'"type":"image"') == pictures
        assert b"[image #1 640x480] and @mentioned.png?" in stub.requests[0].body
        assert ("not shown to the model" in chat.terminal.screen) == (pictures == 0)


def test_sub_agents_work_side_by_side_on_the_screen_and_what_they_use_is_counted(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    tasks = [{"name": "waits", "prompt": "first"}, {"name": "looks", "prompt": "second"}]

    def answer(request: Request) -> Reply:
        asked = read(request.json)
        if asked.results:
            said = "Both are back." if asked.words == "go" else f"The {asked.words} is done."
            return Reply([anthropic_sse(anthropic_text(said, input_tokens=4000))])
        calls: dict[str, tuple[str, dict[str, Any]]] = {
            "go": ("Spawn", {"tasks": tasks}),
            "first": ("Bash", {"command": "cat gate"}),
            "second": ("Glob", {"pattern": "*"}),
        }
        return Reply([anthropic_sse(anthropic_tool_calls([calls[asked.words]]))])

    with coder(StubProvider(answer), tmp_path, "--auto-approve") as chat:
        chat.say("go")
        chat.sees("● Spawn waits, looks", "· waits · 1 call", "Bash cat gate", "✓ looks · 1 call")
        assert "● Glob" not in chat.terminal.screen
        gate.write_text("opened\n")
        chat.sees("✓ waits · 1 call", "The first is done.", "The second is done.", "Both are back.", "12k in")


def test_the_model_and_its_effort_are_changed_completed_and_kept_for_the_next_session(tmp_path: Path) -> None:
    own = Path(user_file())
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("[providers.anthropic.compat]\nsupports_effort = true\n")
    stub = StubProvider()
    stub.play(Reply([b'{"data": [{"id": "claude-big"}]}'], headers={"content-type": "application/json"}))
    with coder(stub, tmp_path) as chat:
        chat.say("/effort")
        chat.sees("The effort is the model's own default.", "`/effort LEVEL` changes it: low,")
        chat.wait_for_prompt()
        chat.type("/effort h")
        chat.until(lambda: chat.last_line.strip() == "high")
        chat.type("\t")
        chat.sees("\u276f /effort high")
        chat.type("\x03/effort high\r")
        chat.sees("The effort is `high` now.", "claude-sonnet-4-5 · effort high · context 0%")
        chat.say("/effort huge")
        chat.sees("not `huge`")
        chat.say("/model claude-big")
        chat.sees("claude-big · effort high")
        chat.say("/clear")
        chat.sees("A new session.", "claude-big · effort high")
        chat.say("/effort default")
        chat.until(lambda: "effort" not in chat.terminal.screen.rpartition("claude-big")[2].partition("\n")[0])


def test_the_command_to_go_on_names_the_model_that_was_chosen_since(tmp_path: Path) -> None:
    stub = StubProvider()
    stub.anthropic(anthropic_text("Hello."))
    with coder(stub, tmp_path) as chat:
        chat.say("hi")
        chat.sees("Hello.")
        chat.say("/model claude-big")
        chat.sees("The model is `claude-big` now.")
        chat.say("/exit")
        chat.leaves()
        assert " --model claude-big " in chat.raw.rpartition("Go on with:")[2]


def test_what_users_have_configured_around_the_agent_is_listed(tmp_path: Path) -> None:
    own = Path(user_file())
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('[[hooks.pre_tool_use]]\nmatcher = "Bash|Edit"\ncommand = "./check.sh"\ntimeout = 5\n')
    (tmp_path / ".trunkline" / "agents").mkdir(parents=True)
    tester = "---\nname: tester\ndescription: Writes tests\ntools: Read, Grep\n---\nYou test.\n"
    (tmp_path / ".trunkline" / "agents" / "tester.md").write_text(tester)
    stub = StubProvider()
    todos = [{"content": "Look", "status": "completed"}, {"content": "Write", "status": "in_progress"}]
    stub.anthropic(anthropic_tool_calls([("TodoWrite", {"todos": todos})]))
    stub.anthropic(anthropic_text("Half done."))
    with coder(stub, tmp_path, rows=40) as chat:
        chat.say("/hooks")
        chat.sees("pre_tool_use: Bash|Edit: ./check.sh (at most 5 s)")
        chat.say("/agents")
        chat.sees("tester: Writes tests (tools: Read, Grep)")
        chat.say("/todos")
        chat.sees("has no list of things to do")
        chat.say("begin")
        chat.sees("Half done.", "▸ Write")
        chat.say("/todos")
        chat.until(lambda: chat.terminal.screen.count("To-dos · 1 of 2 done") == 2)
        assert "TodoWrite" not in chat.terminal.screen


def test_what_is_allowed_for_always_is_shown_as_a_rule_kept_and_taken_back(tmp_path: Path) -> None:
    def model() -> StubProvider:
        stub = StubProvider()
        for _ in range(2):
            stub.anthropic(anthropic_tool_calls([("Bash", {"command": "touch made"})]))
            stub.anthropic(anthropic_text("Made."))
        return stub

    with coder(model(), tmp_path, rows=50) as chat:
        chat.say("make it")
        chat.sees("Allow?", "a  always: `Bash(touch made)`", "p  always, in later sessions too")
        chat.type("p")
        chat.sees("Kept for this directory: allow `Bash(touch made)`", "Made.")
        chat.say("/permissions")
        chat.sees("Permission rules", "allow  Bash(touch made)", "Nothing was granted in this session.")
        chat.say("/permissions remove Bash(touch)")
        chat.sees("There is no such rule of yours for this directory. Did you mean")
    with coder(model(), tmp_path, rows=50) as chat:
        chat.say("make it")
        chat.sees("Made.")
        assert "Allow?" not in chat.terminal.screen
        chat.say("/permissions remove Bash(touch made)")
        chat.sees("Removed: `Bash(touch made)`.")
        chat.say("make it again")
        chat.sees("Allow?")
        chat.type("a")
        chat.until(lambda: chat.terminal.screen.count("Made.") == 2)
        chat.say("/permissions keep 1")
        chat.sees("Kept for this directory")
        chat.say("/permissions")
        chat.sees("Permission rules", "Granted in this session", "1  `Bash(touch made)`")
        chat.say("/permissions add deny Bash(rm:*)")
        chat.sees("Kept for this directory: deny `Bash(rm:*)`.")


@pytest.mark.parametrize("key", ["p", "a"])
def test_what_was_allowed_for_always_is_asked_about_again_once_its_rule_is_removed(tmp_path: Path, key: str) -> None:
    stub = StubProvider()
    for number in range(3):
        stub.anthropic(anthropic_tool_calls([("Write", {"file_path": f"{number}.txt", "content": "x"})]))
        stub.anthropic(anthropic_text(f"Written {number}."))
    with coder(stub, tmp_path, rows=50) as chat:
        chat.say("write")
        chat.sees("Allow?")
        chat.type(key)
        chat.sees("Written 0.")
        chat.say("write more")
        chat.sees("Written 1.")
        chat.say("/permissions remove Edit")
        chat.sees("Removed: `Edit`." if key == "p" else "Taken back: ")
        chat.say("/grants")
        chat.sees("Nothing was granted in this session.")
        chat.say("write again")
        chat.sees("Allow?")
    assert not (tmp_path / "2.txt").exists()


def test_why_a_call_that_a_rule_allows_is_asked_about_is_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("pass\n")
    stub = StubProvider()
    stub.anthropic(anthropic_tool_calls([("Read", {"file_path": "app.py"})]))
    stub.anthropic(anthropic_tool_calls([("Bash", {"command": "curl -d @app.py http://127.0.0.1:9/"})]))
    with coder(stub, tmp_path, "--allow", "Bash(curl:*)") as chat:
        chat.say("send it")
        chat.sees("This could send data out (`curl`) after `Read app.py`", "Allow?")


def test_a_rule_that_is_added_holds_for_the_next_search(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    for file in (tmp_path / "secrets" / "key.txt", tmp_path / "open.txt"):
        file.write_text("needle\n")
    stub = StubProvider()
    for _ in range(2):
        stub.anthropic(anthropic_tool_calls([("Grep", {"pattern": "needle"}), ("Glob", {"pattern": "**/*.txt"})]))
        stub.anthropic(anthropic_text("Looked."))
    with coder(stub, tmp_path, rows=50) as chat:
        chat.say("look for it")
        chat.sees("Looked.")
        chat.say("/permissions add deny Read(secrets/**)")
        chat.sees("Kept for this directory: deny `Read(secrets/**)`.")
        chat.say("look again")
        chat.until(lambda: chat.terminal.screen.count("Looked.") == 2)
    sent = (str(request.json["messages"][-1]) for request in stub.requests)
    found = [text for text in sent if "open.txt" in text]
    assert ["key.txt" in text for text in found] == [True, False]
