"""A model that says what a test told it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from trunkline.core.usage import Usage
from trunkline.models.messages import Block, Message, Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, Request, Stop, TextChunk, ThinkingChunk

#: What one request is answered with: chunks, faults to raise, events to wait for, or what it has used if it goes wrong.
Step = Chunk | Exception | asyncio.Event | Usage
Reply = Sequence[Step] | Callable[[Request], Sequence[Step]]

USED = Usage(10, 5)


def words(text: str, stop: Stop = "end", usage: Usage | None = USED) -> list[Step]:
    """An answer in words, one chunk each."""
    return [*(TextChunk(piece) for piece in text.split(" ")), Answer((Text(text),), stop, usage)]


def thoughts(text: str, *more: Block) -> list[Step]:
    """An answer that is thought, and maybe more."""
    return [ThinkingChunk(text), Answer((ThinkingBlock(text, "sig"), *more), "end", USED)]


def call(name: str, call_id: str = "t1", **args: Any) -> ToolUse:
    """A tool call."""
    return ToolUse(call_id, name, args)


def calls(*uses: ToolUse, text: str = "") -> list[Step]:
    """An answer that calls tools."""
    said: list[Step] = [TextChunk(text)] if text else []
    return [*said, Answer((*((Text(text),) if text else ()), *uses), "tool_use", USED)]


class FakeModel:
    """The model. Replies are used up in order; asked once more, it fails the test."""

    provider = "test"
    name = "fake"
    context_window = 100_000
    images = True
    longest_answer: int | None = None

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.open_streams = 0
        self.closed = False

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        # As it is now: the conversation goes on with the same list.
        self.requests.append(request.replace(messages=tuple(request.messages)))
        assert self.replies, "the model was asked once more than the test expects"
        reply = self.replies.pop(0)
        return self._say(reply(request) if callable(reply) else reply, request)

    async def _say(self, steps: Sequence[Step], request: Request) -> AsyncGenerator[Chunk, None]:
        self.open_streams += 1
        spent: Usage | None = None
        try:
            for step in steps:
                if isinstance(step, Usage):
                    spent = step
                elif isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    spent = None if isinstance(step, Answer) else spent
                    yield step
        finally:
            self.open_streams -= 1
            if spent is not None and request.on_spent is not None:
                request.on_spent(spent)

    async def close(self) -> None:
        self.closed = True

    @property
    def asked(self) -> Sequence[Message]:
        """The messages of the latest request."""
        return self.requests[-1].messages


class Recorded:
    """A tool that notes its calls and answers as it is told."""

    limit = 50_000
    description = "A tool for tests."

    def __init__(
        self,
        name: str = "Look",
        *,
        category: Any = "info",
        concurrent: bool = True,
        outside: bool = False,
        output: Any = None,
        gate: asyncio.Event | None = None,
    ) -> None:
        from trunkline.tools.tool import ToolOutput

        self.name = name
        self.category = category
        self.concurrent = concurrent
        self.parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
        self._outside = outside
        self._output = output or ToolOutput("seen")
        self._gate = gate
        self.calls: list[Mapping[str, Any]] = []
        self.running = 0
        self.most_running = 0
        self.cancelled = 0

    def describe(self, args: Mapping[str, Any]) -> str:
        return f"{self.name} it"

    def outside(self, args: Mapping[str, Any]) -> bool:
        return self._outside

    async def run(self, args: Mapping[str, Any], report: Callable[[str], None]) -> Any:
        self.calls.append(args)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await (self._gate.wait() if self._gate else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return self._output
