"""An AgentProc bridge that does everything right, with nothing but the standard library.

    good_bridge.py PROFILE MESSAGE SESSION SESSION_NAME FROM IMAGE FILE

It reads the plain YAML that the kit writes, and no other. Bad habits are subclasses of it; see `broken_bridges.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACEHOLDER = re.compile(r"\{\{(MESSAGE|SESSION_ID|SESSION_NAME)\}\}")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SESSION_ID = re.compile(r"[^\s:/\\]+")
#: How long a pipe is read after the agent's end.
DRAIN_SECONDS = 0.2
DEFAULTS: dict[str, Any] = {
    "args": [], "stdin": "none", "cwd": None, "env": {}, "timeout_secs": 1800, "kill_grace_secs": 5,
    "max_reply_chars": 8000, "truncation_suffix": "\n\n…(truncated)", "include_stderr_in_reply": False,
    "streaming": True, "session_line_prefix": "AGENT_SESSION:",
}  # fmt: skip


class Refused(Exception):
    """A profile, or a start, that cannot be."""


class GoodBridge:
    text = False
    """Whether it prints for people; else one object at the end."""

    def __init__(self, arguments: list[str]) -> None:
        self.file, self.message, self.session, self.name, self.sender, self.image, self.attached = arguments
        self.name = self.name or "default"
        self.told = self.session
        self.body: list[str] = []
        self.partials: list[str] = []
        self.error: str | None = None
        self.stderr = b""
        self.buffer = b""
        self.timed_out = self.truncated = False
        self.kept = 0

    def main(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        self.process: subprocess.Popen[bytes] | None = None
        self.is_starting, self.signal = False, 0
        try:
            self.profile = DEFAULTS | self.load()
            self.check()
        except (Refused, OSError) as problem:
            sys.stderr.write(f"{problem}\n")
            return 2
        try:
            process = self.started()
        except (OSError, ValueError) as problem:
            self.error = f"cannot be started: {problem}"
            return self.tell(127)
        self.pump(process)
        return self.tell(self.code(process.wait()))

    def on_signal(self, number: int, _: object) -> None:
        self.signal = number
        if not self.is_starting:
            self.on_ending(number)

    def on_ending(self, number: int) -> None:
        if self.process is not None:
            self.kill()
        os._exit(128 + number)

    def started(self) -> subprocess.Popen[bytes]:
        """The agent's process. A signal waits: it would not find a process that is being started."""
        self.is_starting = True
        try:
            self.process = self.start()
        finally:
            self.is_starting = False
            if self.signal:
                self.on_ending(self.signal)
        return self.process

    # The profile.

    def load(self) -> dict[str, Any]:
        with open(self.file, encoding="utf-8") as file:
            return self.parse(file.read())

    def parse(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        key = ""
        for line in text.splitlines():
            name, _, value = line.strip().partition(": ")
            if line.startswith(("  - ", "    - ")):
                found[key] = [*(found[key] or []), self.scalar(line.strip()[2:])]
            elif line.startswith("  ") and name.endswith(":"):
                key, found[name[:-1]] = name[:-1], None
            elif line.startswith("  ") and isinstance(found.get(key), dict | None) and key == "env":
                found[key] = {**(found[key] or {}), name: self.scalar(value)}
            elif line == "agentproc:":
                found = {}
            elif line.endswith(":"):
                key, found[line[:-1]] = line[:-1], None
            else:
                found[name] = self.scalar(value)
        return found

    def scalar(self, text: str) -> Any:
        if text.startswith('"'):
            return json.loads(text)
        if text in ("true", "false"):
            return text == "true"
        return float(text) if re.fullmatch(r"[0-9.]+", text) else text

    def check(self) -> None:
        if not isinstance(self.profile.get("command"), str):
            raise Refused("the profile has no command")
        words = [*self.profile["command"].split(), *self.profile["args"]]
        if "-c" in words and "{{MESSAGE}}" in str(words[words.index("-c") + 1]):
            raise Refused("the message would be run by a shell")

    # The start.

    def argv(self) -> list[str]:
        return [self.fill(word) for word in [*self.profile["command"].split(), *self.profile["args"]]]

    def fill(self, text: str) -> str:
        values = {"MESSAGE": self.message, "SESSION_ID": self.session, "SESSION_NAME": self.name}
        return PLACEHOLDER.sub(lambda found: values[found[1]], text)

    def expand(self, text: str) -> str:
        return VARIABLE.sub(lambda found: os.environ.get(found[1], ""), text)

    def value(self, text: str) -> str:
        return self.fill(self.expand(text))

    def base(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}

    def turn(self) -> dict[str, str]:
        found = {
            "AGENT_MESSAGE": self.message,
            "AGENT_SESSION_ID": self.session,
            "AGENT_SESSION_NAME": self.name,
            "AGENT_FROM_USER": self.sender,
            "AGENT_STREAMING": "1" if self.profile["streaming"] else "0",
            "AGENT_PROTOCOL_VERSION": "0.1",
        }
        if self.image:
            found["AGENT_IMAGE_URL"] = self.image
            found["AGENT_ATTACHMENTS"] = json.dumps([{"type": "image", "url": self.image, "name": ""}])
        if self.attached:
            found["AGENT_FILE_URL"] = self.attached
        return found

    def env(self) -> dict[str, str]:
        own = {name: self.value(str(text)) for name, text in self.profile["env"].items()}
        return self.base() | own | self.turn()

    def cwd(self) -> str | None:
        return self.fill(self.profile["cwd"]) if self.profile["cwd"] else None

    def stdin(self) -> int:
        return subprocess.PIPE if self.profile["stdin"] == "message" else subprocess.DEVNULL

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv(),
            env=self.env(),
            cwd=self.cwd(),
            stdin=self.stdin(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def input(self) -> bytes:
        return self.message.encode()

    # The turn.

    def pump(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + float(self.profile["timeout_secs"])
        self.left = memoryview(self.input())
        ended_at: float | None = None
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe in (process.stdout, process.stderr):
                selector.register(pipe, selectors.EVENT_READ)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                now = time.monotonic()
                if ended_at is None and process.poll() is not None:
                    ended_at = now
                if ended_at is not None and now > ended_at + DRAIN_SECONDS:
                    break
                if now > deadline:
                    deadline = self.on_deadline(process)
                for key, _ in selector.select(0.01):
                    if not self.step(process, key):
                        selector.unregister(key.fileobj)
        self.kill()
        self.end()

    def step(self, process: subprocess.Popen[bytes], key: selectors.SelectorKey) -> bool:
        """Deal with one pipe; False when it is done with."""
        if key.fileobj is process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.left = self.left[os.write(key.fd, self.left) :]
                if self.left:
                    return True
            assert process.stdin is not None
            process.stdin.close()
            return False
        data = os.read(key.fd, 1 << 16)
        if key.fileobj is process.stdout:
            self.feed(data)
        else:
            self.stderr = (self.stderr + data)[-8192:]
        return bool(data)

    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        """What to do now; returned is when to look again."""
        if self.timed_out:
            self.kill()
            return time.monotonic() + 60
        self.timed_out = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        return time.monotonic() + float(self.profile["kill_grace_secs"])

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def feed(self, data: bytes) -> None:
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            self.hear(line)

    def end(self) -> None:
        if self.buffer:
            self.hear(self.buffer)

    def decode(self, line: bytes) -> str:
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    def hear(self, line: bytes) -> None:
        text = self.decode(line)
        prefix = self.profile["session_line_prefix"]
        if text.startswith(prefix):
            self.on_session(text[len(prefix) :].strip())
        elif text.startswith("AGENT_PARTIAL:"):
            self.on_partial(self.payload(text[14:].strip()))
        elif text.startswith("AGENT_ERROR:"):
            self.on_error(self.payload(text[12:].strip()))
        else:
            self.body.append(text)

    def payload(self, text: str) -> str:
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, str) else text

    def on_session(self, session: str) -> None:
        if SESSION_ID.fullmatch(session):
            self.told = session

    def on_partial(self, text: str) -> None:
        if not self.profile["streaming"] or self.error is not None:
            return
        room = int(self.profile["max_reply_chars"]) - self.kept
        self.kept += len(text)
        if room > 0:
            self.partials.append(text[:room])
            self.show(text[:room])

    def show(self, text: str) -> None:
        if self.text:
            os.write(1, text.encode())

    def on_error(self, text: str) -> None:
        if self.error is None:
            self.error = text or "The agent failed."

    # What came of it.

    def code(self, returncode: int) -> int:
        if self.timed_out:
            return 124
        code = returncode if returncode >= 0 else 128 - returncode
        return 1 if self.error is not None and code == 0 else code

    def reply(self, code: int) -> str:
        return self.cut("\n".join(self.body)) if code == 0 else ""

    def cut(self, reply: str) -> str:
        limit = int(self.profile["max_reply_chars"])
        return reply if len(reply) <= limit else reply[:limit] + self.profile["truncation_suffix"]

    def complaint(self, code: int) -> str:
        if code == 0:
            return ""
        text = self.error or ("The time is over." if self.timed_out else f"The agent failed ({code}).")
        if self.profile["include_stderr_in_reply"]:
            text += "\n" + self.stderr.decode("utf-8", "replace")
        return text

    def tell(self, code: int) -> int:
        found = {
            "reply": self.reply(code),
            "partials": self.partials,
            "session_id": self.told,
            "error": self.complaint(code),
            "exit_code": code,
            "timed_out": self.timed_out,
            "truncated": self.truncated,
        }
        if self.text:
            sys.stdout.write(f"{found['reply']}\n")
            sys.stderr.write(f"{found['error']}\nagentproc:session:{found['session_id']}\n")
        else:
            sys.stdout.buffer.write(json.dumps(found).encode() + b"\n")
        sys.stdout.flush()
        return code
