"""`trunkline acp` as an editor meets it: a program that it starts, talks to and ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import gone
from tests.support.coding import calls, says, serving
from tests.support.patience import PATIENCE_SECONDS
from tests.support.piped_program import PipedProgram, finished
from trunkline.cli import acp

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "trunkline", "acp"]

SCRIPT = """
turns:
  - when: hang
    steps:
      - text: "I begin."
      - hang: true
  - when: flood
    steps:
      - tool: {name: Read, category: info, args: {file_path: big}, output: "%s"}
      - text: "Done."
  - steps:
      - tool: {name: Write, category: edit, args: {file_path: new.txt, content: hello}, output: "written"}
      - text: "Done."
"""


class Editor(PipedProgram):
    """An editor's end of the pipes. Whatever it is asked is allowed."""

    def meanwhile(self, message: dict[str, Any]) -> None:
        if message.get("method") == "session/request_permission":
            outcome = {"outcome": "selected", "optionId": "allow_once"}
            self.send(id=message["id"], result={"outcome": outcome})

    def new(self, place: Path) -> str:
        session: str = self.ask("session/new", cwd=str(place), mcpServers=[])["result"]["sessionId"]
        return session

    def prompt(self, session: str, text: str) -> int:
        return self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def said(self) -> str:
        """The words of all answers so far."""
        updates = [line["params"]["update"] for line in self.lines if line.get("method") == "session/update"]
        return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk")


def editor(*arguments: str, **variables: str) -> AbstractContextManager[Editor]:
    return Editor.started([*COMMAND, *arguments], **variables)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT % ("x" * 100_000))
    return path


def run(*arguments: str, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return finished([*COMMAND, *arguments], input=input)


def test_sessions_outlive_the_process_and_have_one_id(tmp_path: Path) -> None:
    with editor("echo") as first:
        told = first.ask("initialize", protocolVersion=1, clientCapabilities={})["result"]
        assert told["agentInfo"]["name"] == "trunkline"
        session = first.new(tmp_path)
        answer = first.until(first.prompt(session, "hello there"))
        assert answer["result"]["stopReason"] == "end_turn"
        assert first.said() == "hello there"
        first.close()
        assert first.exit_code() == 0
    with editor("echo") as second:
        listed = second.ask("session/list", cwd=str(tmp_path))["result"]["sessions"]
        assert [each["sessionId"] for each in listed] == [session]
        assert listed[0]["title"] == "hello there"
        assert "result" in second.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert second.said() == "hello there"
        assert second.ask("session/load", sessionId="nope", cwd="/", mcpServers=[])["error"]["code"] == -32002
        forked = second.ask("session/fork", sessionId=session, cwd=str(tmp_path))["result"]["sessionId"]
        assert forked != session
        assert second.ask("session/delete", sessionId=session)["result"] == {}
        listed = second.ask("session/list", cwd=str(tmp_path))["result"]["sessions"]
        assert [each["sessionId"] for each in listed] == [forked]


def test_an_edit_is_shown_asked_about_and_done(tmp_path: Path, script: Path) -> None:
    with editor("--script", str(script)) as made:
        made.ask("initialize", protocolVersion=1)
        session = made.new(tmp_path)
        assert made.until(made.prompt(session, "write"))["result"]["stopReason"] == "end_turn"
        lines = made.lines
        asked = next(place for place, line in enumerate(lines) if line.get("method") == "session/request_permission")
        shown = next(place for place, line in enumerate(lines) if "tool_call" in str(line))
        assert shown < asked
        diff = {"type": "diff", "path": str(tmp_path / "new.txt"), "newText": "hello"}
        assert lines[shown]["params"]["update"]["content"] == [diff]


def test_the_mode_of_the_variables_counts(tmp_path: Path, script: Path) -> None:
    with editor("--script", str(script), TRUNKLINE_MODE="yolo") as made:
        opened = made.ask("session/new", cwd=str(tmp_path), mcpServers=[])["result"]
        assert opened["modes"]["currentModeId"] == "yolo"
        made.until(made.prompt(opened["sessionId"], "write"))
        assert "session/request_permission" not in str(made.lines)
        assert "'status': 'completed'" in str(made.lines)


def test_a_plan_is_asked_about_and_its_approval_leaves_the_mode(tmp_path: Path) -> None:
    todos = [{"content": "Look", "status": "in_progress"}]
    replies = calls(("ExitPlanMode", {"plan": "1. Look."}), ("TodoWrite", {"todos": todos})), says("Done.")
    with serving(*replies) as stub, editor("--provider", "openai", "--base-url", stub.url) as made:
        session = made.new(tmp_path)
        made.ask("session/set_mode", sessionId=session, modeId="plan")
        made.until(made.prompt(session, "plan it"))
        (asked,) = (line for line in made.lines if line.get("method") == "session/request_permission")
        assert asked["params"]["toolCall"]["rawInput"] == {"plan": "1. Look."}
        updates = [line["params"]["update"] for line in made.lines if line.get("method") == "session/update"]
        modes = [each["currentModeId"] for each in updates if each["sessionUpdate"] == "current_mode_update"]
        assert modes == ["plan", "default"]
        (plan,) = (each["entries"] for each in updates if each["sessionUpdate"] == "plan")
        assert plan == [{"content": "Look", "priority": "medium", "status": "in_progress"}]
        # The plan and the list are shown by themselves, and not once more as the arguments of a call.
        shown = [(each["title"], each["kind"]) for each in updates if each["sessionUpdate"] == "tool_call"]
        assert shown == [("Plan", "switch_mode"), ("Update the to-do list", "think")]


def test_an_effort_that_was_chosen_is_shown_and_counts_when_the_session_is_loaded(tmp_path: Path) -> None:
    with serving(says("One."), says("Two.")) as stub:
        flags = ("--provider", "openai", "--model", "gpt-5", "--base-url", stub.url)
        with editor(*flags) as first:
            session = first.new(tmp_path)
            first.ask("session/set_config_option", sessionId=session, configId="effort", value="high")
            first.until(first.prompt(session, "one"))
        with editor(*flags) as second:
            loaded = second.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])["result"]
            assert [option["currentValue"] for option in loaded["configOptions"]] == ["high"]
            second.until(second.prompt(session, "two"))
        assert [request.json["reasoning_effort"] for request in stub.requests] == ["high", "high"]


def test_the_end_of_input_exits_0() -> None:
    with editor("echo") as made:
        made.ask("initialize", protocolVersion=1)
        made.ends("eof")
    assert run("echo").returncode == 0


@pytest.mark.parametrize("ending", ["eof", "sigterm"])
def test_it_ends_in_the_middle_of_a_turn(tmp_path: Path, script: Path, ending: str) -> None:
    with editor("--script", str(script)) as made:
        session = made.new(tmp_path)
        made.prompt(session, "hang")
        while "I begin." not in str(made.read()):
            pass
        made.ends(ending)


def test_no_child_is_left(tmp_path: Path) -> None:
    with editor(f"jsonstream:{sys.executable} -m trunkline agent --json-stream --agent echo") as made:
        session = made.new(tmp_path)
        made.until(made.prompt(session, "hello"))
        started = made.children()
        made.ends("sigterm")
    assert all(gone(pid) for pid in started)


def test_what_is_piped_in_is_answered(tmp_path: Path) -> None:
    lines = [
        b"{nope",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}).encode(),
        b'{"jsonrpc":"2.0","id":2,"method":"_x"}',
    ]
    done = run("echo", input=b"\n".join(lines))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert sorted(answer.get("error", {}).get("code", 0) for answer in answers) == [-32700, -32601, 0]


def test_a_missing_key_is_told_to_whoever_wants_a_session(tmp_path: Path) -> None:
    with editor("--provider", "anthropic", ANTHROPIC_API_KEY="") as made:
        (method,) = made.ask("initialize", protocolVersion=1)["result"]["authMethods"]
        assert method["type"] == "env_var"
        assert method["vars"][0]["name"] == "ANTHROPIC_API_KEY"
        error = made.ask("session/new", cwd=str(tmp_path), mcpServers=[])["error"]
        assert error["code"] == -32000
        assert "ANTHROPIC_API_KEY" in error["message"]
        assert made.ask("authenticate", methodId=method["id"])["error"]["code"] == -32000


def test_a_flood_of_a_host_that_never_reads_does_not_fill_the_memory(tmp_path: Path, script: Path) -> None:
    with editor("--script", str(script), "--allow", "Read") as made:
        session = made.new(tmp_path)
        stopped = threading.Event()

        def flood() -> None:
            try:
                for _ in range(3000):
                    made.request("session/load", sessionId="x" * 1000, cwd="/", mcpServers=[])
            except OSError:
                pass
            stopped.set()

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        # Read again: everything is answered, and nothing was lost on the way.
        answered = 0
        while answered < 3000:
            answered += made.read().get("id") is not None
        assert stopped.wait(PATIENCE_SECONDS)
        assert made.until(made.prompt(session, "flood"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nobody",), 1, b"nobody"),
        (("--no-such-option",), 2, b"--help"),
        (("echo", "--agent", "scripted"), 2, b"one agent"),
        (("--mode", "wild"), 2, b"--mode"),
        (("--workspace", "/does/not/exist"), 1, b"/does/not/exist"),
        (("--provider", "nobody"), 1, b"nobody"),
    ],
)
def test_a_start_that_is_wrong_is_told_on_standard_error(arguments: tuple[str, ...], code: int, words: bytes) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, b"")
    assert words in done.stderr


def test_an_agent_that_cannot_be_had_is_told_to_a_silent_editor() -> None:
    with editor("--provider", "nobody") as made:
        assert made.exit_code() == 1
        assert made.process.stderr is not None
        assert b"nobody" in made.process.stderr.read()


def test_help_has_examples() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert b"trunkline acp echo" in done.stdout


def test_the_agent_can_be_named_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = acp.make_parser()
    assert parser.parse_args(["echo"]).agent == "echo"
    assert parser.parse_args(["--agent", "echo"]).named == "echo"
