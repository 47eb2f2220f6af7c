"""Forks a session of this user: the new one begins with the events of the old one, and goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from trunkline.core.events import Envelope, Gap
from trunkline.core.ids import new_id
from trunkline.core.log import SessionInfo
from trunkline.exchange.forked_events import NoSuchEvent, fork_point, forked
from trunkline.store.copying import copy
from trunkline.store.files import FileStore


async def fork(store: FileStore, info: SessionInfo, at: int | None, agent: str) -> str:
    """Keep the events through `at`, by default all of them, in a new session of that agent; gives its id.

    Raises:
        NoSuchEvent: there is no event with that number.
        ConfigError: it cannot be written.
    """

    def records() -> Iterator[Envelope | Gap]:
        return store.peek(info.id).records

    end, _ = await fork_point(info.id, records, at)
    events = await forked(records, end, agent=agent, kind=agent.partition(":")[0])
    log = await asyncio.to_thread(store.create, new_id(), info.workspace, info.agent, info.given)
    try:
        await asyncio.to_thread(copy, events, log)
        await log.sync()
    except BaseException:
        log.discard()
        raise
    log.close()
    return log.session


def end_of_turn(records: Iterator[Envelope | Gap], session: str, turn: int) -> int:
    """The number of the last event of a turn, or of one before it; with 0, that of what came before the first.

    Raises:
        NoSuchEvent: there is no such turn.
    """
    end = latest = 0
    for record in records:
        if isinstance(record, Envelope):
            latest = max(latest, record.turn)
            if latest <= turn:
                end = record.seq
    if latest < turn:
        raise NoSuchEvent(f"Session `{session[:80]}` has no turn {turn}: its last one is {latest}.")
    return end
