"""A turn of a session in which somebody decides what the agent asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.events import Event, ToolRequested, TurnEnded, UserMessage
from trunkline.core.session import Session

Decide = Callable[[Session, ToolRequested], None]


async def asked_turn(session: Session, text: str, decide: Decide) -> list[Event]:
    """The events of one turn."""

    def react(event: Event) -> None:
        if isinstance(event, ToolRequested):
            decide(session, event)

    return await watched_turn(session, text, react)


async def watched_turn(session: Session, text: str, react: Callable[[Event], None]) -> list[Event]:
    """The events of one turn, to each of which somebody reacts at once."""
    heard = session.subscribe()
    session.submit(UserMessage(text))
    events: list[Event] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for envelope in heard:
            event = getattr(envelope, "event", None)
            assert isinstance(event, Event)
            events.append(event)
            react(event)
            if isinstance(event, TurnEnded):
                break
    return events
