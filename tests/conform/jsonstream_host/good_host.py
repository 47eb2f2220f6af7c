"""A host of the JSON stream that does everything right, with nothing but the standard library.

    run_host.py NAME AGENT [PROMPT]

Without a prompt each line of standard input is one. Bad habits are subclasses of it; see `broken_hosts.py`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How long an agent may take to be ready, and to leave.
READY_SECONDS = 4.0
LEAVE_SECONDS = 1.5


class Failed(Exception):
    """There is no answer. The text is for the user."""


class GoodHost:
    errors: int | None = None
    """Where the agent's standard error goes: to ours."""

    def __init__(self, agent: str, prompts: list[str]) -> None:
        self.agent = agent
        self.prompts = prompts
        self.rest = b""
        self.lines: list[bytes] = []
        self.number = 0
        self.msg_id = ""

    def main(self) -> int:
        signal.signal(signal.SIGINT, self.on_interrupt)
        self.start()
        try:
            self.greet()
            for prompt in self.prompts:
                self.ask(prompt)
        except Failed as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
        except InterruptedError:
            self.send(type="stop")
            return 130
        finally:
            self.end()
        return 0

    def on_interrupt(self, *_: object) -> None:
        raise InterruptedError

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.agent, "--json-stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into, self.out = self.process.stdin, self.process.stdout

    # The beginning

    def greet(self) -> None:
        event = self.wait_for_ready()
        self.check_version(str(event["version"]))

    def wait_for_ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + READY_SECONDS
        while (event := self.event(deadline)) is None or not self.is_ready(event):
            if event is not None and event["type"] == "error":
                self.fatal(event)
        return event

    def is_ready(self, event: dict[str, Any]) -> bool:
        return bool(event["type"] == "ready")

    def fatal(self, event: dict[str, Any]) -> None:
        raise Failed(event["error"]["message"])

    def check_version(self, version: str) -> None:
        if version.split(".")[0] != "0":
            raise Failed(f"the agent speaks version {version}, which is not known here")

    # A turn

    def ask(self, prompt: str) -> None:
        self.number += 1
        self.msg_id = self.new_id()
        self.send(type="message", msg_id=self.msg_id, input=prompt)
        while True:
            event = self.event(None)
            if event is not None and self.is_over(event):
                break
            if event is not None:
                self.handle(event)
        self.show("\n")

    def new_id(self) -> str:
        return f"m{self.number}"

    def is_over(self, event: dict[str, Any]) -> bool:
        return bool(event["type"] == "stream_end" and event["msg_id"] == self.msg_id)

    def handle(self, event: dict[str, Any]) -> None:
        handler = getattr(self, f"on_{event['type']}", None)
        if handler is not None:
            handler(event)

    def on_text_delta(self, event: dict[str, Any]) -> None:
        if event["msg_id"] == self.msg_id:
            self.show(event["text"])

    def on_tool_request(self, event: dict[str, Any]) -> None:
        self.send(type="tool_approve", call_id=event["call_id"], scope="once")

    def on_error(self, event: dict[str, Any]) -> None:
        sys.stderr.write(f"{event['error']['message']}\n")

    def show(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    # The end

    def end(self) -> None:
        self.into.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            self.process.send_signal(number)
            try:
                self.process.wait(LEAVE_SECONDS)
                return
            except subprocess.TimeoutExpired:
                continue

    # Lines

    def send(self, **command: Any) -> None:
        try:
            self.write(json.dumps(command).encode() + b"\n")
        except BrokenPipeError:
            return

    def write(self, data: bytes) -> None:
        self.into.write(data)

    def event(self, deadline: float | None) -> dict[str, Any] | None:
        """The next event; None for a line that is none."""
        while not self.lines:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.out], [], [], wait)[0]:
                raise Failed("the agent was not ready in time")
            self.read()
        return self.parse(self.lines.pop(0))

    def read(self) -> None:
        data = os.read(self.out.fileno(), 65536)
        if not data:
            self.gone()
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.lines += lines

    def gone(self) -> None:
        raise Failed("the agent has ended before its answer did")

    def parse(self, line: bytes) -> dict[str, Any] | None:
        try:
            event = json.loads(line)
        except ValueError:
            return None
        return event if isinstance(event, dict) and isinstance(event.get("type"), str) else None
