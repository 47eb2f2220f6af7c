"""`trunkline mcp serve` as a host meets it: a program that it starts, talks to and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import gone
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "trunkline", "mcp", "serve"]
#: By the contract, from the end of input or SIGTERM to the exit; more where the machine is busy.
ENDING_SECONDS = 3.0

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


class McpHost:
    """A host's end of the pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._number = 0

    def send(self, method: str, request: int | None = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request is not None:
            message["id"] = request
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line, which is a message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        message: dict[str, Any] = json.loads(line)
        self.lines.append(message)
        return message

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self.send(method, self._number, **params)
        while (message := self.read()).get("id") != self._number:
            pass
        return message

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def begin(self) -> Any:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.ask("initialize", **hello)
        self.send("notifications/initialized")
        return answer["result"]

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def host(*arguments: str, **variables: str) -> Iterator[McpHost]:
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | variables,
    ) as process:
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            yield McpHost(process)
        finally:
            patience.cancel()
            process.kill()


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
        assert made.process.stdin is not None
        began = time.monotonic()
        made.process.stdin.close()
        assert made.exit_code() == 0
        assert time.monotonic() - began < ENDING_SECONDS + PATIENCE_SECONDS / 4


@pytest.mark.parametrize("ending", ["eof", "sigterm"])
def test_it_ends_in_the_middle_of_a_turn(tmp_path: Path, script: Path, ending: str) -> None:
    with host("--script", str(script), "--workspace", str(tmp_path)) as made:
        made.begin()
        call = {"name": "ask_scripted", "arguments": {"message": "hang"}, "_meta": {"progressToken": 1}}
        made.send("tools/call", 99, **call)
        while "I begin." not in str(made.read()):
            pass
        began = time.monotonic()
        if ending == "eof":
            assert made.process.stdin is not None
            made.process.stdin.close()
        else:
            made.process.send_signal(signal.SIGTERM)
        assert made.exit_code() == (0 if ending == "eof" else 143)
        assert time.monotonic() - began < ENDING_SECONDS + PATIENCE_SECONDS / 4


def test_no_child_is_left(tmp_path: Path) -> None:
    command = f"jsonstream:{sys.executable} -m trunkline agent --json-stream --agent echo"
    with host("--agent", command, "--workspace", str(tmp_path)) as made:
        made.begin()
        name = made.ask("tools/list")["result"]["tools"][0]["name"]
        assert "hello" in made.call(name, message="hello")["content"][0]["text"]
        children = Path(f"/proc/{made.process.pid}/task/{made.process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not list children")
        started = [int(each) for each in children.read_text().split()]
        made.process.send_signal(signal.SIGTERM)
        assert made.exit_code() == 143
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
    done = subprocess.run(
        [*COMMAND, "--agent", "nobody"], capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"nobody" in done.stderr


def test_wrong_options_are_2_and_say_so_on_standard_error() -> None:
    done = subprocess.run(
        [*COMMAND, "--no-such-option"], capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS
    )
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
    done = subprocess.run(
        [*COMMAND, "--agent", "echo", "--workspace", str(tmp_path)],
        capture_output=True,
        input=text,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0
    answers = {each["id"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert "piped" in str(answers[2]["result"])
