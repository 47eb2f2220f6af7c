"""A spoken conversation as an agent: its turns begin when something was understood, and are kept like any others.

    agent = TalkAgent(talk, "tryll:127.0.0.1:9100")
    session = await Session.open(agent, log, policy)
    while (event := await talk.next_event()) is not None:
        agent.take(event, session)

The journal is that of `TryllAgent`: what was said aloud is known to whoever goes on in writing, and vice versa.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from trunkline.agents.external.tryll import JOURNAL_KEY, exchanges
from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.agents.external.tryll_talk_events import Answered, AnswerPiece, PromptSent, TalkEvent
from trunkline.core.agent import Capabilities, Change, Decision, OpenRequest
from trunkline.core.events import Event, Failed, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import Unsupported
from trunkline.core.session import Session
from trunkline.wires.tryll.errors import TryllError


class TalkAgent:
    """The agent of a conversation that is open already, and that conversation."""

    capabilities = Capabilities(approval=True, resume=True, voice=True)
    session_id: str | None = None

    def __init__(self, talk: TryllTalk, name: str) -> None:
        self.name = name
        self.forgotten: str | None = None
        """Why what was said before is not known, if it is not."""
        self._talk = talk
        self._request: OpenRequest | None = None
        self._events: asyncio.Queue[AnswerPiece | Answered] = asyncio.Queue()

    async def open(self, request: OpenRequest) -> TalkAgent:
        """Go on with what was said before, where the server takes that back."""
        self._request = request
        before = tuple(exchanges(request.journal.records)) if request.resumed else ()
        if before:
            try:
                await self._talk.restore(before)
            except TryllError as error:
                self.forgotten = error.message
        return self

    def take(self, event: TalkEvent, session: Session) -> None:
        """Something happened. What begins a turn is submitted."""
        if isinstance(event, PromptSent):
            session.submit(UserMessage(event.text))
        elif isinstance(event, AnswerPiece | Answered):
            self._events.put_nowait(event)

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        said: list[str] = []
        while True:
            event = await self._events.get()
            if isinstance(event, AnswerPiece):
                said.append(f"\n{event.text}" if event.anew and said else event.text)
                yield TextDelta(said[-1])
                continue
            if said and self._request is not None:
                self._request.journal.append({JOURNAL_KEY: [message.text, "".join(said)]})
            if event.outcome == "error":
                yield Failed("agent", event.message)
            yield TurnEnded(event.outcome)
            return

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked."""

    async def configure(self, change: Change) -> None:
        raise Unsupported("A spoken conversation cannot be changed like this.")

    async def cancel(self) -> None:
        """Only whoever leaves stops a session: nothing is taken after that."""
        self._talk.hush()
        self._events.put_nowait(Answered("cancelled"))

    async def close(self) -> None:
        """The conversation is its owner's."""
