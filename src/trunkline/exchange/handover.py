"""Hands a conversation over to another agent: a new session that starts with the old conversation as text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from trunkline.core.agent import AddHistory
from trunkline.core.events import Envelope, Gap, last_seq
from trunkline.core.faults import SessionNotFound, Unsupported
from trunkline.exchange.conversation_text import conversation_text
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.switchboard import Switchboard


async def hand_over(switchboard: Switchboard, session_id: str, to: str, by: str) -> LiveSession:
    """Open a session with the agent `to`, in the same directory, that knows the conversation of the other.

    The other session is not changed; a turn in progress there continues, and the rest of it is not included.

    Raises:
        SessionNotFound: there is no such session.
        UnknownAgent: there is no such agent.
        Unsupported: the agent does not accept an earlier conversation.
        ConfigError, AgentFailed: the agent is not available.
    """
    row = await switchboard.row(session_id)
    if row is None:
        raise SessionNotFound(f"There is no session `{session_id[:80]}` here.")
    switchboard.directory.find(to)
    view = switchboard.peek(session_id)
    text, last = await asyncio.to_thread(_read, view.records, row.agent)
    live = await switchboard.open(to, workspace=row.workspace, by=by)
    try:
        if text:
            await live.session.configure(AddHistory(text))
    except Unsupported as fault:
        await switchboard.remove(live.id)
        raise Unsupported(f"The agent `{to}` cannot continue it: {fault.message}") from None
    except BaseException:
        await switchboard.remove(live.id)
        raise
    await switchboard.acts.add(live.id, live.session.seq, "handed_over_from", by, session_id)
    await switchboard.acts.add(session_id, last, "handed_over", by, f"{live.id} ({to})")
    return live


def _read(records: Iterator[Envelope | Gap], agent: str) -> tuple[str, int]:
    """The conversation as text, and the number of its last event."""
    last = 0

    def counted() -> Iterator[Envelope | Gap]:
        nonlocal last
        for record in records:
            last = last_seq(record)
            yield record

    return conversation_text(counted(), agent), last
