"""A session that goes from one process to the next, as hosts in the field end the one and start the other."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.patience import PATIENCE_SECONDS
from tests.wires.jsonstream.test_stdio_process import fatal

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
        last.process.send_signal(signal.SIGTERM)
        assert last.wait() == 143
        assert last.process.stderr is not None
        assert b"never awaited" not in last.process.stderr.read()
        with AgentProcess(*flags) as following:
            assert following.until("ready")[-1]["session_id"] == "s1"
            following.message("hello")
            following.until("stream_end")
            assert following.kill(signal.SIGTERM) == 143
    assert "already exists" in fatal(*flags)["error"]["message"]


def test_a_signal_that_comes_within_an_import_is_not_lost(tmp_path: Path) -> None:
    # Modules are forgotten by callbacks whose exceptions go nowhere: a signal that comes in one ends nothing by itself.
    program = """
import os, signal, weakref
from trunkline.cli import agent
from trunkline.base.signals import exit_on_signals

class Gone: pass

exit_on_signals()
gone = Gone()
watching = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGTERM))
del gone
agent.main(["--json-stream", "--agent", "echo", "--session-id", "s1"])
"""
    done = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with done:
        try:
            assert done.wait(PATIENCE_SECONDS) == 143
        finally:
            done.kill()


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
