"""A small agent that speaks the JSON stream well: standard library only, written from the protocol document alone.

The kit has to pass it. The agents of `broken_agents` are this one with one bad habit each, so its methods are cut
where a habit can set in.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import select
import signal
import sys
import time

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start, and there are thousands of starts
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MODES: dict[str, tuple[str, ...]] = {
    "default": (),
    "auto_edit": ("info", "edit"),
    "yolo": ("info", "edit", "exec", "mcp"),
}
MAX_LINE = 16 * 1024 * 1024
# Deep nesting must not reach the parser's stack.
MAX_BRACKETS = 10_000
TICK = 0.01
VALUE_FLAGS = (
    "--provider", "--model", "--max-tokens", "--max-turns", "--base-url", "--system-prompt", "--workspace",
    "--session-id", "--resume",
)  # fmt: skip
FIELDS: dict[str, dict[str, type | tuple[str, ...]]] = {
    "message": {"msg_id": str, "input": str},
    "stop": {},
    "tool_approve": {"call_id": str},
    "tool_deny": {"call_id": str},
    "init_history": {"text": str},
    "set_mode": {"mode": tuple(MODES)},
    "ping": {},
    "set_config": {},
    "add_mcp_server": {"name": str},
}


class Fatal(Exception):
    """The process cannot go on."""


class Call:
    """One tool call."""

    def __init__(self, call_id: str, name: str, category: str, args: dict[str, Any], description: str) -> None:
        self.id = call_id
        self.name = name
        self.category = category
        self.args = args
        self.description = description
        self.state = "new"
        self.process: Any = None
        self.output_type = "text"


class GoodAgent:
    """One process: one session, one turn at a time."""

    version = "0.1.0"

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.flags: dict[str, str] = {}
        self.mode = "default"
        self.grants: set[str] = set()
        self.queue: list[dict[str, Any]] = []
        self.msg_id: str | None = None
        self.turn: Iterator[float] | None = None
        self.wake = 0.0
        self.calls: dict[str, Call] = {}
        self.call_number = 0
        self.session: dict[str, Any] = {"messages": 0, "history": []}
        self.buffer = bytearray()
        self.skipping = False
        self.reason = ""
        self.ended = False
        self.is_held = self.is_terminated = False

    # Output.

    def emit(self, type: str, **members: Any) -> None:
        self.write(json.dumps({"type": type, **members}, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def error(self, code: str, message: str, msg_id: str | None = None, retryable: bool = False) -> None:
        self.emit("error", msg_id=msg_id, error={"code": code, "message": message, "retryable": retryable})

    def refuse(self, message: str) -> None:
        self.error("protocol_error", message)

    # Start.

    def start(self) -> None:
        self.handle_signals()
        self.parse_flags()
        if self.flags.get("--provider", "mock") not in ("mock", "anthropic"):
            raise Fatal("unknown provider")
        if self.flags.get("--provider") == "anthropic" and "ANTHROPIC_API_KEY" not in os.environ:
            raise Fatal("ANTHROPIC_API_KEY not set")
        self.open_session()
        if "--auto-approve" in self.flags:
            self.mode = "yolo"
        self.say_ready()

    def handle_signals(self) -> None:
        signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, *_: object) -> None:
        self.is_terminated = True
        if not self.is_held:
            self.on_sigterm()

    def undisturbed(self, act: Callable[[Call], Any], call: Call) -> Any:
        """Do that with a tool's process. A SIGTERM waits: it would not find a process that is being started."""
        self.is_held = True
        try:
            return act(call)
        finally:
            self.is_held = False
            if self.is_terminated:
                self.on_sigterm()

    def parse_flags(self) -> None:
        rest = [flag for flag in self.argv if flag != "--json-stream"]
        while rest:
            flag = rest.pop(0)
            if flag == "--auto-approve":
                self.flags[flag] = ""
            elif flag in VALUE_FLAGS and rest:
                self.flags[flag] = rest.pop(0)
            else:
                raise Fatal(f"unknown flag {flag}")
        if "--session-id" in self.flags and "--resume" in self.flags:
            raise Fatal("Cannot use --resume and --session-id together")

    def say_ready(self) -> None:
        self.emit("ready", version=self.version, session_id=self.session_id, capabilities=self.capabilities())

    def capabilities(self) -> Any:
        return {"tool_approval": True, "thinking": True, "mcp": True}

    def open_session(self) -> None:
        folder = os.path.join(os.environ.get("TRUNKLINE_HOME", "."), "good-sessions")
        os.makedirs(folder, exist_ok=True)
        resumed = self.flags.get("--resume")
        if resumed == "latest":
            files = sorted(os.scandir(folder), key=lambda file: file.stat().st_mtime_ns)
            if not files:
                raise Fatal("No sessions found")
            resumed = bytes.fromhex(files[-1].name).decode()
        self.session_id = resumed or self.flags.get("--session-id") or f"s{time.time_ns()}"
        self.file = os.path.join(folder, self.session_id.encode().hex())
        if resumed and not os.path.exists(self.file):
            raise Fatal(f"Session '{resumed}' not found")
        if not resumed and os.path.exists(self.file):
            raise Fatal(f"Session ID '{self.session_id}' already exists")
        self.lock = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Fatal("the session is open elsewhere") from None
        if resumed:
            self.load()
        self.save()

    def load(self) -> None:
        self.session = json.loads(content_of(self.file))

    def save(self) -> None:
        os.pwrite(self.lock, json.dumps(self.session).encode().ljust(1000), 0)

    # Input.

    def feed(self, data: bytes) -> None:
        self.buffer += data
        if b"\n" in data:
            *lines, rest = bytes(self.buffer).split(b"\n")
            self.buffer = bytearray(rest)
            for line in lines:
                if self.skipping or len(line) > MAX_LINE:
                    self.skipping = False
                    self.refuse("line too long")
                elif line.strip():
                    self.on_line(line)
        if len(self.buffer) > MAX_LINE:
            self.skipping, self.buffer = True, bytearray()

    def on_line(self, line: bytes) -> None:
        try:
            command = self.decode(line)
        except ValueError:
            return self.refuse("Malformed JSON")
        if not isinstance(command, dict) or not isinstance(command.get("type"), str):
            return self.refuse("not a command")
        if command["type"] not in FIELDS:
            return self.refuse(f"Unknown command type: {command['type']}")
        problem = self.problem_of(command)
        if problem:
            return self.refuse(problem)
        getattr(self, f"on_{command['type']}")(command)
        return None

    def decode(self, line: bytes) -> Any:
        if line.count(b"[") > MAX_BRACKETS:
            raise ValueError("too deep")
        return json.loads(line.decode())

    def problem_of(self, command: dict[str, Any]) -> str | None:
        if command["type"] == "message" and "input" not in command and "content" in command:
            command["input"] = command["content"]
        for name, kind in FIELDS[command["type"]].items():
            value = command.get(name)
            if not (value in kind if isinstance(kind, tuple) else isinstance(value, kind)):
                return f"Invalid `{command['type']}`: `{name}`"
        if not isinstance(command.get("files") or [], list):
            return "Invalid `message`: `files`"
        return "Invalid `scope`" if command.get("scope", "once") not in ("once", "always") else None

    def on_message(self, command: dict[str, Any]) -> None:
        self.session["messages"] += 1
        self.save()
        self.queue.append(command)

    def on_stop(self, command: dict[str, Any]) -> None:
        if self.turn is not None:
            self.abort()
            dropped, self.queue = self.queue, []
            for message in dropped:
                self.drop(message)

    def drop(self, message: dict[str, Any]) -> None:
        self.emit("stream_start", msg_id=message["msg_id"])
        self.end(message["msg_id"])

    def on_tool_approve(self, command: dict[str, Any]) -> None:
        call = self.pending(command["call_id"])
        if call is None:
            return self.refuse("no such call")
        call.state = "approved"
        if command.get("scope") == "always":
            self.grant(call)
        return None

    def grant(self, call: Call) -> None:
        self.grants.add(call.category)
        self.release()

    def on_tool_deny(self, command: dict[str, Any]) -> None:
        call = self.pending(command["call_id"])
        if call is None:
            return self.refuse("no such call")
        self.reason = command.get("reason") or "User denied"
        self.cancel(call, self.reason)
        return None

    def cancel(self, call: Call, reason: str) -> None:
        call.state = "over"
        self.emit("tool_cancelled", msg_id=self.msg_id, call_id=call.id, reason=reason)

    def pending(self, call_id: str) -> Call | None:
        call = self.calls.get(call_id)
        return call if call is not None and call.state == "pending" else None

    def on_init_history(self, command: dict[str, Any]) -> None:
        self.session["history"].append(command["text"])
        self.save()

    def on_set_mode(self, command: dict[str, Any]) -> None:
        self.mode = command["mode"]
        self.release()

    def release(self) -> None:
        for call in self.calls.values():
            if call.state == "pending" and self.allows(call):
                call.state = "approved"

    def allows(self, call: Call) -> bool:
        return call.name == "Read" or call.category in MODES[self.mode] or call.category in self.grants

    def on_ping(self, command: dict[str, Any]) -> None:
        self.emit("pong")

    def on_set_config(self, command: dict[str, Any]) -> None:
        self.emit("info", msg_id=None, message="set_config: no changes")

    def on_add_mcp_server(self, command: dict[str, Any]) -> None:
        self.refuse("no MCP here")

    # Turns.

    def proceed(self) -> None:
        """Advance the turn as far as it goes."""
        while self.turn is not None or self.queue:
            if self.turn is None:
                message = self.queue.pop(0)
                self.msg_id = message["msg_id"]
                self.begin()
                self.turn = self.answer(message)
            try:
                self.wake = time.monotonic() + next(self.turn)
            except StopIteration:
                self.turn = None
                self.finish()
            else:
                return

    def begin(self) -> None:
        self.emit("stream_start", msg_id=self.msg_id)

    def finish(self) -> None:
        self.calls.clear()
        self.end(self.msg_id)

    def end(self, msg_id: str | None) -> None:
        self.emit("stream_end", msg_id=msg_id, usage=self.usage())

    def usage(self) -> Any:
        return {"input_tokens": 12, "output_tokens": 3}

    def abort(self) -> None:
        """End the turn now."""
        self.turn = None
        for call in self.calls.values():
            self.kill(call)
            if call.state != "over":
                self.cancel(call, "Stopped by user")
        self.finish()

    def kill(self, call: Call) -> None:
        if call.process is not None and call.process.poll() is None:
            os.killpg(call.process.pid, signal.SIGKILL)
            call.process.wait()

    def text(self, text: str) -> None:
        self.emit("text_delta", text=text, msg_id=self.msg_id)

    def answer(self, message: dict[str, Any]) -> Iterator[float]:
        text: str = message["input"]
        found: re.Match[str] | None
        if "when the model fails" in text:
            self.error("provider_error", "Rate limit exceeded", self.msg_id, True)
        elif "single word: hello" in text:
            self.text("hel")
            self.text("lo")
        elif found := re.search("<<(.*)>>", text, re.S):
            self.text(found[1])
        elif "Count from 1" in text:
            for number in range(1, 2001):
                self.text(f"{number}\n")
                yield TICK
        elif "Think step" in text:
            self.emit("thinking", text="2, 3, 5, 7 ...", msg_id=self.msg_id)
            self.text("15")
        elif "attached file" in text:
            self.emit("info", msg_id=self.msg_id, message="no such file")
            self.text("done")
        elif "Which code words" in text:
            self.text(" ".join(self.session["history"]))
        elif "How many messages" in text:
            self.text(str(self.session["messages"]))
        elif calls := self.wanted(text):
            yield from self.use(calls)
            self.text(f"I was told: {self.reason}" if self.reason else "Done.")
        elif not text:
            self.error("protocol_error", "the input is empty", self.msg_id)

    def wanted(self, text: str) -> list[Call]:
        """The calls that a prompt asks for."""
        calls = []
        if "Write tool" in text:
            for file in re.findall(r"conform-\w+\.txt", text):
                calls.append(self.call("Write", "edit", {"file_path": file, "content": "hello\n"}, f"Write to {file}"))
        elif "Edit tool" in text:
            calls.append(self.call("Edit", "edit", {"file_path": "conform-edit.txt"}, "Edit conform-edit.txt"))
        elif "Read tool" in text:
            calls.append(self.call("Read", "info", {"file_path": "conform-read.txt"}, "Read conform-read.txt"))
        elif "ViewImage" in text:
            calls.append(self.call("ViewImage", "info", {"file_path": "conform-image.png"}, "View conform-image.png"))
        elif "MCP" in text:
            calls.append(self.call("lookup", "mcp", {}, "MCP conform/lookup"))
        elif found := re.search("command: `(.*)` Do", text, re.S):
            calls.append(self.call("Bash", "exec", {"command": found[1]}, f"Execute: {found[1]}"))
        return calls

    def call(self, name: str, category: str, args: dict[str, Any], description: str) -> Call:
        self.call_number += 1
        return Call(f"c{self.call_number}", name, category, args, description)

    def use(self, calls: list[Call]) -> Iterator[float]:
        self.reason = ""
        for call in calls:
            self.calls[call.id] = call
            call.state = "approved" if self.allows(call) else "pending"
            if call.state == "pending":
                self.request(call)
        while any(call.state != "over" for call in calls):
            for call in calls:
                self.advance(call)
            yield TICK

    def request(self, call: Call) -> None:
        tool = {"name": call.name, "category": call.category, "args": call.args, "description": call.description}
        self.emit("tool_request", msg_id=self.msg_id, call_id=call.id, tool=tool)

    def advance(self, call: Call) -> None:
        if call.state == "approved":
            call.state = "running"
            self.emit("tool_running", msg_id=self.msg_id, call_id=call.id, tool_name=call.name)
            self.undisturbed(self.begin_tool, call)
        elif call.state == "running" and self.undisturbed(self.is_over, call):
            call.state = "over"
            status, output, more = self.result_of(call)
            self.tell(call, status, output, more)

    def is_over(self, call: Call) -> bool:
        return call.process is None or call.process.poll() is not None

    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        members = {"output_type": "text", **more}
        self.emit(
            "tool_result",
            msg_id=self.msg_id,
            call_id=call.id,
            tool_name=call.name,
            status=status,
            output=output,
            **members,
        )

    def begin_tool(self, call: Call) -> None:
        if call.name == "Bash":
            # Imported here: it would double the time to `ready`.
            import subprocess

            call.process = subprocess.Popen(
                ["sh", "-c", call.args["command"]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                cwd=self.workspace,
                start_new_session=True,
            )

    @property
    def workspace(self) -> str:
        return self.flags.get("--workspace", ".")

    def result_of(self, call: Call) -> tuple[str, str, dict[str, Any]]:
        path = os.path.normpath(os.path.join(self.workspace, call.args.get("file_path", "")))
        if call.name == "Bash":
            output = call.process.stdout.read().decode()
            return "error" if call.process.returncode else "success", output, {}
        if call.name == "Write":
            with open(path, "w") as file:
                file.write(call.args["content"])
        elif call.name == "Edit":
            diff = "--- a/conform-edit.txt\n+++ b/conform-edit.txt\n@@ -1 +1 @@\n-hello\n+goodbye"
            return "success", diff, {"output_type": "diff", "metadata": {"file_path": path}}
        elif call.name == "ViewImage":
            return "success", base64.b64encode(content_of(path)).decode(), {"output_type": "image"}
        return "success", "ok", {}

    # The loop.

    def loop(self) -> None:
        while not self.ended:
            self.proceed()
            timeout = max(0.0, self.wake - time.monotonic()) if self.turn is not None else None
            if select.select([0], [], [], timeout)[0]:
                data = os.read(0, 1 << 20)
                if data:
                    self.feed(data)
                else:
                    self.on_eof()

    def on_eof(self) -> None:
        if self.buffer.strip():
            self.on_line(bytes(self.buffer))
        if self.turn is not None:
            self.abort()
        self.ended = True

    def on_sigterm(self) -> None:
        for call in self.calls.values():
            self.kill(call)
        os._exit(143)


def content_of(path: str) -> bytes:
    """Not with `pathlib`, which would take a fifth of the start."""
    with open(path, "rb") as file:
        return file.read()


def run(agent: GoodAgent) -> int:
    """Be that agent; the exit status."""
    try:
        agent.start()
    except Fatal as error:
        agent.error("config_error", str(error))
        return 1
    agent.loop()
    return 0


if __name__ == "__main__":
    sys.exit(run(GoodAgent(sys.argv[1:])))
