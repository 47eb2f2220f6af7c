"""The agent that a kit plays behind a bridge or a host: it writes down what it was given, and then plays its part.

    probe.py FOLDER [arguments]

Run as a program by itself, with nothing but the standard library. `FOLDER/plan.json` is its part, a list of steps, each
a list of the step's name and its values; texts in it stand for bytes (Latin-1). What it was given goes to
`FOLDER/got.json`. It holds a lock while it lives, and does not outlive its plan: when the folder is gone, so is it.

With the step `listen` it hears what comes on standard input while it plays: each line goes to `FOLDER/heard` at once,
with its time, and so does the end. `say` and `serve` then speak the JSON stream.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Started for every turn of every check: it imports nothing that it does not need.
    from typing import Any

#: No part takes longer than this, unless it says so: whatever goes wrong, nothing is left running for long.
LIFETIME_SECONDS = 30.0
#: How long it waits for standard input to end.
INPUT_SECONDS = 2.0
_LOOK_SECONDS = 0.02

AGENT_LOCK, CHILD_LOCK = "agent.lock", "child.lock"
#: The mark of one that waited for the end of its input, and had to end by itself.
UNENDED = "unended"


class Probe:
    """One run."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.deadline = time.monotonic() + LIFETIME_SECONDS
        self.lock = self.hold(AGENT_LOCK)
        self.commands: list[dict[str, Any]] = []
        """What was heard, and is an object."""
        self.answered = 0
        """How many messages of them were taken up."""
        self.msg_id = ""
        self.ended = False
        """Whether standard input has."""

    def main(self) -> None:
        """Write down what was given, then play."""
        given = {"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
        self.put("got.json", json.dumps(given))
        with open(self.path("plan.json"), encoding="utf-8") as file:
            plan = json.load(file)
        self.play(plan)
        self.leave(0)

    def play(self, steps: list[list[Any]]) -> None:
        """One step after the other."""
        for name, *values in steps:
            getattr(self, f"do_{name}")(*values)

    # The steps.

    def do_live(self, seconds: float) -> None:
        """Live for that long, from now on: a part that outlives its peer has to take longer than that may."""
        self.deadline = time.monotonic() + seconds

    def do_out(self, text: str) -> None:
        """Write to standard output."""
        self.write(1, text.encode("latin-1"))

    def do_err(self, text: str) -> None:
        """Write to standard error."""
        self.write(2, text.encode("latin-1"))

    def do_bytes(self, text: str) -> None:
        """Write to standard output one byte at a time, each in a write of its own."""
        for byte in text.encode("latin-1"):
            self.write(1, bytes((byte,)))
            time.sleep(0.002)

    def do_flood(self, fd: int, size: int) -> None:
        """Write that many bytes without a line feed."""
        self.write(fd, b"x" * size)

    def do_wait(self, seconds: float) -> None:
        """Do nothing for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < min(end, self.deadline) and os.path.exists(self.path("plan.json")):
            time.sleep(min(_LOOK_SECONDS, max(end - time.monotonic(), 0)))

    def do_await(self, name: str) -> None:
        """Wait for a file in the folder."""
        while time.monotonic() < self.deadline and not os.path.exists(self.path(name)):
            if not os.path.exists(self.path("plan.json")):
                self.leave(1)
            time.sleep(_LOOK_SECONDS)

    def do_mark(self, name: str) -> None:
        """Leave a file in the folder, with the time."""
        self.put(name, str(time.monotonic()))

    def do_read(self) -> None:
        """Write down what is on standard input, and whether it ends."""
        data, ended, end = b"", False, time.monotonic() + INPUT_SECONDS
        while not ended and (left := end - time.monotonic()) > 0 and select.select([0], [], [], left)[0]:
            chunk = os.read(0, 1 << 16)
            data, ended = data + chunk, not chunk
        self.put("input.json", json.dumps({"data": data.decode("latin-1"), "ended": ended}))

    # Those that hear while they play.

    def do_listen(self) -> None:
        """Hear standard input from now on, and SIGTERM, which ends it."""
        from threading import Thread

        self.do_on("SIGTERM")
        Thread(target=self.hear, daemon=True).start()

    def do_message(self, seconds: float) -> None:
        """Wait for the next message; what is said then is said about it. Without one there is nothing more to play."""
        end = min(time.monotonic() + seconds, self.deadline)
        while not (news := self.messages()[self.answered :]):
            if self.ended or time.monotonic() > end or not os.path.exists(self.path("plan.json")):
                self.leave(0 if self.ended else 3)
            time.sleep(_LOOK_SECONDS)
        self.answered += 1
        self.msg_id = str(news[0].get("msg_id"))

    def do_decisions(self, count: int, seconds: float) -> None:
        """Wait until so many requests are decided, or until it is clear that they will not be."""
        end = min(time.monotonic() + seconds, self.deadline)
        while not self.ended and time.monotonic() < end:
            if sum(each.get("type") in ("tool_approve", "tool_deny") for each in self.commands) >= count:
                return
            time.sleep(_LOOK_SECONDS)

    def do_say(self, *events: dict[str, Any]) -> None:
        """Write events, each in a line; `$msg_id` in them is that of the message."""
        self.write(1, b"".join(map(self.line, events)))

    def do_dribble(self, *events: dict[str, Any]) -> None:
        """The same, byte by byte."""
        for byte in b"".join(map(self.line, events)):
            self.write(1, bytes((byte,)))
            time.sleep(0.001)

    def do_serve(self, text: str) -> None:
        """Answer every further message with that text, until the input ends."""
        while True:
            self.do_message(self.deadline - time.monotonic())
            own = {"msg_id": "$msg_id"}
            self.do_say({"type": "stream_start", **own}, {"type": "text_delta", "text": text, **own})
            self.do_say({"type": "stream_end", **own})

    def do_end(self, seconds: float) -> None:
        """Wait for the end of the input, but not longer; that it did not come leaves a mark."""
        end = min(time.monotonic() + seconds, self.deadline)
        while not self.ended and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        if not self.ended:
            self.do_mark(UNENDED)

    def hear(self) -> None:
        """In a thread: what comes on standard input."""
        rest = b""
        with open(self.path("heard"), "a", encoding="ascii") as file:

            def note(line: bytes | None) -> None:
                file.write(json.dumps([time.monotonic(), None if line is None else line.decode("latin-1")]) + "\n")
                file.flush()

            while chunk := os.read(0, 1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    note(line)
                    try:
                        command = json.loads(line)
                    except ValueError:
                        command = None
                    if isinstance(command, dict):
                        self.commands.append(command)
            if rest:
                note(rest + b"(and no line feed)")
            note(None)
        self.ended = True

    def messages(self) -> list[dict[str, Any]]:
        """The messages that were heard."""
        return [each for each in self.commands if each.get("type") == "message"]

    def line(self, event: dict[str, Any]) -> bytes:
        """An event as a line, about the message that was heard last."""
        filled = {name: self.msg_id if value == "$msg_id" else value for name, value in event.items()}
        return json.dumps(filled, ensure_ascii=False).encode() + b"\n"

    def do_ignore(self, name: str) -> None:
        """Ignore a signal."""
        signal.signal(getattr(signal, name), signal.SIG_IGN)

    def do_on(self, name: str, *steps: list[Any]) -> None:
        """When the signal comes, leave a mark of its name, play steps, and leave."""

        def handle(*_: object) -> None:
            self.put(name, "")
            self.play(list(steps))
            self.leave(0)

        signal.signal(getattr(signal, name), handle)

    def do_child(self, seconds: float) -> None:
        """Start a process that does nothing but hold standard output and error."""
        if os.fork() == 0:
            os.close(self.lock)
            self.lock = self.hold(CHILD_LOCK)
            self.put("child", "")
            self.do_wait(seconds)
            os._exit(0)
        self.do_await("child")

    def do_die(self, name: str) -> None:
        """End by a signal."""
        number = getattr(signal, name)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def do_exit(self, code: int) -> None:
        """Leave."""
        self.leave(code)

    # How it is done.

    def leave(self, code: int) -> None:
        """Without any clean-up: all has been written."""
        os._exit(code)

    def path(self, name: str) -> str:
        """A file of this run."""
        return os.path.join(self.folder, name)

    def put(self, name: str, text: str) -> None:
        """A file that is whole as soon as it is there."""
        draft = self.path(f"{name}.{os.getpid()}")
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, self.path(name))

    def hold(self, name: str) -> int:
        """A lock that ends with this process."""
        fd = os.open(self.path(name), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    def write(self, fd: int, data: bytes) -> None:
        """All of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]


if __name__ == "__main__":
    Probe(sys.argv[1]).main()
