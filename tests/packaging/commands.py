"""Running the installed program as its users do: a fresh process, its own directory, a bounded time."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.patience import PATIENCE_SECONDS

ECHO_AGENT = ("agent", "--json-stream", "--agent", "echo")
ECHO_TEXT = "Is anybody there?"


class EchoTurn(NamedTuple):
    """One message and all that came back."""

    events: list[dict[str, Any]]
    stderr: str
    exit_code: int

    @property
    def text(self) -> str:
        return "".join(event["text"] for event in self.events if event["type"] == "text_delta")


def clean_environment() -> dict[str, str]:
    """This process's environment without what would reach into a measured or foreign Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}


def echo_turn(command: list[str], directory: Path) -> EchoTurn:
    """Sends one message to the echo agent that `command` starts, and closes its stdin after `stream_end`."""
    message = {"type": "message", "msg_id": "m1", "input": ECHO_TEXT}
    events: list[dict[str, Any]] = []
    stderr = directory / "stderr"
    with (
        stderr.open("wb") as log,
        subprocess.Popen(
            command, cwd=directory, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as agent,
    ):
        assert agent.stdin is not None
        assert agent.stdout is not None
        patience = threading.Timer(PATIENCE_SECONDS, agent.kill)
        patience.start()
        try:
            for line in agent.stdout:
                events.append(json.loads(line))
                if events[-1]["type"] == "ready":
                    agent.stdin.write(json.dumps(message).encode() + b"\n")
                    agent.stdin.flush()
                elif events[-1]["type"] == "stream_end":
                    agent.stdin.close()
            exit_code = agent.wait()
        finally:
            patience.cancel()
            agent.kill()
    return EchoTurn(events, stderr.read_text(errors="replace"), exit_code)
