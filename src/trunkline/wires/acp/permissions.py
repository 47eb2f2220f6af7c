"""Questions to the user of an editor: which answers there are, and what each means.

Everybody in a session is asked, and the first answer counts. Who is asked in vain, because somebody else was faster or
the turn is over, has the question taken back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trunkline.base.vocabulary import EXIT_PLAN
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import Category, ToolRequested
from trunkline.core.faults import Fault, Forbidden, UnknownCall
from trunkline.core.grants import grant_for, may_last
from trunkline.wires.acp.messages_client import (
    OptionSelected,
    PermissionKind,
    PermissionOption,
    RequestPermissionRequest,
)
from trunkline.wires.acp.messages_content import ToolCallUpdate
from trunkline.wires.acp.peer import AcpPeer

logger = logging.getLogger(__name__)

REJECTED = "The user rejected this."
REJECTED_ALL = "The user rejects every tool of this kind in this session."
DISMISSED = "The user was asked and did not answer."


def options_for(request: ToolRequested) -> tuple[PermissionOption, ...]:
    """The answers that there are. What each lasts for is in its name."""
    named: dict[PermissionKind, str] = {"allow_once": "Allow"}
    if may_last(request):
        named["allow_always"] = f"Always allow {grant_for(request, narrow=True)}"
    named["reject_once"] = "Reject"
    if request.name != EXIT_PLAN:
        named["reject_always"] = f"Reject every `{request.category}` tool for the rest of this session"
    return tuple(PermissionOption(kind, name, kind) for kind, name in named.items())


class Questions:
    """The open questions of one client in one session."""

    def __init__(
        self,
        peer: AcpPeer,
        session_id: str,
        answer: Callable[[str, Decision], None],
        *,
        others_may_answer: bool,
    ) -> None:
        """`answer` decides on a call. `others_may_answer`: what this client does not answer waits for somebody else."""
        self._peer = peer
        self._session_id = session_id
        self._answer = answer
        self._others_may_answer = others_may_answer
        self._open: dict[str, asyncio.Task[None]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        """Questions that the client itself is to answer with `cancelled`."""
        self._rejected: set[Category] = set()

    def ask(self, request: ToolRequested, describe: Callable[[], Awaitable[ToolCallUpdate]]) -> None:
        """Ask about a call that waits; not about one whose kind was rejected for good. `describe` gives what is shown
        of it, once that is known."""
        if request.call_id in self._open:
            return
        loop = asyncio.get_running_loop()
        # A plan is no tool of its kind: each is asked about.
        if request.category in self._rejected and request.name != EXIT_PLAN:
            # Not now: whoever shows the question is not done with it.
            loop.call_soon(self._decide, request.call_id, Deny(REJECTED_ALL))
            return
        self._open[request.call_id] = loop.create_task(self._ask(request, describe), name="ask the client")

    def settled(self, call_id: str) -> None:
        """The call has its answer: nobody needs to be asked any more."""
        task = self._open.pop(call_id, None)
        if task is not None:
            task.cancel()

    def settle_all(self) -> None:
        """The turn is over."""
        for call_id in tuple(self._open):
            self.settled(call_id)

    def give_up(self) -> None:
        """The client has cancelled the turn, and will answer all that is open with `cancelled`."""
        self._given_up.update(self._open.values())
        for task in self._open.values():
            task.add_done_callback(self._given_up.discard)
        self._open.clear()

    def forget_rejections(self) -> None:
        """The user has changed the mode: what was rejected for good is asked about again."""
        self._rejected.clear()

    async def close(self) -> None:
        """Ask no more."""
        self.settle_all()
        tasks = tuple(self._given_up)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, request: ToolRequested, describe: Callable[[], Awaitable[ToolCallUpdate]]) -> None:
        question = RequestPermissionRequest(self._session_id, await describe(), options_for(request))
        if self._open.get(request.call_id) is not asyncio.current_task():
            # The client has cancelled the turn meanwhile: there is nothing left to answer.
            return
        decision: Decision | None = None if self._others_may_answer else Deny(DISMISSED)
        try:
            outcome = (await self._peer.ask(question)).outcome
            if isinstance(outcome, OptionSelected):
                decision = self._meant(outcome.option_id, request)
        except Fault as fault:
            logger.warning("the client could not be asked: %s", fault)
            if self._peer.has_ended:
                return
        if self._open.get(request.call_id) is asyncio.current_task():
            del self._open[request.call_id]
            if decision is not None:
                self._decide(request.call_id, decision)

    def _meant(self, option: str, request: ToolRequested) -> Decision:
        match next((each.kind for each in options_for(request) if each.option_id == option), None):
            case "allow_once":
                return Approve()
            case "allow_always":
                return Approve("always", narrow=True)
            case "reject_always":
                self._rejected.add(request.category)
                return Deny(REJECTED_ALL)
        # Anything but a clear yes is a no.
        return Deny(REJECTED)

    def _decide(self, call_id: str, decision: Decision) -> None:
        try:
            self._answer(call_id, decision)
        except UnknownCall:
            logger.debug("an answer came too late")
        except Forbidden as fault:
            logger.warning("%s", fault)
