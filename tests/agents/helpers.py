"""What the tests of agents share: a journal in memory, and turns played to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents import script
from trunkline.agents.scripted import ScriptedAgent
from trunkline.core.agent import Conversation, Decision, OpenRequest
from trunkline.core.events import Event, TextDelta, ToolRequested, UserMessage

Decide = Callable[[ToolRequested], Decision | None]


class MemoryJournal:
    """A journal that outlives its conversation as the real one does."""

    def __init__(self) -> None:
        self._records: list[Any] = []

    @property
    def records(self) -> Sequence[Any]:
        return self._records

    def append(self, record: Any) -> None:
        self._records.append(record)

    def replace(self, records: Sequence[Any]) -> None:
        self._records = list(records)


def request(**changes: Any) -> OpenRequest:
    return OpenRequest(session_id="s1", journal=changes.pop("journal", MemoryJournal()), **changes)


def agent_of(text: str, **options: Any) -> ScriptedAgent:
    """The scripted agent of a YAML text."""
    return ScriptedAgent(script.parse(text.encode(), "test.yaml"), **options)


async def play(
    conversation: Conversation, text: str = "go", *, decide: Decide | None = None, sender: str | None = None
) -> list[Event]:
    """All events of a turn; `decide` answers requests as they come."""
    events = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in conversation.turn(UserMessage(text, sender=sender)):
            events.append(event)
            if isinstance(event, ToolRequested) and decide is not None and (decision := decide(event)) is not None:
                await conversation.decide(event.call_id, decision)
    return events


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
