"""Questions of an agent, asked in the chat that caused them: with buttons, or with what to type.

The answer reaches the session first, and the message is changed afterwards: what is shown has happened. A question that
nobody answers in time is denied, and says so. Only a few stand in the chat at once: the others come after them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import isfinite

from trunkline.chat.approvals import Approvals, Mistaken, PendingApproval, Press, buttons, question, settled, whole
from trunkline.chat.channel import Channel
from trunkline.chat.chat_session import ChatSession
from trunkline.chat.commands import Choice
from trunkline.chat.delivery.backoff import lasting, lasting_async
from trunkline.chat.delivery.outbox import Posting
from trunkline.chat.plain import inline, span
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import ToolRequested
from trunkline.core.faults import ConfigError, UnknownCall
from trunkline.core.grants import grant_for, may_last

logger = logging.getLogger(__name__)

#: Questions that stand in a chat at once: as many as a person can look at. An agent that asks for more is waited for.
MOST_ASKED = 8
#: Those that come after them. Whoever asks for more does not listen.
MOST_LATER = 100

NOBODY_LEFT = "There is nobody left to answer"
#: Without its full stop.
ASKED_AGAIN = "It still waits, and is asked again here when the bridge is back"
TOO_MANY = "Too many questions wait for an answer"


class ApprovalPrompts:
    """The open questions of one conversation. `wall` is the clock that messages are dated by."""

    def __init__(self, channel: Channel, chat_session: ChatSession, seconds: float, wall: Callable[[], float]) -> None:
        self._channel = channel
        self._chat_session = chat_session
        self._seconds = seconds
        self._book = Approvals()
        self._wall = wall
        self._posted: dict[int, Posting] = {}
        self._later: dict[str, ToolRequested] = {}
        """What is asked when others are answered, by call."""
        self._nobody = ""
        """Why nobody can answer, if nobody can."""
        self._left = False
        """Whether somebody else will ask."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> tuple[PendingApproval, ...]:
        """What nobody has answered."""
        return self._book.waiting

    def ask(self, request: ToolRequested) -> None:
        """Put a question into the chat, or keep it until fewer stand there."""
        # Without secrets before it is cut: half of one would not be known.
        clean: ToolRequested = self._channel.redactor.data(request)
        request = clean.replace(call_id=request.call_id)
        if self._left or request.call_id in self._later or self._book.of_call(request.call_id) is not None:
            # Whoever goes on with a turn may hear of it twice.
            return
        if self._nobody:
            self._loop.call_soon(self._deny, request.call_id, self._nobody)
        elif len(self._book.waiting) < MOST_ASKED:
            self._put(request)
        elif len(self._later) < MOST_LATER:
            self._later[request.call_id] = request
        else:
            self._loop.call_soon(self._deny, request.call_id, TOO_MANY)

    def _put(self, request: ToolRequested) -> None:
        asked = self._book.ask(request, self._loop.time() + self._seconds, self._wall())
        if asked is None:
            self._loop.call_soon(self._deny, request.call_id, TOO_MANY)
            return
        self._look_later()
        try:
            self._show(asked)
        except ConfigError as error:
            logger.error("a question could not be kept, and is asked as soon as it can be: %s", error)
            self._channel.spawn(self._show_later(asked), f"ask {asked.number}")

    def _show(self, asked: PendingApproval) -> None:
        text = question(asked, self._seconds)
        self._posted[asked.number] = self._channel.post(text, buttons(asked) if self._channel.limits.buttons else ())

    async def _show_later(self, asked: PendingApproval) -> None:
        await lasting(lambda: self._show(asked) if asked in self._book.waiting else None)

    def typed(self, choice: Choice, *, yes: bool, who: str, by: str = "", written: float | None = None) -> None:
        """`/approve` or `/deny`, and when that was written. What came of it is said where the question is.

        Args:
            who: the name that the chat is shown.
            by: who it is for the session; see `BridgeContext.person`.

        Raises:
            Mistaken: it fits no question.
        """
        if not yes:
            self._decide(self._book.find(choice.number), Deny(choice.reason), f"Denied by {who}", by)
            return
        asked = self._book.find_read(written) if choice.number is None else self._book.find(choice.number)
        self._decide(asked, *_yes(choice.always, asked, who), by)

    def press(self, press: Press, who: str, by: str = "") -> None:
        """A button; `who` and `by` as for `typed`.

        Raises:
            Mistaken: its question is over.
        """
        asked = self._book.find(press.number, press.token)
        if press.action == "show":
            self._show_all(asked)
        elif press.action == "deny":
            self._decide(asked, Deny(), f"Denied by {who}", by)
        else:
            self._decide(asked, *_yes(press.action == "always", asked, who), by)

    def show(self, number: int | None) -> None:
        """`/show`: put all of what a question is about into the chat.

        Raises:
            Mistaken: there is no such question, or it is not clear which is meant.
        """
        self._show_all(self._book.find(number))

    def _show_all(self, asked: PendingApproval) -> None:
        self._channel.enclose(whole(asked.request), f"approval-{asked.number}.txt")

    def answered(self, call_id: str, approved: bool, by: str) -> None:
        """Somebody has answered, here or elsewhere: those who were asked, too, see who it was."""
        self._later.pop(call_id, None)
        asked = self._book.of_call(call_id)
        if asked is not None and by:
            self._close(asked, f"{'Approved' if approved else 'Denied'} by `{inline(by)}`")

    def over(self, call_id: str, how: str) -> None:
        """A call goes on, or is over: whoever was asked about it need not answer any more."""
        self._later.pop(call_id, None)
        asked = self._book.of_call(call_id)
        if asked is not None:
            self._close(asked, f"No answer needed: {_begun_small(inline(how))}")

    def close(self, why: str, *, goes_on: bool = False) -> None:
        """No question is open here any more, and none will be. With `goes_on`, the next run of the bridge asks again
        what nobody has answered by then."""
        self._nobody = self._nobody or why
        self._left = goes_on
        self._later.clear()
        if self._timer is not None:
            self._timer.cancel()
        how = f"No answer yet: {why}. {ASKED_AGAIN}" if goes_on else f"No answer needed: {why}"
        for asked in self._book.waiting:
            self._close(asked, how)

    def nobody_left(self) -> None:
        """Nobody can answer any more: what waits is denied, and so is what comes."""
        self._nobody = NOBODY_LEFT
        later, self._later = self._later, {}
        for call_id in later:
            self._deny(call_id, NOBODY_LEFT)
        for asked in self._book.waiting:
            self._close(asked, f"Denied: {_begun_small(NOBODY_LEFT)}")
            self._deny(asked.request.call_id, NOBODY_LEFT)

    def _deny(self, call_id: str, why: str) -> None:
        try:
            self._chat_session.decide(call_id, Deny(why))
        except UnknownCall:
            # It ended by itself in the meantime.
            return

    def _decide(self, asked: PendingApproval, decision: Decision, how: str, by: str = "") -> None:
        try:
            self._chat_session.decide(asked.request.call_id, decision, by)
        except UnknownCall:
            self._close(asked, "No answer needed: it is over")
            raise Mistaken(f"`{asked.number}` is over.") from None
        self._close(asked, how)

    def _close(self, asked: PendingApproval, how: str) -> None:
        if not self._book.close(asked, _begun_small(how)):
            return
        posted = self._posted.pop(asked.number, None)
        if posted is not None:
            text = settled(asked, how)
            self._channel.spawn(lasting_async(lambda: posted.edit(text)), f"settle approval {asked.number}")
        if self._later:
            self._put(self._later.pop(next(iter(self._later))))

    def _look_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadlines = [asked.deadline for asked in self._book.waiting if isfinite(asked.deadline)]
        self._timer = self._loop.call_at(min(deadlines), self._look) if deadlines else None

    def _look(self) -> None:
        """Deny those whose time is over."""
        nobody = f"nobody answered within {span(self._seconds)}"
        for asked in self._book.expired(self._loop.time()):
            try:
                self._decide(asked, Deny(nobody.capitalize()), f"Denied: {nobody}")
            except Mistaken:
                # It ended by itself in the same moment.
                continue
        self._look_later()


def _yes(always: bool, asked: PendingApproval, who: str) -> tuple[Decision, str]:
    if always and may_last(asked.request):
        return Approve("always"), f"Approved by {who}, and for this session {grant_for(asked.request, narrow=False)}"
    return Approve(), f"Approved by {who}"


def _begun_small(text: str) -> str:
    """A sentence as a part of another."""
    return text[:1].lower() + text[1:]
