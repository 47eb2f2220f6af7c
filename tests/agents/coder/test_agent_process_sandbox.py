"""The sandbox and commands in the background, from outside: what the host sees, and what the model is told."""

from __future__ import annotations

import json
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.base.processes import is_alive
from tests.support.agent_process import AgentProcess
from tests.support.coding import Coder, calls, coding, eventually, of, says
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.config import user_file
from trunkline.base.redact import MASK
from trunkline.tools.sandbox.availability import problem

pytestmark = pytest.mark.process

with_sandbox = pytest.mark.skipif(bool(problem()), reason=f"no sandbox here: {problem()}")

_NO_SANDBOX = """
from trunkline.tools.sandbox import availability
availability.problem = lambda: "it needs another kernel"
from trunkline.cli import main
main()
"""


def bash(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, **more}


class TestSandbox:
    @with_sandbox
    def test_ready_says_that_it_is_on_and_the_model_learns_why_a_write_failed(self, tmp_path: Path) -> None:
        workspace, outside = tmp_path / "workspace", tmp_path / "outside"
        workspace.mkdir()
        steps = calls(bash(f"echo x > inside; echo x > {outside}")), says("So it is.")
        with coding(workspace, *steps, flags=("--no-session", "--sandbox", "on", "--mode", "yolo")) as agent:
            assert agent.lines[0]["capabilities"]["sandbox"] == "on"
            agent.ask("Write outside.")
            (result,) = agent.asked.results
        assert "Read-only file system" in result
        assert "The sandbox was why" in result
        assert (workspace / "inside").exists()
        assert not outside.exists()

    @with_sandbox
    @pytest.mark.parametrize("name", ["trunkline.toml", ".aionrs.toml", ".trunkline/skills", ".claude/commands"])
    def test_where_the_workspace_is_trusted_no_command_makes_what_would_count_there(
        self, tmp_path: Path, name: str
    ) -> None:
        """The next session would run the hooks outside of the sandbox."""
        config = Path(user_file())
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"trust = [{json.dumps(str(tmp_path))}]\n")
        steps = calls(bash(f"mkdir -p $(dirname {name}) && touch {name} && echo MADE")), says("So it is.")
        with coding(tmp_path, *steps, flags=("--no-session", "--sandbox", "on", "--mode", "yolo")) as agent:
            agent.ask("Make it.")
            (result,) = agent.asked.results
            # Nobody stumbles over what keeps the place.
            with coding(tmp_path, says("Hello."), flags=("--no-session",)) as other:
                other.ask("hi")
            agent.end()
        assert "MADE" not in result
        assert not (tmp_path / name.partition("/")[0]).exists()

    @with_sandbox
    def test_what_hides_in_it_does_not_outlive_an_agent_that_is_killed(self, tmp_path: Path) -> None:
        """It has no parent, session or environment by which it could be known."""
        hide = "env -i /usr/bin/setsid /bin/sh -c 'echo up > up; exec /bin/sleep 603.5'"
        steps = calls(bash(f"({hide} &) ; until [ -e up ]; do sleep 0.02; done")), says("It hides.")
        with coding(tmp_path, *steps, flags=("--no-session", "--sandbox", "on", "--mode", "yolo")) as agent:
            agent.ask("Hide.")
            eventually(sleeping, "it has begun")
            agent.kill(signal.SIGKILL)
            eventually(lambda: not sleeping(), "it has ended")

    def test_without_it_ready_says_off(self, tmp_path: Path) -> None:
        with coding(tmp_path) as agent:
            assert agent.lines[0]["capabilities"]["sandbox"] == "off"

    @with_sandbox
    def test_auto_is_on_where_it_can_be_had(self, tmp_path: Path) -> None:
        with coding(tmp_path, flags=("--no-session", "--sandbox", "auto")) as agent:
            assert agent.lines[0]["capabilities"]["sandbox"] == "on"

    def test_where_it_cannot_be_had_on_is_a_config_error(self, tmp_path: Path) -> None:
        with nowhere(tmp_path, "on") as agent:
            line = agent.line()
            assert line is not None
            assert (line["type"], line["error"]["code"]) == ("error", "config_error")
            assert "There is no sandbox here" in line["error"]["message"]
            assert agent.line() is None
            assert agent.process.wait() != 0

    def test_where_it_cannot_be_had_auto_is_off_and_says_so(self, tmp_path: Path) -> None:
        with nowhere(tmp_path, "auto") as agent:
            assert agent.until("ready")[-1]["capabilities"]["sandbox"] == "off"
            agent.message("hi")
            assert any("There is no sandbox here" in line["message"] for line in of(agent.until("stream_end"), "info"))


class Nowhere(AgentProcess):
    """An agent on a machine that has no sandbox."""

    command = (sys.executable, "-P", "-c", _NO_SANDBOX, "agent", "--json-stream")


def nowhere(workspace: Path, sandbox: str) -> AgentProcess:
    return Nowhere("--provider", "mock", "--no-session", "--workspace", str(workspace), "--sandbox", sandbox)


class TestBackground:
    def test_a_command_runs_on_over_turns_and_is_read_and_ended_unasked(self, tmp_path: Path) -> None:
        command = "echo up; until [ -e go ]; do sleep 0.02; done; echo over; exit 5"
        with coding(tmp_path, calls(bash(command, run_in_background=True)), says("It runs.")) as agent:
            bash_id = started(agent)
            text = read_until(agent, bash_id, "up")
            assert "Status: running" in text
            (tmp_path / "go").touch()
            text = read_until(agent, bash_id, "Exit code: 5")
            assert "over" in text
            assert "up" not in text

    def test_it_outlives_a_stop_and_ends_with_the_agent(self, tmp_path: Path) -> None:
        server = calls(bash("echo $$ > pid; exec sleep 600", run_in_background=True))
        with coding(tmp_path, server, says("It runs."), calls(bash("sleep 600"))) as agent:
            bash_id = started(agent)
            agent.message("Wait.")
            agent.approve(agent.request())
            agent.until("tool_running")
            agent.stop()
            assert "Status: running" in looked(agent, "BashOutput", bash_id)
            eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it has begun")
            pid = int((tmp_path / "pid").read_text())
            assert is_alive(pid)
            assert agent.process.stdin is not None
            agent.process.stdin.close()
            agent.process.wait(PATIENCE_SECONDS)
        assert not is_alive(pid)

    def test_it_is_ended_unasked(self, tmp_path: Path) -> None:
        with coding(tmp_path, calls(bash("sleep 600", run_in_background=True)), says("It runs.")) as agent:
            assert "[ended by KillBash]" in looked(agent, "KillBash", started(agent))


class TestLive:
    def test_what_a_running_command_prints_comes_as_info(self, tmp_path: Path) -> None:
        command = "echo first line; until [ -e go ]; do sleep 0.02; done; echo the end"
        with coding(tmp_path, calls(bash(command)), says("Done.")) as agent:
            agent.message("Run it.")
            agent.approve(agent.request())
            agent.until("tool_running")
            assert agent.until("info")[-1]["message"] == "first line"
            (tmp_path / "go").touch()
            (result,) = of(agent.see_out(), "tool_result")
            assert "the end" in result["output"]

    def test_secrets_are_masked_in_it(self, tmp_path: Path) -> None:
        command = 'echo "$SOME_TOKEN"; until [ -e go ]; do sleep 0.02; done'
        with coding(tmp_path, calls(bash(command)), says("Done."), env={"SOME_TOKEN": "tr0ub4dor-and-3"}) as agent:
            agent.message("Run it.")
            agent.approve(agent.request())
            agent.until("tool_running")
            assert agent.until("info")[-1]["message"] == MASK
            (tmp_path / "go").touch()
            agent.see_out()


def sleeping() -> list[Path]:
    """The process that hides."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"603.5" in place.read_bytes().split(b"\0"):
                found.append(place)
    return found


def started(agent: Coder) -> str:
    agent.message("Start it.")
    agent.approve(agent.request())
    agent.see_out()
    found = re.search(r"^bash_id: (\S+)$", agent.asked.results[-1], re.MULTILINE)
    assert found
    return found[1]


def looked(agent: Coder, tool: str, bash_id: str) -> str:
    """What the model is told, without anybody being asked."""
    agent.stub.play(calls((tool, {"bash_id": bash_id})))
    agent.stub.play(says("I see."))
    agent.message("Look.")
    lines = agent.until("stream_end")
    assert not of(lines, "tool_request")
    return agent.asked.results[-1]


def read_until(agent: Coder, bash_id: str, words: str) -> str:
    text = ""
    while words not in text:
        assert "Exit code" not in text
        text += looked(agent, "BashOutput", bash_id)
    return text
