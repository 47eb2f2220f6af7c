"""A session that goes from one process to the next, as hosts in the field end the one and start the other."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess
from tests.wires.jsonstream.test_agent_process import fatal

pytestmark = pytest.mark.process


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A script with a tool that ignores signals."""
    stubborn = ["sh", "-c", "trap '' TERM INT; sleep 300 & wait; sleep 300"]
    tool = {"name": "Bash", "category": "exec", "args": {}, "id": "t1", "run": stubborn}
    turns = [{"when": "run", "steps": [{"tool": tool}]}, {"steps": [{"text": "You said {{input}}"}]}]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "test", "turns": turns}))
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_session_is_had_by_the_next_process_while_the_last_one_is_still_ending(
    tmp_path: Path, script: str, number: signal.Signals
) -> None:
    flags = ("--script", script, "--auto-approve", "--workspace", str(tmp_path))
    with AgentProcess(*flags, "--session-id", "s1") as last:
        last.message("run")
        last.until("tool_running")
        # Its tool ignores signals.
        last.process.send_signal(number)
        with AgentProcess(*flags, "--resume", "s1") as following:
            assert following.until("ready")[-1]["session_id"] == "s1"
            following.message("hello", "m2")
            assert following.until("stream_end")[-1]["msg_id"] == "m2"
        assert last.wait() == 128 + number


def test_an_id_is_free_again_when_a_signal_ends_a_process_that_was_never_used(tmp_path: Path, script: str) -> None:
    flags = ("--script", script, "--workspace", str(tmp_path), "--session-id", "s1")
    with AgentProcess(*flags) as last:
        last.until("ready")
        # Only a loop that runs ends it in good order.
        last.send(type="ping")
        last.until("pong")
        last.process.send_signal(signal.SIGTERM)
        with AgentProcess(*flags) as following:
            assert following.until("ready")[-1]["session_id"] == "s1"
            following.message("hello")
            following.until("stream_end")
            assert following.kill(signal.SIGTERM) == 143
    assert "already exists" in fatal(*flags)["error"]["message"]


@pytest.mark.slow
def test_a_session_that_another_process_goes_on_with_is_refused_after_a_while(tmp_path: Path, script: str) -> None:
    flags = ("--script", script, "--workspace", str(tmp_path))
    with AgentProcess(*flags, "--session-id", "s1") as holder:
        holder.message("hello")
        holder.until("stream_end")
        error = fatal(*flags, "--resume", "s1", retryable=True)
        assert f"is in use by process {holder.process.pid}" in error["error"]["message"]
        holder.message("hello", "m2")
        holder.until("stream_end")
