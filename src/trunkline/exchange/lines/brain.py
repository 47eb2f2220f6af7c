"""The brain of a runner: one session of the exchange, in which each prompt is a turn.

A person may be asked there, for however long: the time that an answer may take does not pass meanwhile. A turn that
still waits for a person when nobody waits for its answer any more is left to that person; what it comes to is too old
to be acted on, and the next prompt comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from trunkline.core.events import Envelope, TurnStarted, UserMessage
from trunkline.core.faults import AgentBusy, AgentFailed, AgentTimeout
from trunkline.core.ids import new_id
from trunkline.core.session import Session
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard
from trunkline.runner.brain import AnswerSink, BrainReply
from trunkline.runner.prompting import DecisionPrompt

#: Tokens of one prompt and its answer. The agent remembers earlier ones: a quarter of what most of them take.
WINDOW = 32_000


class ExchangeBrain:
    """A `runner.brain.Brain`."""

    window = WINDOW

    def __init__(
        self, board: Switchboard, agent: str, *, session_id: str, person: str, wire: str, seconds: float
    ) -> None:
        """`person`: who asks, as everybody in the session sees it. `seconds`: how long an answer may take."""
        self._board = board
        self._agent = agent
        self._session_id = session_id
        self._person = person
        self._wire = wire
        self._seconds = seconds
        self._live: LiveSession | None = None
        self._seat = AsyncExitStack()
        self._hearing: _Hearing | None = None

    async def answer(self, prompt: DecisionPrompt) -> BrainReply:
        live = await self._joined()
        session = live.session
        await self._free(session)
        # The contract is in each message: agents have no one way to be told something for all of a session, and some
        # forget what was said long ago.
        message = UserMessage(f"{prompt.system}\n\n{prompt.user}", id=new_id(), sender=self._person)
        hearing = self._hearing = _Hearing(message, AnswerSink(lambda: session.stop(self._person, hearing.turn)))
        session.attach(hearing)
        submitting = asyncio.create_task(self._board.submit(live, message, "reject"), name="a runner's prompt")
        try:
            hearing.turn = await asyncio.shield(submitting)
            await self._heard(session, hearing)
        except asyncio.CancelledError:
            # The message may be taken in only after this.
            submitting.add_done_callback(lambda done: self._left(session, done))
            raise
        finally:
            session.detach(hearing)
            self._hearing = None
        return hearing.answer.reply()

    async def close(self) -> None:
        """Leave the session, which stays."""
        self._live = None
        await self._seat.aclose()

    def _left(self, session: Session, submitting: asyncio.Task[int]) -> None:
        """Nobody waits for an answer any more, unless a person is asked."""
        if not submitting.cancelled() and submitting.exception() is None and not session.waiting:
            session.stop(self._person, submitting.result())

    async def _joined(self) -> LiveSession:
        """The session, kept at work until `close`."""
        if self._live is None:
            await self._seat.aclose()
            live = await self._board.open(self._agent, self._session_id, by=self._person)
            staying = self._board.attached(live.id, self._removed, by=self._person, wire=self._wire)
            self._live = await self._seat.enter_async_context(staying)
        return self._live

    def _removed(self) -> None:
        self._live = None
        if self._hearing is not None:
            self._hearing.removed = True
            self._hearing.news.set()

    async def _free(self, session: Session) -> None:
        """Wait for what others have asked there."""
        try:
            async with asyncio.timeout(self._seconds):
                await session.at_rest()
        except TimeoutError:
            if session.waiting:
                hint = "`trunkline approvals list` shows it."
                raise AgentBusy(f"Session `{session.id}` waits for a person's approval.", hint=hint) from None
            raise AgentBusy(f"Session `{session.id}` is busy with another message.") from None

    async def _heard(self, session: Session, hearing: _Hearing) -> None:
        """Wait for the end of the turn."""
        loop, left = asyncio.get_running_loop(), self._seconds
        while not hearing.answer.ended:
            if hearing.removed:
                raise AgentFailed("The session was removed.")
            hearing.news.clear()
            began, asks = loop.time(), bool(session.waiting)
            try:
                async with asyncio.timeout(None if asks else left):
                    await hearing.news.wait()
            except TimeoutError:
                session.stop(self._person, hearing.turn)
                told = f"The agent `{self._agent}` gave no complete answer within {self._seconds:g} s."
                raise AgentTimeout(told) from None
            if not asks:
                left = max(0.0, left - (loop.time() - began))


class _Hearing:
    """What is said in the turn of one message, in a session where others may talk."""

    congested = False

    def __init__(self, message: UserMessage, answer: AnswerSink) -> None:
        self.answer = answer
        self.news = asyncio.Event()
        self.removed = False
        self._message = message
        self.turn = 0
        """Its number, once the session has it."""

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            event = envelope.event
            if isinstance(event, TurnStarted) and event.message.id == self._message.id:
                self.turn = envelope.turn
        self.answer.show([envelope for envelope in envelopes if envelope.turn == self.turn])
        self.news.set()

    async def drain(self) -> None:
        """It is never behind."""
