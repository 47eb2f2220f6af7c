"""A model that obliges: it does what the prompts of the conformance kit ask for, as a provider's server.

It speaks Chat Completions and Messages, and decides by the request alone: by what the user said last, and by what came
of the tools since. So any number of agents can talk to it at once, and a session that is resumed finds it unchanged.

As a program it prints its port and serves until its standard input ends:

    python -m tests.support.obliging_provider
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.conversations import Asked, read
from tests.support.provider import Gate, Part, Reply, Request, StubProvider, in_thread
from tests.support.provider_streams import (
    Event,
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_sse,
    openai_text,
    openai_tool_calls,
)

#: How fast it counts: slowly enough to be stopped in the middle, and to show a word that comes too late.
BEAT_SECONDS = 0.05
LAST_NUMBER = 2000

Call = tuple[str, dict[str, Any]]
Act = Callable[[re.Match[str], Asked], "Turn | None"]


class Beat(Gate):
    """A place in a reply where the server takes a moment."""

    async def wait(self) -> None:
        self.reached.set()
        await asyncio.sleep(BEAT_SECONDS)


class Turn:
    """What the model says next: words, after thinking where there is some, or calls."""

    def __init__(self, text: str = "", *calls: Call, thinking: str | None = None, slowly: bool = False) -> None:
        self.text = text
        self.calls = calls
        self.thinking = thinking
        self.slowly = slowly


def provider() -> StubProvider:
    """The server, not yet started."""
    return StubProvider(oblige)


def oblige(request: Request) -> Reply:
    """The answer to one request; a status of 400 to one that providers would not understand."""
    try:
        asked = read(request.json)
    except AssertionError as error:
        return _refusal(request, str(error))
    turn = _next(asked)
    if turn is None:
        return _refusal(request, "This model fails, as it was told to.")
    return _reply(request, turn, number=len(asked.said))


# What to do


def _next(asked: Asked) -> Turn | None:
    """What is said next; None when the model is to fail.

    Of several wishes the last one counts: where an answer was stopped early, two messages may come as one.
    """
    found = [(match, act) for pattern, act in _ACTS for match in pattern.finditer(asked.words)]
    if not found:
        return Turn(f"You said: {asked.words}")
    match, act = max(found, key=lambda each: each[0].start())
    return act(match, asked)


def _say(text: str, **more: Any) -> Act:
    return lambda found, asked: Turn(text, **more)


def _write(found: re.Match[str], asked: Asked) -> Turn:
    if not asked.results:
        return Turn("I'll create it.", ("Write", {"file_path": found["file"], "content": "hello\n"}))
    result = asked.results[-1]
    denied = result.partition("Tool denied: ")[2]
    return Turn(f"I was told: {denied}" if denied else "File created.")


def _write_two(found: re.Match[str], asked: Asked) -> Turn:
    if asked.results:
        return Turn("Done.")
    calls: list[Call] = [
        ("Write", {"file_path": f"conform-{letter}.txt", "content": f"{letter}\n"}) for letter in ("a", "b")
    ]
    return Turn("Both at once.", *calls)


def _edit(found: re.Match[str], asked: Asked) -> Turn:
    steps: list[Call] = [
        ("Read", {"file_path": "conform-edit.txt"}),
        ("Edit", {"file_path": "conform-edit.txt", "old_string": "hello", "new_string": "goodbye"}),
    ]
    return _step(steps, asked, "Edited.")


def _step(steps: Sequence[Call], asked: Asked, end: str) -> Turn:
    """The first of these calls that was not made yet, one at a time."""
    done = len(asked.results)
    return Turn("", steps[done]) if done < len(steps) else Turn(end)


def _read_file(found: re.Match[str], asked: Asked) -> Turn:
    return _step([("Read", {"file_path": found["file"]})], asked, "I have seen it.")


def _bash(found: re.Match[str], asked: Asked) -> Turn:
    return _step([("Bash", {"command": found["command"]})], asked, "It has run.")


def _mcp(found: re.Match[str], asked: Asked) -> Turn:
    if not asked.mcp_tools:
        return Turn("There is no MCP server.")
    return _step([(asked.mcp_tools[0], {})], asked, "It has answered.")


def _recall(found: re.Match[str], asked: Asked) -> Turn:
    return Turn(" ".join(re.findall(r"code word (\S+\w)", asked.system)) or "None.")


_WISHES: dict[str, Act] = {
    "when the model fails": lambda found, asked: None,
    "single word: hello": _say("hello"),
    "single word: done": _say("done"),
    "<<(?P<text>.*)>>": lambda found, asked: Turn(found["text"]),
    f"count from 1 to {LAST_NUMBER}": _say("\n ".join(map(str, range(1, LAST_NUMBER + 1))), slowly=True),
    "think step by step": _say("15", thinking="2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47."),
    "write tool twice": _write_two,
    r"write tool to create the file (?P<file>\S+)": _write,
    "edit tool to replace": _edit,
    r"read tool to read the file (?P<file>\S+\w)": _read_file,
    # There is no tool for pictures alone.
    r"viewimage tool to look at the file (?P<file>\S+\w)": _read_file,
    "run exactly this command: `(?P<command>.*)` do nothing else": _bash,
    "tool of an mcp server": _mcp,
    "which code words": _recall,
    "how many messages": lambda found, asked: Turn(str(asked.messages)),
}
_ACTS = tuple((re.compile(wish, re.IGNORECASE | re.DOTALL), act) for wish, act in _WISHES.items())


# How to say it


def _reply(request: Request, turn: Turn, *, number: int) -> Reply:
    events = _anthropic(turn, number) if request.is_anthropic else _openai(turn, number)
    write = anthropic_sse if request.is_anthropic else _openai_piece
    parts: list[Part] = []
    for event in events:
        parts.append(write([event]))
        if turn.slowly and _is_text(event):
            parts.append(Beat())
    if not request.is_anthropic:
        parts.append(openai_sse([]))
    return Reply(parts)


def _anthropic(turn: Turn, number: int) -> list[Event]:
    if turn.calls:
        ids = [f"toolu_{number}_{position}" for position in range(len(turn.calls))]
        return anthropic_tool_calls(turn.calls, text=turn.text, ids=ids)
    return anthropic_text(turn.text, thinking=turn.thinking)


def _openai(turn: Turn, number: int) -> list[Event]:
    if turn.calls:
        ids = [f"call_{number}_{position}" for position in range(len(turn.calls))]
        return openai_tool_calls(turn.calls, text=turn.text, ids=ids, interleaved=True)
    return openai_text(turn.text, reasoning=turn.thinking)


def _openai_piece(events: list[Event]) -> bytes:
    return openai_sse(events, done=False)


def _is_text(event: Event) -> bool:
    if event.get("type") == "content_block_delta":
        return True
    return any(choice["delta"].get("content") for choice in event.get("choices", ()))


def _refusal(request: Request, why: str) -> Reply:
    error: dict[str, Any] = {"type": "invalid_request_error", "message": why}
    body = (
        {"type": "error", "error": error} if request.is_anthropic else {"error": error | {"param": None, "code": None}}
    )
    return Reply([json.dumps(body).encode()], status=400, headers={"content-type": "application/json"})


def main() -> None:
    with in_thread(provider()) as server:
        print(server.port, flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
