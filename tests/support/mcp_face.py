"""For tests of MCP as a way to agents: sessions in memory, with agents that do what the message says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from trunkline.base.vocabulary import Mode
from trunkline.core import faults
from trunkline.core.agent import Approve, Capabilities, Change, Decision, Deny, OpenRequest
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Envelope,
    Event,
    Failed,
    Gap,
    TextDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.ids import new_id
from trunkline.core.keeper import LISTED, KnownSession, OfferedAgent, Removed, When
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
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


class FaceSeat:
    """A client's place in a session in memory."""

    def __init__(self, keeper: FaceKeeper, session: Session, agent: str, client: str) -> None:
        self.session = session
        self.agent = agent
        self.workspace = "."
        self.client = client
        self._keeper = keeper
        self.left = False

    @property
    def may_answer(self) -> bool:
        return self._keeper.role != "observer"

    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        self._keeper.allow()
        return self.session.submit(message)

    def answer(self, call_id: str, decision: Decision) -> None:
        self._keeper.allow()
        self.session.answer(call_id, decision, self.client)

    def stop(self, turn: int | None = None) -> None:
        self._keeper.stopped.append(turn)
        self.session.stop(self.client, turn)

    def set_mode(self, mode: Mode) -> None:
        self.session.set_mode(mode)

    async def configure(self, change: Change) -> None:
        await self.session.configure(change)

    async def keep_file(self, name: str, data: bytes) -> str:
        raise NotImplementedError

    async def leave(self) -> None:
        self.left = True


class FaceKeeper:
    """Sessions in memory. `role`: `talker`, or `observer`, who may only look."""

    def __init__(self, *agents: str, shared: bool = False, role: str = "talker") -> None:
        self.offered = [OfferedAgent(name, f"It is called {name}.") for name in agents or ("echo",)]
        self.is_shared = shared
        self.role = role
        self.held: dict[str, tuple[Session, KnownSession, MemoryLog]] = {}
        self.seats: list[FaceSeat] = []
        self.stopped: list[int | None] = []

    def allow(self) -> None:
        if self.role == "observer":
            raise faults.Forbidden("An observer may not do that.")

    def check_may_ask(self) -> None:
        self.allow()

    async def agents(self) -> Sequence[OfferedAgent]:
        return self.offered

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        return None

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> FaceSeat:
        self.allow()
        if agent not in {each.name for each in self.offered}:
            raise faults.UnknownAgent(f"There is no agent `{agent}`.")
        name = session_id or new_id()
        if name not in self.held:
            log = MemoryLog(name)
            session = await Session.open(ObedientAgent(agent), log, Policy())
            number = len(self.held) + 1
            self.held[name] = (session, KnownSession(name, agent, ".", number, number, f"session {number}"), log)
        session, known, _ = self.held[name]
        if known.agent != agent:
            raise faults.SessionExists(f"The session `{name}` is one with the agent `{known.agent}`.")
        seat = FaceSeat(self, session, agent, "tester")
        self.seats.append(seat)
        return seat

    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> FaceSeat:
        raise NotImplementedError

    async def known(self, session_id: str) -> KnownSession | None:
        return self.held[session_id][1] if session_id in self.held else None

    async def sessions(
        self, agent: str | None = None, *, limit: int = LISTED, before: str | None = None
    ) -> Sequence[KnownSession]:
        found = [known for _, known, _ in reversed(self.held.values()) if agent in (None, known.agent)]
        if before is not None:
            found = found[[each.id for each in found].index(before) + 1 :]
        return found[:limit]

    async def read(self, session_id: str) -> Iterator[Envelope | Gap]:
        return iter(tuple(self.held[session_id][2].read()))

    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        raise NotImplementedError

    async def remove(self, session_id: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        for session, _, _ in self.held.values():
            await session.close()

    def said(self, session_id: str) -> list[str]:
        """The messages of a session."""
        events = [item.event for item in self.held[session_id][2].read() if isinstance(item, Envelope)]
        return [event.message.text for event in events if isinstance(event, TurnStarted)]


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
        import json

        return [json.loads(line) for line in self.data.splitlines()]

    async def answer(self, request: object) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while True:
            for message in self.messages:
                if message.get("id") == request and "method" not in message:
                    return message
            self.grown.clear()
            await self.grown.wait()
