"""The sessions that a wire is in for somebody who may leave: a game, a chat. Each stays at work until then."""

from __future__ import annotations

from contextlib import AsyncExitStack

from trunkline.core.events import UserMessage
from trunkline.core.faults import SessionNotFound
from trunkline.core.session import Session
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard


class Seats:
    """One for each session."""

    def __init__(self, board: Switchboard, wire: str) -> None:
        self._board = board
        self._wire = wire
        self._taken: dict[str, tuple[LiveSession, AsyncExitStack]] = {}

    async def take(self, session_id: str, by: str) -> Session:
        """Join a session.

        Raises:
            SessionNotFound: there is none of that id.
            ConfigError, AgentFailed: its agent cannot be had.
        """
        async with AsyncExitStack() as stack:
            live = await stack.enter_async_context(self._board.attached(session_id, by=by, wire=self._wire))
            self._taken[session_id] = live, stack.pop_all()
        return live.session

    async def submit(self, session: Session, message: UserMessage) -> int:
        """Have a message answered when its turn comes; gives the number of that turn, in the tick in which the session
        has it.

        Raises:
            Fault: it was not taken.
        """
        taken = self._taken.get(session.id)
        if taken is None:
            raise SessionNotFound("The session was left.")
        return await taken[0].submit_once(message)

    async def leave(self, session: Session) -> None:
        """The session stays in the exchange."""
        if (taken := self._taken.pop(session.id, None)) is not None:
            await taken[1].aclose()
