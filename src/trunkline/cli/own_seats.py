"""A session of `cli.own_sessions` that somebody is in, and the place of each who is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trunkline.base.vocabulary import Mode
from trunkline.core.events import UserMessage
from trunkline.core.faults import AgentBusy, SessionNotFound
from trunkline.core.keeper import KnownSession, Removed, When

if TYPE_CHECKING:
    from trunkline.cli.own_sessions import OwnSessions
    from trunkline.core.agent import Change, Decision
    from trunkline.core.session import Session


class OwnSession:
    """A session that somebody is in."""

    def __init__(self, session: Session, agent: str, workspace: str, *, is_kept: bool) -> None:
        self.session = session
        self.agent = agent
        self.workspace = workspace
        self.is_kept = is_kept
        self.seats: dict[OwnSeat, Removed] = {}
        self._created_at = int(time.time() * 1000)

    @property
    def known(self) -> KnownSession:
        """What there is to say of one that is not kept."""
        return KnownSession(self.session.id, self.agent, self.workspace, self._created_at, int(time.time() * 1000))


class OwnSeat:
    """A `core.keeper.Seat`. Made by `OwnSessions`."""

    client = ""
    may_answer = True

    def __init__(self, keeper: OwnSessions, own: OwnSession, removed: Removed) -> None:
        self._keeper = keeper
        self._own = own
        own.seats[self] = removed

    @property
    def session(self) -> Session:
        return self._own.session

    @property
    def agent(self) -> str:
        return self._own.agent

    @property
    def workspace(self) -> str:
        return self._own.workspace

    async def submit(self, message: UserMessage, when: When = "queue") -> int:
        from trunkline.core.turns import State

        session = self.session
        if session.status is State.CLOSED:
            raise SessionNotFound(f"Session `{session.id}` was removed.")
        if when == "reject" and session.status is not State.IDLE:
            raise AgentBusy("The agent is busy with another message.")
        if when == "steer" and session.steer(message):
            return session.turn
        return session.submit(message)

    def answer(self, call_id: str, decision: Decision) -> None:
        self.session.answer(call_id, decision, self.client)

    def stop(self, turn: int | None = None) -> None:
        self.session.stop(self.client, turn)

    def set_mode(self, mode: Mode) -> None:
        self.session.set_mode(mode)

    async def configure(self, change: Change) -> None:
        await self.session.configure(change)

    async def keep_file(self, name: str, data: bytes) -> str:
        return await self._keeper.keep_file(self._own, name, data)

    async def leave(self) -> None:
        if self._own.seats.pop(self, None) is not None:
            await self._keeper.left(self._own)
