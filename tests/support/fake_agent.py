"""An agent on strings: it says what the test lets it say, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from trunkline.core.agent import Capabilities, Change, Decision, OpenRequest
from trunkline.core.events import Event, TurnEnded, UserMessage
from trunkline.core.usage import NOTHING_USED


class FakeAgent:
    """An `Agent` and its one `Conversation`."""

    name = "fake"
    session_id = None

    def __init__(self) -> None:
        self.capabilities = Capabilities(approval=True, thinking=True, resume=True)
        self.request: OpenRequest | None = None
        self.heard: list[UserMessage] = []
        self.decisions: list[tuple[str, Decision]] = []
        self.changes: list[Change] = []
        self.told_before: list[int] = []
        """How many changes there had been when each message was heard."""
        self.held: asyncio.Event | None = None
        """What `configure` waits for, if anything."""
        self.refuses: Exception | None = None
        """What `configure` and `decide` raise, if anything."""
        self.obedient = True
        """Whether `cancel` ends the turn."""
        self.deaf = False
        """Whether even the cancellation of its task is ignored, once."""
        self.busy = False
        self.closed = False
        self._strings: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()

    def needs_approver(self, text: str) -> bool:
        return text == "/undo"

    async def open(self, request: OpenRequest) -> FakeAgent:
        self.request = request
        return self

    def say(self, *events: Event) -> None:
        for event in events:
            self._strings.put_nowait(event)

    def crash(self, error: BaseException) -> None:
        self._strings.put_nowait(error)

    def vanish(self) -> None:
        self._strings.put_nowait(None)

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self.heard.append(message)
        self.told_before.append(len(self.changes))
        self.busy = True
        self._strings = asyncio.Queue()
        try:
            while True:
                try:
                    event = await self._strings.get()
                except asyncio.CancelledError:
                    if not self.deaf:
                        raise
                    self.deaf = False
                    continue
                if isinstance(event, BaseException):
                    raise event
                if event is None:
                    return
                yield event
        finally:
            self.busy = False

    async def decide(self, call_id: str, decision: Decision) -> None:
        self.decisions.append((call_id, decision))
        if self.refuses:
            raise self.refuses

    async def configure(self, change: Change) -> None:
        if self.held is not None:
            await self.held.wait()
        if self.refuses:
            raise self.refuses
        self.changes.append(change)

    async def cancel(self) -> None:
        if self.obedient:
            self.say(TurnEnded("cancelled", NOTHING_USED))

    async def close(self) -> None:
        self.closed = True
