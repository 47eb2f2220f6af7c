"""For tests of MCP as a way to agents: sessions in memory, with agents that do what the message says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.support.keeper import MemoryKeeper
from trunkline.core import faults
from trunkline.core.agent import Approve, Capabilities, Change, Decision, Deny, OpenRequest
from trunkline.core.events import (
    Event,
    Failed,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.keeper import OfferedAgent
from trunkline.core.usage import Usage

USED = Usage(10, 5)


class ObedientAgent:
    """Does what the message says: `tool`, `tools`, `wait`, `fail`; anything else is repeated."""

    capabilities = Capabilities(approval=True)
    session_id = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._cancelled = asyncio.Event()
        self._decisions: dict[str, asyncio.Future[Decision]] = {}

    async def open(self, request: OpenRequest) -> ObedientAgent:
        return ObedientAgent(self.name)

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._cancelled.clear()
        word = message.text.split()[0] if message.text.split() else ""
        if word == "tool":
            async for event in self._use("call-1"):
                yield event
        elif word == "wait":
            yield TextDelta("I wait.")
            await self._cancelled.wait()
            yield TurnEnded("cancelled", USED)
            return
        elif word == "fail":
            yield TextDelta("I try.")
            yield Failed("provider", "The model is down. Try again later.")
            yield TurnEnded("error", USED)
            return
        else:
            for piece in ("You said: ", message.text):
                yield TextDelta(piece)
        yield TurnEnded("success", USED)

    async def _use(self, call_id: str) -> AsyncIterator[Event]:
        decided = self._decisions[call_id] = asyncio.get_running_loop().create_future()
        yield TextDelta("I look.")
        yield ToolRequested(call_id, "Bash", "exec", {"command": "ls"}, "List files")
        stopping = asyncio.ensure_future(self._cancelled.wait())
        await asyncio.wait({decided, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        decision = decided.result() if decided.done() else Deny("stopped")
        if isinstance(decision, Approve):
            yield ToolStarted(call_id, "Bash")
            yield ToolFinished(call_id, "Bash", "success", "a.txt")
            yield TextDelta("It ran.")
        else:
            reason = decision.reason if isinstance(decision, Deny) else ""
            yield ToolCancelled(call_id, reason)
            yield TextDelta(f"It may not: {reason}")

    async def decide(self, call_id: str, decision: Decision) -> None:
        self._decisions[call_id].set_result(decision)

    async def configure(self, change: Change) -> None:
        raise faults.Unsupported("This agent cannot be configured.")

    async def cancel(self) -> None:
        self._cancelled.set()

    async def close(self) -> None:
        self._cancelled.set()


class FaceKeeper(MemoryKeeper):
    """Sessions in memory with obedient agents of these names."""

    def __init__(self, *agents: str, shared: bool = False) -> None:
        super().__init__(*(OfferedAgent(name, f"It is called {name}.") for name in agents or ("echo",)), shared=shared)

    def make(self, name: str) -> ObedientAgent:
        return ObedientAgent(name)


class LineCollector:
    """Where a server's lines go."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.congested = False
        self.room = asyncio.Event()
        self.grown = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.data += data

    def flush(self) -> None:
        self.grown.set()

    async def drain(self) -> None:
        await self.room.wait()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]

    async def answer(self, request: object) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while True:
            for message in self.messages:
                if message.get("id") == request and "method" not in message:
                    return message
            self.grown.clear()
            await self.grown.wait()
