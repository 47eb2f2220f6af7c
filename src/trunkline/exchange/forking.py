"""Forks a session: the new one starts with the events of the old one, and continues independently."""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.core.events import Envelope, Gap
from trunkline.core.faults import SessionNotFound
from trunkline.exchange.forked_events import fork_point, forked
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.switchboard import Switchboard


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

    def records() -> Iterator[Envelope | Gap]:
        return switchboard.peek(session_id).records

    end, last = await fork_point(session_id, records, at)
    events = await forked(records, end, agent=row.agent, kind=kind)
    made = await switchboard.adopt(row.agent, row.workspace, by, events)
    await switchboard.acts.add(made.id, end, "forked_from", by, f"{session_id} after event {end}")
    await switchboard.acts.add(session_id, last, "forked", by, f"{made.id} after event {end}")
    switchboard.indexing.look()
    return made
