"""A program that speaks the JSON stream with one bad habit, named by its first argument. Standard library only.

    python misbehaving_agent.py HABIT [--resume ID | --session-id ID]

Without a bad habit (`none`) it answers each message with its own text. Some messages ask for something else:

    args        its own arguments, as JSON
    commands    every command that it was sent so far, as JSON
    pid         its process number
    cwd         its working directory
    env NAME    a variable
    tool CATEGORY [NAME]   one tool call; the answer then tells how it was decided
    tools       two calls at once, answered when both are decided
    wait        nothing, until `stop`
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

USAGE = {"input_tokens": 12, "output_tokens": 3, "cache_read_tokens": 2}
CAPABILITIES = {"tool_approval": True, "thinking": True, "mcp": False}
#: One more than any test's limit for a line, which is given to the drive end.
LONG = 200_000


class Agent:
    """Reads commands, writes events."""

    def __init__(self, habit: str, flags: list[str]) -> None:
        self.habit = habit
        self.flags = flags
        self.commands: list[dict[str, Any]] = []
        self.msg_id = ""

    # Writing

    def raw(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def say(self, kind: str, **members: Any) -> None:
        self.raw(json.dumps({"type": kind, **members}).encode() + b"\n")

    def event(self, kind: str, **members: Any) -> None:
        self.say(kind, msg_id=self.msg_id, **members)

    def text(self, text: str) -> None:
        self.event("text_delta", text=text)

    def start(self) -> None:
        self.event("stream_start")

    def end(self) -> None:
        self.event("stream_end", usage=USAGE)

    def error(self, code: str = "provider_error", message: str = "Rate limit exceeded") -> None:
        self.event("error", error={"code": code, "message": message, "retryable": True})

    def complain(self, text: str) -> None:
        os.write(2, text.encode() + b"\n")

    # Reading

    def next(self) -> dict[str, Any]:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        command: dict[str, Any] = json.loads(line)
        self.commands.append(command)
        return command

    def messages(self) -> Iterator[str]:
        """The texts of messages, one by one. Everything else that comes between them is only noted."""
        while True:
            command = self.next()
            if command["type"] == "message":
                self.msg_id = command["msg_id"]
                yield command["input"]

    def await_stop(self) -> None:
        while self.next()["type"] != "stop":
            pass

    # What it does

    @property
    def session(self) -> str:
        """The id from `--resume ID`, `--session-id ID` or `--flag=ID`."""
        return self.flags[-1].partition("=")[2] or self.flags[-1] if self.flags else "fresh"

    def ready(self, version: str = "0.1.0", **members: Any) -> None:
        self.say("ready", version=version, session_id=self.session, capabilities=CAPABILITIES, **members)

    def serve(self) -> None:
        for text in self.messages():
            self.start()
            self.answer(text)

    def answer(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "tool":
            self.use_tool(*rest.split())
        elif word == "tools":
            self.use_tools()
        elif word == "wait":
            self.text("waiting")
            self.await_stop()
        else:
            self.text(self.reply(word, rest) or text)
        self.end()

    def reply(self, word: str, rest: str) -> str | None:
        if word == "env":
            return os.environ.get(rest, "")
        known = {"args": self.flags, "commands": self.commands, "pid": os.getpid(), "cwd": os.getcwd()}
        return json.dumps(known[word]) if word in known else None

    def request(self, call_id: str, name: str, category: str) -> None:
        tool = {"name": name, "category": category, "args": {"file_path": "a.txt"}, "description": f"{name} a.txt"}
        self.event("tool_request", call_id=call_id, tool=tool)

    def use_tool(self, category: str, name: str = "Write") -> None:
        self.request("t1", name, category)
        self.decided(self.decision("t1"), name)

    def use_tools(self) -> None:
        self.request("t1", "Write", "edit")
        self.request("t2", "Bash", "exec")
        for _ in range(2):
            self.decided(self.next(), "Tool")

    def decision(self, call_id: str) -> dict[str, Any]:
        command = self.next()
        while command["type"] not in ("tool_approve", "tool_deny", "stop"):
            command = self.next()
        return command | {"call_id": command.get("call_id", call_id)}

    def decided(self, command: dict[str, Any], name: str) -> None:
        call_id = command["call_id"]
        if command["type"] == "tool_approve":
            self.event("tool_running", call_id=call_id, tool_name=name)
            self.event(
                "tool_result", call_id=call_id, tool_name=name, status="success", output="done", output_type="text"
            )
            self.text(f"approved {call_id} {command['scope']}")
        elif command["type"] == "tool_deny":
            self.event("tool_cancelled", call_id=call_id, reason=command["reason"])
            self.text(f"denied {call_id} {command['reason']}")


# The habits. Those before `ready` come first.


def mute(agent: Agent) -> None:
    """Never says `ready`."""
    agent.complain("still loading")
    agent.say("info", msg_id=None, message="loading")
    signal.pause()


def fatal(agent: Agent) -> None:
    """Says why it cannot work, and ends."""
    error = {"code": "config_error", "message": "ANTHROPIC_API_KEY not set", "retryable": False}
    agent.say("error", msg_id=None, error=error)
    sys.exit(1)


def fatal_lingers(agent: Agent) -> None:
    """Says why it cannot work, and stays."""
    error = {"code": "config_error", "message": "no such model", "retryable": False}
    agent.say("error", error=error)
    signal.pause()


def quits(agent: Agent) -> None:
    """Ends at once, with a word on standard error that holds a secret."""
    agent.complain(f"boom: cannot log in with {os.environ.get('NASTY_API_KEY', 'nothing')}")
    sys.exit(3)


def quits_on_stdout(agent: Agent) -> None:
    """Ends at once, with a word on standard output that is no protocol."""
    agent.raw(b"usage: nasty [--sane]\n")
    sys.exit(2)


def version(agent: Agent, text: str) -> None:
    """Speaks some version."""
    agent.ready(text)
    agent.serve()


def forgets(agent: Agent) -> None:
    """Cannot resume anything."""
    if "--resume" in agent.flags:
        message = f"Session '{agent.session}' not found"
        agent.say("error", msg_id=None, error={"code": "config_error", "message": message, "retryable": False})
        sys.exit(1)
    agent.ready()
    agent.serve()


def never_again(agent: Agent) -> None:
    """Can be started once; dies in its first turn."""
    if "--resume" in agent.flags:
        agent.complain("cannot resume")
        sys.exit(4)
    if os.path.exists("started"):
        agent.complain("cannot begin anew")
        sys.exit(5)
    with open("started", "w", encoding="utf-8"):
        pass
    agent.ready()
    dies(agent)


def renames(agent: Agent) -> None:
    """Has a session id of its own; ends after each turn."""
    session = agent.session if "--resume" in agent.flags else "its-own-id"
    agent.say("ready", version="0.1.0", session_id=session, capabilities=CAPABILITIES)
    dies_idle(agent)


def sessionless(agent: Agent) -> None:
    """Says as little of itself as it can."""
    agent.say("ready")
    agent.serve()


# Noise and odd lines


def noisy(agent: Agent) -> None:
    """Prints what is not protocol, with every line end there is."""
    agent.raw(
        b'\xef\xbb\xbfWelcome to nasty!\r\n\r\n\n\x1b[31mwarning\x1b[0m: deprecated\n{"type":"re\n[1, 2]\n42\nnull\n'
    )
    agent.raw(b'{"no_type": 1}\n{"type": 7}\n')
    agent.raw(
        b"\xef\xbb\xbf" + json.dumps({"type": "ready", "version": "0.1.0", "capabilities": CAPABILITIES}).encode()
    )
    agent.raw(b"\r\n")
    for text in agent.messages():
        agent.raw(b"DEBUG got a message\n")
        agent.start()
        agent.raw(b"   \t  \r\n")
        line = json.dumps({"type": "text_delta", "text": text, "msg_id": agent.msg_id}).encode()
        agent.raw(line[:9])
        agent.raw(line[9:] + b"\r\n" + b"half a line with no end")
        agent.raw(b"\n")
        agent.end()


def not_utf8(agent: Agent) -> None:
    """Prints bytes that are no text, also inside of an event."""
    agent.raw(b"\xff\xfe\x00\n")
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.raw(b'{"type":"text_delta","text":"caf\xe9","msg_id":"' + agent.msg_id.encode() + b'"}\n')
        agent.text(text)
        agent.end()


def long_lines(agent: Agent) -> None:
    """Prints lines that are longer than anybody would read."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.text("x" * LONG)
        agent.raw(b"y" * LONG + b"\n")
        agent.text(text)
        agent.end()


def newer(agent: Agent) -> None:
    """Sends events, members and names that do not exist yet."""
    agent.ready("0.9.0", mood="good")
    for text in agent.messages():
        agent.start()
        agent.event("provider_retry", attempt=1)
        agent.say("hologram", data=[1, 2, 3])
        tool = {"name": "Teleport", "category": "space", "args": {}, "description": "", "risk": "high"}
        agent.event("tool_request", call_id="t1", tool=tool)
        agent.decision("t1")
        agent.event("tool_result", call_id="t1", output="gone", output_type="smell", status="success")
        agent.event("text_delta", text=text, colour="red")
        agent.end()


def dialect(agent: Agent) -> None:
    """Speaks as today's programs do: `content`, wide capabilities, errors without an id, infos with an empty one."""
    wide = {"image_input": "unknown", "effort": False, "modes": ["default", "yolo"], "current_mode": "default"}
    agent.say("ready", version="0.2.10", session_id="s", capabilities=CAPABILITIES | wide)
    while True:
        command = agent.next()
        if command["type"] == "set_config":
            agent.say("info", msg_id="", message="config updated: model")
            agent.say("config_changed", capabilities=CAPABILITIES | wide)
        elif command["type"] == "message":
            agent.msg_id = command["msg_id"]
            agent.start()
            agent.say("info", msg_id="", message="Tool call: Write")
            if command["content"] == "fail":
                agent.say("error", error={"code": "engine_error", "message": "API error", "retryable": False})
                agent.event("stream_end", usage={"input_tokens": 0, "output_tokens": 0})
            else:
                agent.text(command["content"])
                agent.event("stream_end")


def broken_events(agent: Agent) -> None:
    """Sends events without what they need."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        for _ in range(10):
            agent.event("text_delta")
        agent.event("tool_request", call_id="t1")
        agent.text(text)
        agent.end()


# Turns


def dies(agent: Agent) -> None:
    """Ends in the middle of an answer."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.text("Let me see")
        agent.complain("Traceback (most recent call last):\n  ...\nRuntimeError: out of luck")
        sys.exit(7)


def is_killed(agent: Agent) -> None:
    """Is killed in the middle of an answer."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        os.kill(os.getpid(), signal.SIGKILL)


def dies_in_tool(agent: Agent, category: str, running: str) -> None:
    """Ends while a tool runs, or right after it was approved."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.request("t1", "Write", category)
        agent.decision("t1")
        if running == "running":
            agent.event("tool_running", call_id="t1", tool_name="Write")
        sys.exit(1)


def dies_unasked(agent: Agent, name: str) -> None:
    """Ends while a tool runs that it asked nobody about."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.event("tool_running", call_id="t1", tool_name=name)
        sys.exit(1)


def dies_idle(agent: Agent) -> None:
    """Answers one message and ends."""
    if agent.habit != "renames":
        agent.ready()
    for text in agent.messages():
        agent.start()
        agent.answer(text)
        sys.exit(9)


def closes_stdout(agent: Agent) -> None:
    """Closes its output in the middle of an answer and lives on."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        os.close(1)
        signal.pause()


def deaf(agent: Agent) -> None:
    """Ignores `stop` and SIGTERM, and has a child that does, too, in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    agent.ready()
    for text in agent.messages():
        agent.start()
        if text != "wait":
            agent.answer(text)
            continue
        child = subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL)
        agent.text(f"{os.getpid()} {child.pid}")
        while True:
            signal.pause()


def exits_on_stop(agent: Agent) -> None:
    """Ends when it is told to stop, as some programs do."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.text(text)
        if text == "wait":
            agent.await_stop()
            sys.exit(0)
        agent.end()


def late(agent: Agent) -> None:
    """Ends a stopped turn, but first says a lot."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.text(text)
        if text == "wait":
            agent.await_stop()
            for _ in range(100):
                agent.text("and another thing")
            agent.request("t9", "Write", "edit")
            agent.error("internal_error", "aborted")
        agent.end()


def error_only(agent: Agent) -> None:
    """Fails without a `stream_end`; works the next time."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        if text == "fail":
            agent.error()
            agent.event("info", message="sorry")
        else:
            agent.answer(text)


def refuses(agent: Agent) -> None:
    """Refuses every command but messages, and messages that say so."""
    agent.ready()
    while True:
        command = agent.next()
        if command["type"] == "message" and command["input"] != "refuse":
            agent.msg_id = command["msg_id"]
            agent.start()
            agent.answer(command["input"])
        else:
            message = f"Unknown command type: {command['type']}"
            agent.say("error", msg_id=None, error={"code": "protocol_error", "message": message, "retryable": False})


def error_then_end(agent: Agent) -> None:
    """Fails as the protocol says."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.error()
        agent.end()


def error_then_more(agent: Agent) -> None:
    """Meets an error and goes on."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.error()
        agent.text(text)
        agent.end()


def wrong_ends(agent: Agent) -> None:
    """Ends other turns, ends its own twice, and goes on talking."""
    agent.ready()
    for text in agent.messages():
        agent.say("stream_end", msg_id="somebody-else", usage=USAGE)
        agent.say("text_delta", msg_id="somebody-else", text="not for you")
        agent.say("stream_end", msg_id="", usage=USAGE)
        agent.start()
        agent.text(text)
        agent.end()
        agent.end()
        agent.text("one more word")
        agent.error("internal_error", "too late")


def leaves_calls_open(agent: Agent) -> None:
    """Ends its turn in the middle of a tool."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.event("tool_running", call_id="t1", tool_name="Bash")
        agent.end()


def many_calls(agent: Agent) -> None:
    """Asks for tools without end."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        for number in range(100_000):
            agent.request(f"t{number}", "Write", "edit")


def never_reads(agent: Agent) -> None:
    """Never reads its input."""
    agent.ready()
    signal.pause()


def floods(agent: Agent) -> None:
    """Talks without end."""
    agent.ready()
    for text in agent.messages():
        agent.start()
        if text != "flood":
            agent.answer(text)
            continue
        line = json.dumps({"type": "text_delta", "text": "bla " * 50, "msg_id": agent.msg_id}).encode() + b"\n"
        while True:
            agent.raw(line * 50)


def floods_noise(agent: Agent) -> None:
    """Talks without end, and it means nothing."""
    agent.ready()
    for _ in agent.messages():
        agent.start()
        agent.text("listen:")
        while True:
            agent.raw(b"noise\n" * 10_000)


def ignores_eof(agent: Agent) -> None:
    """Does not leave when its input is closed, nor when it is asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    agent.ready()
    for text in agent.messages():
        agent.start()
        agent.answer(text)
        while sys.stdin.buffer.read():
            pass
        while True:
            signal.pause()


def talks_at_eof(agent: Agent) -> None:
    """Has more to say at the end than a pipe holds, then leaves a sign that it was able to."""
    agent.ready()
    sys.stdin.buffer.read()
    agent.raw(b"x" * 500_000 + b"\n")
    with open("left", "w", encoding="utf-8"):
        pass


def none(agent: Agent) -> None:
    """Behaves."""
    agent.ready()
    agent.serve()


HABITS: dict[str, Callable[..., None]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        none, mute, fatal, fatal_lingers, quits, quits_on_stdout, version, forgets, never_again, renames, sessionless,
        noisy, not_utf8, long_lines, newer, dialect, broken_events, dies, is_killed, dies_in_tool, dies_unasked,
        dies_idle, closes_stdout, deaf, exits_on_stop, late, error_only, refuses, error_then_end, error_then_more,
        wrong_ends, leaves_calls_open, many_calls, never_reads, floods, floods_noise, ignores_eof, talks_at_eof,
    )
}  # fmt: skip


def main() -> None:
    """`HABIT[:ARGUMENT...]` and then the flags."""
    habit, *arguments = sys.argv[1].split(":")
    HABITS[habit](Agent(habit, sys.argv[2:]), *arguments)


if __name__ == "__main__":
    main()
