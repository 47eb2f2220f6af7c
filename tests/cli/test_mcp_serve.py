"""`trunkline mcp serve` as a host meets it: a program that it starts, talks to and ends."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import gone
from tests.support.piped_program import PipedProgram, finished

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "trunkline", "mcp", "serve"]

HANGS = """
turns:
  - when: hang
    steps:
      - text: "I begin."
      - hang: true
  - steps:
      - tool: {name: Bash, category: exec, args: {command: ls}, output: "a.txt"}
      - text: "Done."
"""


class McpHost(PipedProgram):
    """A host's end of the pipes."""

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def begin(self) -> Any:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.ask("initialize", **hello)
        self.send(method="notifications/initialized", params={})
        return answer["result"]


def host(*arguments: str, **variables: str) -> AbstractContextManager[McpHost]:
    return McpHost.started([*COMMAND, *arguments], **variables)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "hangs.yaml"
    path.write_text(HANGS)
    return path


def test_agents_are_asked_and_sessions_outlive_the_process(tmp_path: Path) -> None:
    place = str(tmp_path)
    with host("--agent", "echo", "--workspace", place) as first:
        assert first.begin()["serverInfo"]["name"] == "trunkline"
        answer = first.call("ask_echo", message="hello", session="mine")
        assert answer["structuredContent"]["session"] == "mine"
        assert "hello" in answer["content"][0]["text"]
    with host("--agent", "echo", "--workspace", place) as second:
        second.begin()
        listed = second.call("list_sessions")["structuredContent"]["sessions"]
        assert "mine" in [each["session"] for each in listed]
        assert second.call("read_session", session="mine")["structuredContent"]["turns"][0]["message"] == "hello"
        resources = second.ask("resources/list")["result"]["resources"]
        assert "trunkline://sessions/mine" in [each["uri"] for each in resources]
        second.call("ask_echo", message="again", session="mine")
        read = second.call("read_session", session="mine")["structuredContent"]
        assert [turn["message"] for turn in read["turns"]] == ["hello", "again"]
        assert second.call("read_session", session="nobody")["isError"]


def test_several_agents_are_several_tools(tmp_path: Path) -> None:
    with host("--agent", "echo", "--agent", "scripted:tour", "--workspace", str(tmp_path)) as made:
        made.begin()
        names = [tool["name"] for tool in made.ask("tools/list")["result"]["tools"]]
    assert names == ["ask_echo", "ask_scripted_tour", "list_sessions", "read_session"]


def test_the_end_of_input_exits_0(tmp_path: Path) -> None:
    with host("--agent", "echo", "--workspace", str(tmp_path)) as made:
        made.begin()
        made.ends("eof")


@pytest.mark.parametrize("ending", ["eof", "sigterm"])
def test_it_ends_in_the_middle_of_a_turn(tmp_path: Path, script: Path, ending: str) -> None:
    with host("--script", str(script), "--workspace", str(tmp_path)) as made:
        made.begin()
        call = {"name": "ask_scripted", "arguments": {"message": "hang"}, "_meta": {"progressToken": 1}}
        made.request("tools/call", **call)
        while "I begin." not in str(made.read()):
            pass
        made.ends(ending)


def test_no_child_is_left(tmp_path: Path) -> None:
    command = f"jsonstream:{sys.executable} -m trunkline agent --json-stream --agent echo"
    with host("--agent", command, "--workspace", str(tmp_path)) as made:
        made.begin()
        name = made.ask("tools/list")["result"]["tools"][0]["name"]
        assert "hello" in made.call(name, message="hello")["content"][0]["text"]
        started = made.children()
        made.ends("sigterm")
    assert all(gone(pid) for pid in started)


def test_what_would_be_asked_is_denied_unless_it_is_allowed(tmp_path: Path, script: Path) -> None:
    arguments = ("--script", str(script), "--workspace", str(tmp_path))
    with host(*arguments) as made:
        made.begin()
        made.call("ask_scripted", message="use a tool", session="denied")
        (turn,) = made.call("read_session", session="denied")["structuredContent"]["turns"]
        assert "tools" not in turn
    with host(*arguments, TRUNKLINE_MODE="yolo") as made:
        made.begin()
        made.call("ask_scripted", message="use a tool", session="allowed")
        (turn,) = made.call("read_session", session="allowed")["structuredContent"]["turns"]
        assert turn["tools"] == [{"name": "Bash", "status": "success"}]


def test_an_agent_that_is_not_there_is_told_at_the_start() -> None:
    done = finished([*COMMAND, "--agent", "nobody"])
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"nobody" in done.stderr


def test_wrong_options_are_2_and_say_so_on_standard_error() -> None:
    done = finished([*COMMAND, "--no-such-option"])
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"--help" in done.stderr


def test_what_is_piped_in_is_answered(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "ask_echo", "arguments": {"message": "piped"}}},
    ]
    text = b"\n".join(json.dumps({"jsonrpc": "2.0"} | line).encode() for line in lines)
    done = finished([*COMMAND, "--agent", "echo", "--workspace", str(tmp_path)], input=text)
    assert done.returncode == 0
    answers = {each["id"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert "piped" in str(answers[2]["result"])
