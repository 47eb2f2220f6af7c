"""Forks a session: the new one starts with the events of the old one, and continues independently.

The agent's own records are among them, so it remembers the conversation up to that point. An agent that keeps its
conversation in an external program cannot be taken back to an earlier point: it gets the conversation as text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

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
from trunkline.core.faults import ConfigError, SessionNotFound
from trunkline.core.state import SessionState
from trunkline.exchange.conversation_text import conversation_text
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.switchboard import Switchboard

#: Agents that keep the conversation in an external program: two of our sessions must not share one of its sessions.
ELSEWHERE = frozenset({"agentproc", "jsonstream", "acp"})

#: The reason given for the end of a turn that was in progress at the fork.
FORKED = "The session was forked here"


class NoSuchEvent(ConfigError):
    """The session has no event with that number to fork after."""


async def fork(switchboard: Switchboard, session_id: str, at: int | None, by: str) -> SessionRow:
    """Create a session with the events of another one up to and including `at`; by default all of them.

    A turn in progress at that point ends in the new session: its questions are asked only in the old one.

    Raises:
        SessionNotFound: there is no such session.
        NoSuchEvent: it has no event with that number.
        UnknownAgent: its agent no longer exists.
    """
    row = await switchboard.row(session_id)
    if row is None:
        raise SessionNotFound(f"There is no session `{session_id[:80]}` here.")
    kind = switchboard.directory.find(row.agent).settings.kind
    last = await asyncio.to_thread(_last, switchboard.peek(session_id).records)
    end = last if at is None else at
    if not 0 <= end <= last:
        raise NoSuchEvent(f"Session `{session_id[:80]}` has no event {end}: its last one is {last}.")
    words = ""
    if kind in ELSEWHERE:
        view = switchboard.peek(session_id)
        words = await asyncio.to_thread(lambda: conversation_text(_until(view.records, end), row.agent))
    events = _forked(_until(switchboard.peek(session_id).records, end), end, words)
    made = await switchboard.adopt(row.agent, row.workspace, by, events)
    await switchboard.acts.add(made.id, end, "forked_from", by, f"{session_id} after event {end}")
    await switchboard.acts.add(session_id, last, "forked", by, f"{made.id} after event {end}")
    return made


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
