"""A real `trunkline agent --json-stream` process, and a host that lets it do whatever it asks for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.support.host import Host
from tests.support.patience import PATIENCE_SECONDS

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Talk(NamedTuple):
    """All that the agent said, checked line by line, and how it left."""

    lines: list[dict[str, Any]]
    exit_code: int

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a type."""
        return [line for line in self.lines if line["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(line["text"] for line in self.of("text_delta"))


def approve(request: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_approve", "call_id": request["call_id"]}


@contextmanager
def agent(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which is gone after the block and does not outlive the patience."""
    command = [sys.executable, "-m", "trunkline", "agent", "--json-stream", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def send(process: subprocess.Popen[bytes], command: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(command).encode() + b"\n")
    process.stdin.flush()


def converse(arguments: Sequence[str], messages: Sequence[str], answer: Answer = approve) -> Talk:
    """Send the messages one after the other, answer every request, and close the stream after the last answer."""
    waiting = [{"type": "message", "msg_id": f"m{number}", "input": text} for number, text in enumerate(messages, 1)]
    host = Host()
    with agent(*arguments) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            host.write(line)
            host.flush()
            said = host.lines[-1]
            if said["type"] == "tool_request":
                send(process, answer(said))
            elif said["type"] in ("ready", "stream_end"):
                if waiting:
                    send(process, waiting.pop(0))
                else:
                    process.stdin.close()
        exit_code = process.wait()
    assert host.open_messages == []
    return Talk(host.lines, exit_code)
