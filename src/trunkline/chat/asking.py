"""Questions of an agent, asked in the chat that caused them: with buttons, or with what to type.

The answer reaches the session first, and the message is changed afterwards: what is shown has happened. A question that
nobody answers in time is denied, and says so. Only a few stand in the chat at once: the others come after them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from trunkline.chat.approvals import Approvals, Asked, Mistaken, Press, buttons, question, settled, whole
from trunkline.chat.commands import Choice
from trunkline.chat.keeping import lasting, lasting_async
from trunkline.chat.plain import inline, span
from trunkline.chat.platform import Button
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.events import ToolRequested
from trunkline.core.faults import ConfigError, UnknownCall
from trunkline.core.grants import grant_for

logger = logging.getLogger(__name__)

#: Questions that stand in a chat at once: as many as a person can look at. An agent that asks for more is waited for.
MOST_ASKED = 8
#: Those that come after them. Whoever asks for more does not listen.
MOST_LATER = 100

NOBODY_LEFT = "Nobody is left to answer"
TOO_MANY = "Too many questions wait for an answer"


class Posted(Protocol):
    """A message that was posted; `chat.delivery.outbox.Posting` is one."""

    async def edit(self, text: str, buttons: Sequence[Button] = ()) -> None:
        """Change it."""


Post = Callable[[str, Sequence[Button]], Posted]
Answer = Callable[[str, Decision], None]
#: Puts a long text into the chat, in messages or as a file of that name.
Enclose = Callable[[str, str], None]
Spawn = Callable[[Coroutine[Any, Any, None], str], None]


class Asking:
    """The open questions of one conversation.

    `post` puts a message into the chat, and `enclose` a text that may be too long for one; `answer` tells the session a
    decision and may raise `UnknownCall`; `spawn` runs something that takes a while and whose end nobody waits for.
    `wall` is the clock that messages are dated by.
    """

    def __init__(
        self,
        post: Post,
        answer: Answer,
        spawn: Spawn,
        enclose: Enclose,
        *,
        has_buttons: bool,
        seconds: float,
        book: Approvals | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._post = post
        self._answer = answer
        self._spawn = spawn
        self._enclose = enclose
        self._has_buttons = has_buttons
        self._seconds = seconds
        self._book = book or Approvals()
        self._wall = wall
        self._posted: dict[int, Posted] = {}
        self._later: dict[str, ToolRequested] = {}
        """What is asked when others are answered, by call."""
        self._nobody = ""
        """Why nobody can answer, if nobody can."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> tuple[Asked, ...]:
        """What nobody has answered."""
        return self._book.waiting

    def ask(self, request: ToolRequested) -> None:
        """Put a question into the chat, or keep it until fewer stand there."""
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
            self._spawn(self._show_later(asked), f"ask {asked.number}")

    def _show(self, asked: Asked) -> None:
        text = question(asked, self._seconds)
        self._posted[asked.number] = self._post(text, buttons(asked) if self._has_buttons else ())

    async def _show_later(self, asked: Asked) -> None:
        await lasting(lambda: self._show(asked) if asked in self._book.waiting else None)

    def typed(self, choice: Choice, *, yes: bool, who: str, written: float | None = None) -> None:
        """`/approve` or `/deny`, and when that was written. What came of it is said where the question is.

        Raises:
            Mistaken: it fits no question.
        """
        if not yes:
            self._decide(self._book.find(choice.number), Deny(choice.reason), f"Denied by {who}")
            return
        asked = self._book.find_read(written) if choice.number is None else self._book.find(choice.number)
        self._decide(asked, *_yes(choice.always, asked, who))

    def press(self, press: Press, who: str) -> None:
        """A button.

        Raises:
            Mistaken: its question is over.
        """
        asked = self._book.find(press.number, press.token)
        if press.action == "show":
            self._show_all(asked)
        elif press.action == "deny":
            self._decide(asked, Deny(), f"Denied by {who}")
        else:
            self._decide(asked, *_yes(press.action == "always", asked, who))

    def show(self, number: int | None) -> None:
        """`/show`: put all of what a question is about into the chat.

        Raises:
            Mistaken: there is no such question, or it is not clear which is meant.
        """
        self._show_all(self._book.find(number))

    def _show_all(self, asked: Asked) -> None:
        self._enclose(whole(asked.request), f"approval-{asked.number}.txt")

    def over(self, call_id: str, how: str) -> None:
        """A call goes on, or is over: whoever was asked about it need not answer any more."""
        self._later.pop(call_id, None)
        asked = self._book.of_call(call_id)
        if asked is not None:
            self._close(asked, f"No answer needed: {_begun_small(inline(how))}")

    def close(self, why: str) -> None:
        """No question is open any more, and none will be."""
        self._nobody = self._nobody or why
        self._later.clear()
        if self._timer is not None:
            self._timer.cancel()
        for asked in self._book.waiting:
            self._close(asked, f"No answer needed: {why}")

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
            self._answer(call_id, Deny(why))
        except UnknownCall:
            # It ended by itself in the meantime.
            return

    def _decide(self, asked: Asked, decision: Decision, how: str) -> None:
        try:
            self._answer(asked.request.call_id, decision)
        except UnknownCall:
            self._close(asked, "No answer needed: it is over")
            raise Mistaken(f"`{asked.number}` is over.") from None
        self._close(asked, how)

    def _close(self, asked: Asked, how: str) -> None:
        if not self._book.close(asked, _begun_small(how)):
            return
        posted = self._posted.pop(asked.number, None)
        if posted is not None:
            text = settled(asked, how)
            self._spawn(lasting_async(lambda: posted.edit(text)), f"settle approval {asked.number}")
        if self._later:
            self._put(self._later.pop(next(iter(self._later))))

    def _look_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadlines = [asked.deadline for asked in self._book.waiting]
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


def _yes(always: bool, asked: Asked, who: str) -> tuple[Decision, str]:
    if always:
        return Approve("always"), f"Approved by {who}, and for this session {grant_for(asked.request, narrow=False)}"
    return Approve(), f"Approved by {who}"


def _begun_small(text: str) -> str:
    """A sentence as a part of another."""
    return text[:1].lower() + text[1:]
