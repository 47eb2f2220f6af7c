"""Whoever keeps sessions, in memory, for tests of the faces: `SessionKeeper` with agents on strings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.fake_agent import FakeAgent
from trunkline.agents import registry
from trunkline.base.redact import Redactor
from trunkline.base.vocabulary import Mode
from trunkline.core import faults
from trunkline.core.agent import Agent, Capabilities, Change, Decision
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Gap, TurnStarted, UserMessage
from trunkline.core.ids import new_id
from trunkline.core.keeper import LISTED, KnownSession, OfferedAgent, Removed, When
from trunkline.core.log import MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.session import Session

#: The agent on strings.
FAKE = "fake"


class MemorySeat:
    """A place in a session of a `MemoryKeeper`."""

    def __init__(
        self, keeper: MemoryKeeper, session: Session, known: KnownSession, client: str, *, passing: bool
    ) -> None:
        self.session = session
        self.agent = known.agent
        self.workspace = known.workspace
        self.client = client
        self.may_answer = True
        self.left = False
        self.stopped: list[int | None] = []
        self._keeper = keeper
        self._passing = passing

    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        self._keeper.check_may_ask()
        if self._keeper.refusal is not None:
            raise self._keeper.refusal
        return self.session.submit(message)

    def answer(self, call_id: str, decision: Decision) -> None:
        self._keeper.check_may_ask()
        self.session.answer(call_id, decision, self.client)

    def stop(self, turn: int | None = None) -> None:
        self.stopped.append(turn)
        self.session.stop(self.client, turn)

    def set_mode(self, mode: Mode) -> None:
        self.session.set_mode(mode)

    async def configure(self, change: Change) -> None:
        await self.session.configure(change)

    async def keep_file(self, name: str, data: bytes) -> str:
        path = f"/kept/{len(self._keeper.kept)}-{name}"
        self._keeper.kept[path] = data
        return path

    async def leave(self) -> None:
        self.left = True
        if self._passing:
            await self._keeper.remove(self.session.id)


class MemoryKeeper:
    """Keeps sessions in memory, with the agents that it offers. Each seat has a client's name of its own."""

    def __init__(self, *offered: OfferedAgent, folder: Path = Path(), shared: bool = False) -> None:
        self.offered = offered
        self.folder = folder
        self.is_shared = shared
        self.may_ask = True
        """Whether the client is more than an observer."""
        self.refusal: Exception | None = None
        """What `submit` raises, if anything."""
        self.failing: faults.Fault | None = None
        """What `open` raises, if anything."""
        self.capabilities: Capabilities | None = None
        """What the agents on strings can do, if not what they usually can."""
        self.mode: Mode = "default"
        self.secrets = Redactor()
        self.gate = asyncio.Event()
        """Who joins a session waits until it is set."""
        self.gate.set()
        self.fakes: list[FakeAgent] = []
        self.held: dict[str, tuple[Session, KnownSession, MemoryLog]] = {}
        self.seats: list[MemorySeat] = []
        self.kept: dict[str, bytes] = {}
        """The files that clients sent, by path."""
        self._removed: list[tuple[str, Removed]] = []

    @property
    def fake(self) -> FakeAgent:
        """The agent on strings that was made last."""
        return self.fakes[-1]

    def said(self, session_id: str) -> list[str]:
        """The messages of a session."""
        events = [item.event for item in self.held[session_id][2].read() if isinstance(item, Envelope)]
        return [event.message.text for event in events if isinstance(event, TurnStarted)]

    def make(self, name: str) -> Agent:
        """The agent of that name, for one session."""
        if name != FAKE:
            return registry.make(name, {})
        self.fakes.append(FakeAgent())
        if self.capabilities is not None:
            self.fake.capabilities = self.capabilities
        return self.fake

    def check_may_ask(self) -> None:
        if not self.may_ask:
            raise faults.Forbidden("An observer may not do that.")

    async def agents(self) -> Sequence[OfferedAgent]:
        return self.offered

    async def capabilities_of(self, agent: str) -> Capabilities | None:
        return self.capabilities

    async def open(
        self,
        agent: str,
        session_id: str | None = None,
        *,
        workspace: str | None = None,
        passing: bool = False,
        removed: Removed = lambda: None,
    ) -> MemorySeat:
        self.check_may_ask()
        if self.failing is not None:
            raise self.failing
        if agent not in {each.name for each in self.offered}:
            raise faults.UnknownAgent(f"There is no agent `{agent}`.")
        if session_id not in self.held:
            log = MemoryLog(session_id or new_id())
            await self._hold(log, agent, workspace or str(self.folder), resume=False)
            session_id = log.session
        elif (other := self.held[session_id][1].agent) != agent:
            raise faults.SessionExists(f"The session `{session_id}` is one with the agent `{other}`.")
        return self._seat(session_id, removed, passing=passing)

    async def join(self, session_id: str, *, removed: Removed = lambda: None) -> MemorySeat:
        self._find(session_id)
        await self.gate.wait()
        return self._seat(session_id, removed)

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
        return iter(tuple(self._find(session_id)[2].read()))

    async def fork(self, session_id: str, at: int | None = None, *, to_ask: bool = False) -> KnownSession:
        _, known, old = self._find(session_id)
        log = MemoryLog(new_id())
        for item in old.read():
            if isinstance(item, Envelope) and (at is None or item.seq <= at):
                log.append(item.replace(session=log.session))
        return await self._hold(log, known.agent, known.workspace, resume=True)

    async def remove(self, session_id: str) -> None:
        session, _, _ = self._find(session_id)
        del self.held[session_id]
        for removed_id, removed in self._removed:
            if removed_id == session_id:
                removed()
        await session.close()

    async def close(self) -> None:
        for session, _, _ in self.held.values():
            await session.close()

    def _find(self, session_id: str) -> tuple[Session, KnownSession, MemoryLog]:
        if session_id not in self.held:
            raise faults.SessionNotFound(f"There is no session `{session_id}`.")
        return self.held[session_id]

    async def _hold(self, log: MemoryLog, agent: str, workspace: str, *, resume: bool) -> KnownSession:
        session = await Session.open(
            self.make(agent), log, Policy(self.mode), resume=resume, workspace=workspace, redact=Redaction(self.secrets)
        )
        number = 1_700_000_000_000 + len(self.held)
        known = KnownSession(session.id, agent, workspace, number, number, f"session {len(self.held)}")
        self.held[session.id] = (session, known, log)
        return known

    def _seat(self, session_id: str, removed: Removed, *, passing: bool = False) -> MemorySeat:
        session, known, _ = self._find(session_id)
        client = f"client-{len(self.seats) + 1}"
        self.seats.append(MemorySeat(self, session, known, client, passing=passing))
        self._removed.append((session_id, removed))
        return self.seats[-1]
