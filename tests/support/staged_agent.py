"""An agent whose turns are prepared: it says the events that were put on the stage for a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from tests.support.exchange_world import CommandedAgent, CommandedConversation
from trunkline.core.agent import Approve, Decision, OpenRequest
from trunkline.core.events import Event, ToolCancelled, ToolRequested, TurnEnded, UserMessage


class StagedAgent(CommandedAgent):
    """For a message that is on the stage it says those events, and waits for the answer to each request; for others it
    does what `CommandedAgent` does."""

    def __init__(self, stage: Mapping[str, Sequence[Event]]) -> None:
        super().__init__()
        self.stage = stage
        self.messages: list[UserMessage] = []
        self.answers: list[Decision] = []

    async def open(self, request: OpenRequest) -> StagedConversation:
        conversation = StagedConversation(self, request)
        self.is_open.add(conversation)
        return conversation


class StagedConversation(CommandedConversation):
    """One dialogue."""

    def __init__(self, agent: StagedAgent, request: OpenRequest) -> None:
        super().__init__(agent, request)
        self._staged = agent

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._staged.messages.append(message)
        found = self._staged.stage.get(message.text)
        return super().turn(message) if found is None else self._said(found)

    async def _said(self, events: Sequence[Event]) -> AsyncIterator[Event]:
        denied: set[str] = set()
        for event in events:
            if getattr(event, "call_id", None) in denied:
                continue
            yield event
            if isinstance(event, ToolRequested):
                decision = self._decisions.setdefault(event.call_id, asyncio.get_running_loop().create_future())
                try:
                    answer = await decision
                finally:
                    del self._decisions[event.call_id]
                self._staged.answers.append(answer)
                if not isinstance(answer, Approve):
                    denied.add(event.call_id)
                    yield ToolCancelled(event.call_id, getattr(answer, "reason", "") or "denied")
        if not events or not isinstance(events[-1], TurnEnded):
            yield TurnEnded("success")
