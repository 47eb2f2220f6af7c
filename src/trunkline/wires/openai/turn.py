"""One turn of a session, on behalf of one request: submitted, listened to, stopped when nobody listens any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from trunkline.core import faults
from trunkline.core.agent import Deny
from trunkline.core.events import Envelope, ToolRequested, TurnStarted, UserMessage
from trunkline.core.feed import SessionWatcher
from trunkline.core.keeper import Seat
from trunkline.wires.openai.errors import OpenAIRefused, stopping
from trunkline.wires.openai.telling import TurnTeller

logger = logging.getLogger(__name__)

NOBODY_TO_ASK = (
    "This needs approval, and an OpenAI client cannot be asked. Allow the tool where the agent is served, with "
    "`--allow` or `--mode`."
)


class AnsweringTurn(SessionWatcher):
    """A seat in a session, and one turn there. `over` is set when it has ended, or is not waited for any longer."""

    def __init__(self, seat: Seat, *, shared: bool) -> None:
        """`shared`: others can be asked what this client cannot."""
        self.seat = seat
        self.shared = shared
        self.number = 0
        self.notes: list[str] = []
        """What the client should know before the agent says anything."""
        self.over = asyncio.Event()
        self._room = asyncio.Event()
        self._held: list[Envelope] = []
        self._teller: TurnTeller | None = None
        self._give: Callable[[bytes], None] = lambda data: None
        self._loop = asyncio.get_running_loop()
        self._is_stopping = self._left = False
        self._awaited: str | None = None
        self._begun: asyncio.Future[int] = self._loop.create_future()
        self._submitting: asyncio.Task[int] | None = None
        self._ended: OpenAIRefused | None = None
        """Why it is not waited for any longer."""
        seat.session.attach(self)

    async def submit(self, message: UserMessage) -> None:
        """Have the message answered. What happens is kept until `begin`.

        Whoever keeps the session may have more to write down when the turn has begun: nobody waits for that here.

        Raises:
            Fault: it is not.
        """
        self._awaited = message.id
        self._submitting = self._loop.create_task(self.seat.submit(message), name="submit a message")
        await asyncio.wait({self._submitting, self._begun}, return_when=asyncio.FIRST_COMPLETED)
        self.number = self._begun.result() if self._begun.done() else self._submitting.result()

    def begin(self, teller: TurnTeller, give: Callable[[bytes], None] = lambda data: None) -> None:
        """Tell what has happened so far, and what comes."""
        self._teller, self._give = teller, give
        held, self._held = self._held, []
        data = b"".join([teller.note(note) for note in self.notes])
        if data:
            give(data)
        self.show(held)
        if self._ended is not None:
            self.end(self._ended)

    @property
    def is_over(self) -> bool:
        """Whether the agent has ended it."""
        return self._teller is not None and self._teller.over

    def end(self, refused: OpenAIRefused | None = None) -> None:
        """Wait for it no longer: the session was removed, or the server stops."""
        self._ended = refused or stopping()
        if self._teller is not None and not self._teller.over:
            self._give(self._teller.fail(self._ended))
        self.over.set()

    # What the session shows.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session: those of this turn are told, together."""
        teller = self._teller
        if teller is None:
            self._hold_back(envelopes)
            return
        if teller.over:
            return
        data = self._told(teller, envelopes)
        if not self.shared:
            self._deny([each.event.call_id for each in envelopes if isinstance(each.event, ToolRequested)])
        if data:
            self._give(data)

    def _hold_back(self, envelopes: Sequence[Envelope]) -> None:
        self._held += envelopes
        for each in envelopes:
            if isinstance(each.event, TurnStarted) and each.event.message.id == self._awaited is not None:
                self._begun.set_result(each.turn)

    def _told(self, teller: TurnTeller, envelopes: Sequence[Envelope]) -> bytes:
        tell, number = teller.tell, self.number
        pieces = [tell(envelope.event) for envelope in envelopes if envelope.turn == number]
        if teller.over:
            self.over.set()
        elif teller.cut and not self._is_stopping:
            self._is_stopping = True
            # Later: the session is in the middle of showing this.
            self._loop.call_soon(self._stop)
        return b"".join(pieces)

    def close(self) -> None:
        """The session is at work no more."""
        self.end()

    async def drain(self) -> None:
        """Let the agent wait for a client that is behind."""
        await self._room.wait()

    def hold(self, is_behind: bool) -> None:
        """Say whether the client is behind. In a session that others share, nobody waits for it."""
        self.congested = is_behind and not self.shared
        if self.congested:
            self._room.clear()
        else:
            self._room.set()

    def _deny(self, call_ids: Sequence[str]) -> None:
        for call_id in call_ids:
            self._loop.call_soon(self._denied, call_id)

    def _denied(self, call_id: str) -> None:
        with suppress(faults.UnknownCall):
            self.seat.answer(call_id, Deny(NOBODY_TO_ASK))

    def _stop(self) -> None:
        with suppress(faults.Fault):
            self.seat.stop(self.number)

    async def leave(self) -> None:
        """Let go of the session, after the turn or in the middle of it: then it is stopped. Idempotent."""
        if self._left:
            return
        self._left = True
        self.over.set()
        self.hold(False)
        with suppress(ValueError):
            self.seat.session.detach(self)
        if self.number and not self.is_over:
            self._stop()
        try:
            if self._submitting is not None:
                await asyncio.wait({self._submitting})
                if not self._submitting.cancelled() and (error := self._submitting.exception()) is not None:
                    logger.info("a message was not taken: %s", error)
            await self.seat.leave()
        except faults.Fault as fault:
            logger.warning("a session could not be left: %s", fault)
