"""The events that a fork of a session starts with.

The agent's own records are among them, so it remembers the conversation up to that point. An agent that keeps its
conversation in an external program cannot be taken back to an earlier point: it gets the conversation as text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from trunkline.core.events import (
    Envelope,
    Event,
    Gap,
    HistoryInjected,
    JournalReplaced,
    ToolCancelled,
    TurnEnded,
    first_seq,
    last_seq,
)
from trunkline.core.faults import ConfigError
from trunkline.core.state import SessionState
from trunkline.exchange.conversation_text import conversation_text

#: Agents that keep the conversation in an external program: two of our sessions must not share one of its sessions.
ELSEWHERE = frozenset({"agentproc", "jsonstream", "acp"})

#: The reason given for the end of a turn that was in progress at the fork.
FORKED = "The session was forked here"

#: Gives the records of a session from the first on. Each time anew.
Records = Callable[[], Iterator[Envelope | Gap]]


class NoSuchEvent(ConfigError):
    """The session has no event with that number to fork after."""


async def fork_point(session_id: str, records: Records, at: int | None) -> tuple[int, int]:
    """The number of the event to fork after, and that of the last one. By default, the first is the second.

    Raises:
        NoSuchEvent: it has no event with that number.
    """
    last = await asyncio.to_thread(_last, records())
    end = last if at is None else at
    if not 0 <= end <= last:
        raise NoSuchEvent(f"Session `{session_id[:80]}` has no event {end}: its last one is {last}.")
    return end, last


async def forked(records: Records, end: int, *, agent: str, kind: str) -> Iterator[Envelope]:
    """The events through `end`, then those that end a turn in progress. `agent` is its name, `kind` that of its form in
    the registry."""
    words = ""
    if kind in ELSEWHERE:
        words = await asyncio.to_thread(lambda: conversation_text(_until(records(), end), agent))
    return _forked(_until(records(), end), end, words)


def _until(records: Iterator[Envelope | Gap], end: int) -> Iterator[Envelope | Gap]:
    for record in records:
        if first_seq(record) > end:
            return
        yield record


def _forked(records: Iterator[Envelope | Gap], end: int, words: str) -> Iterator[Envelope]:
    """The events unchanged; then those that end a turn in progress, and the text for an agent that needs it."""
    state = SessionState()
    at, name = 0.0, ""
    for record in records:
        # Missing numbers appear as the same gap in the new log.
        if isinstance(record, Envelope):
            state.apply(record)
            at, name = record.at, record.session
            yield record
    more: list[tuple[int, Event]] = []
    for turn, open_turn in state.open_turns.items():
        more += [(turn, ToolCancelled(call_id, FORKED)) for call_id in open_turn.calls]
        more.append((turn, TurnEnded("cancelled")))
    if words:
        more += [(0, JournalReplaced(())), (0, HistoryInjected(words))]
    for number, (turn, event) in enumerate(more, end + 1):
        yield Envelope(name, number, turn, at, event)


def _last(records: Iterator[Envelope | Gap]) -> int:
    last = 0
    for record in records:
        last = last_seq(record)
    return last
