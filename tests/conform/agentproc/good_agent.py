"""An AgentProc agent that does everything right, in both dialects, with nothing but the standard library.

Bad habits are subclasses of it; see `broken_agents.py`.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PREFIXES = ("AGENT_SESSION:", "AGENT_PARTIAL:", "AGENT_ERROR:")
#: Longer than any check waits.
LONG_SECONDS = 20.0


class Failure(Exception):
    """The turn fails; the text is for the user."""


class GoodAgent:
    def __init__(self, new: bool, environ: dict[str, str]) -> None:
        self.new = new
        self.environ = environ
        self.home = environ.get("TRUNKLINE_HOME", "")
        self.message = self.session_id = self.session_name = ""
        self.streaming = True
        self.permission = False
        self.names: list[str] = []
        self.text = ""
        self.buffer = b""

    def main(self) -> int:
        signal.signal(signal.SIGTERM, self.on_term)
        self.begin()
        try:
            self.read_turn()
            self.open_session()
            if not self.message and not self.names:
                raise Failure("Say something.")
            for piece in self.answer():
                self.text += piece
                self.say_piece(piece)
            self.say_end()
        except Failure as failure:
            return self.fail(str(failure))
        return self.leave()

    def begin(self) -> None:
        """For habits."""

    def leave(self) -> int:
        return 0

    def on_term(self, *_: object) -> None:
        os._exit(143)

    # The turn.

    def read_turn(self) -> None:
        if self.new:
            self.read_line()
        else:
            self.read_variables()

    def read_variables(self) -> None:
        self.message = self.environ["AGENT_MESSAGE"]
        self.session_id = self.environ.get("AGENT_SESSION_ID", "")
        self.session_name = self.environ.get("AGENT_SESSION_NAME", "default")
        self.streaming = self.environ.get("AGENT_STREAMING", "1") != "0"
        self.names = [item["name"] for item in json.loads(self.environ.get("AGENT_ATTACHMENTS", "[]"))]

    def read_line(self) -> None:
        self.take_turn(self.line() or {})

    def take_turn(self, turn: dict[str, Any]) -> None:
        self.message, self.session_id = turn["message"], turn["session_id"]
        self.session_name = turn["session_name"]
        self.permission = turn.get("permission", False)
        self.names = [item["filename"] for item in turn.get("attachments", ())]

    def line(self) -> dict[str, Any] | None:
        while b"\n" not in self.buffer:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    # The session: a file that holds the number of messages.

    def open_session(self) -> None:
        if not self.session_id:
            self.session_id = self.new_id()
        elif not os.path.exists(self.file()):
            self.on_unknown()
        count = self.count() + 1
        os.makedirs(self.home, exist_ok=True)
        with open(self.file(), "w", encoding="utf-8") as file:
            file.write(str(count))
        self.say_session()

    def new_id(self) -> str:
        return f"s{time.time_ns()}-{os.getpid()}"

    def file(self) -> str:
        return os.path.join(self.home, self.session_id.encode().hex())

    def count(self) -> int:
        try:
            with open(self.file(), encoding="utf-8") as file:
                return int(file.read())
        except OSError:
            return 0

    def on_unknown(self) -> None:
        self.session_id = ""
        raise Failure("The session is not known here.")

    # The answer.

    def answer(self) -> Iterator[str]:
        if "model fails" in self.message:
            raise Failure("Rate limited.")
        if "single word: hello" in self.message:
            yield from ("hel", "lo")
        elif found := re.search("(?s)<<(.*)>>", self.message):
            yield found[1]
        elif "from 1 to 2000" in self.message:
            yield from self.long()
        elif "How many messages" in self.message:
            yield str(self.count())
        elif "Write tool" in self.message:
            yield self.use_tool()
        else:
            yield " ".join(["You said:", self.message, *self.names])

    def long(self) -> Iterator[str]:
        yield "1\n"
        time.sleep(LONG_SECONDS)

    def use_tool(self) -> str:
        if not self.permission or not self.ask():
            return "I may not."
        self.write_file()
        return "Done."

    def write_file(self) -> None:
        with open("conform-write.txt", "w", encoding="utf-8") as file:
            file.write("hello")

    def ask(self) -> bool:
        self.event("permission_request", request_id="r1", tool_name="Write", input={"file": "conform-write.txt"})
        while (answer := self.line()) is not None:
            if answer["request_id"] == "r1":
                return bool(answer["behavior"] == "allow")
        return False

    # What it says.

    def say_session(self) -> None:
        if not self.new:
            self.write(f"AGENT_SESSION:{self.session_id}\n")

    def say_piece(self, piece: str) -> None:
        if self.new:
            self.event("partial", text=piece)
        elif self.streaming:
            self.write(f"AGENT_PARTIAL:{json.dumps(piece, ensure_ascii=False)}\n")

    def say_end(self) -> None:
        if self.new:
            self.event("result", text=self.text)
        elif not self.streaming:
            self.say_body()

    def say_body(self) -> None:
        lines = (f" {line}" if line.startswith(PREFIXES) else line for line in self.text.split("\n"))
        self.write("\n".join(lines) + "\n")

    def fail(self, why: str) -> int:
        if self.new:
            self.event("error", message=why)
        else:
            self.write(f"AGENT_ERROR:{json.dumps(why)}\n")
        return 1

    def event(self, type: str, **members: Any) -> None:
        self.write(json.dumps({"type": type, **members, "session_id": self.session_id}, ensure_ascii=False) + "\n")

    def write(self, text: str) -> None:
        data = memoryview(self.encode(text))
        while data:
            data = data[os.write(1, data) :]

    def encode(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")


def input_waits(seconds: float = 0.0) -> bool:
    """Whether standard input has something to read, its end included."""
    return bool(select.select([0], [], [], seconds)[0])


def utf8_environ() -> dict[str, str]:
    """The variables as UTF-8, whatever the locale."""
    return {name.decode(): value.decode("utf-8", "surrogateescape") for name, value in os.environb.items()}


def run(agent: GoodAgent) -> None:
    sys.exit(agent.main())
