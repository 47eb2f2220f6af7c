"""A session that another node owns, among the sessions that are at work here: what clients use of a `LiveSession`.

Its owner keeps the rows, counts, and enforces the limits. Here it is only watched, and commands are passed on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from trunkline.base import shapes
from trunkline.base.attach_chat import AttachedCommand
from trunkline.base.vocabulary import Mode
from trunkline.core.agent import Decision
from trunkline.core.events import UserMessage
from trunkline.core.faults import UnknownCall
from trunkline.core.keeper import Removed, When
from trunkline.exchange.acts import Act, Acts
from trunkline.exchange.approvals import AlreadyDecided, Approval, ApprovalStore
from trunkline.exchange.client_seat import ClientSeat
from trunkline.exchange.cluster.followed_session import FollowedSession, answering
from trunkline.exchange.directory import AgentEntry
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.messages import Messages
from trunkline.exchange.session_rows import SessionRow
from trunkline.store.database import DatabaseError

logger = logging.getLogger(__name__)

#: Asks the owner of this session for something.
AskOwner = Callable[[Mapping[str, Any]], Awaitable[Any]]


class FollowedLive(LiveSession):
    """One of them."""

    congested = False
    is_followed = True

    def __init__(
        self,
        session: FollowedSession,
        entry: AgentEntry,
        row: SessionRow,
        approvals: ApprovalStore,
        messages: Messages,
        ask: AskOwner,
        following: asyncio.Task[None],
    ) -> None:
        # Not by `LiveSession`, which keeps rows.
        self.session = session
        self.entry = entry
        self.row = row
        self.seats: dict[ClientSeat, Removed] = {}
        self.used = 0.0
        self.sending = asyncio.Lock()
        self._approvals = approvals
        self._messages = messages
        self._ask_owner = ask
        self._following = following
        self._loop = asyncio.get_running_loop()
        self._noting: set[asyncio.Task[None]] = set()
        self.touch()

    @property
    def is_idle(self) -> bool:
        return not self.clients and not self.sending.locked()

    async def submit(self, message: UserMessage, when: When) -> int:
        """Have the owner take a message in.

        Raises:
            Fault: it was not taken, or nobody knows.
        """
        asked = {"do": "submit", "session": self.id, "message": shapes.encode(message), "when": when}
        return int(await self._ask_owner(asked))

    async def submit_once(self, message: UserMessage) -> int:
        asked = {"do": "submit_once", "session": self.id, "message": shapes.encode(message)}
        return int(await self._ask_owner(asked))

    async def set_mode(self, mode: Mode) -> None:
        await self._ask_owner(command_for(self.id, AttachedCommand("mode", mode=mode), ""))

    def answer(self, call_id: str, decision: Decision, by: str) -> None:
        self.session.answer(call_id, decision, by)

    async def decide(self, approval: Approval, decision: Decision, by: str) -> None:
        command = shapes.encode(answering(approval.call_id, decision))
        try:
            await self._ask_owner({"do": "decide", "approval": approval.id, "command": command, "by": by})
        except UnknownCall:
            raise AlreadyDecided(await self._approvals.get(approval.id) or approval) from None

    async def written(self) -> None:
        """The owner's rows are its own."""

    def note(self, act: Act, acts: Acts) -> None:
        task = asyncio.create_task(self._keep_act(act, acts), name="note who comes and goes")
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _keep_act(self, act: Act, acts: Acts) -> None:
        try:
            await acts.keep(self.id, [act])
        except DatabaseError as error:
            logger.warning("it could not be noted that somebody %s session %s: %s", act.what, self.id, error)

    async def close(self) -> None:
        """Follow it no more. It goes on."""
        self._following.cancel()
        await asyncio.wait({self._following, *self._noting})
        await self.session.close()

    async def suspend(self) -> None:
        await self.close()

    async def abandon(self) -> None:
        """Follow it no more, because it has no owner now, or this node will be that. Clients are told to come back:
        nothing happens any more in what they watch."""
        await self.close()
        for removed in tuple(self.seats.values()):
            removed()


def command_for(session: str, command: AttachedCommand, by: str) -> Mapping[str, Any]:
    """What the owner is asked, for a client's command."""
    return {"do": "command", "session": session, "command": shapes.encode(command), "by": by}
