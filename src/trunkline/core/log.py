"""The append-only log of a session, and the shelf that sessions are kept on: interfaces, and the one in memory.

What an `EventLog` promises:

- `append` never rewrites what is there, and its cost does not depend on how much that is.
- After `flush` the records survive the death of this process, also by `kill -9`; after `sync` also a power cut.
- A record that was cut short by a crash is never read back, and never hides the ones before it.
- Sequence numbers are given by the caller, count from 1 and have no holes; a hole found when reading is a `Gap`.
- One writer: a second process that opens the same session gets `SessionHeld`. Where a log is kept by several machines,
  one that has lost its session gets `LogLost`.
- `restore` reads back from the end to the last checkpoint, not further.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol

from trunkline.base.values import Value
from trunkline.core.events import Checkpointed, Envelope, Gap
from trunkline.core.faults import StoreUnavailable
from trunkline.core.state import SessionState


class LogLost(StoreUnavailable):
    """The session is another's now: what was appended and not kept is not part of it, and must not be shown."""


class Restored:
    """What a log gives back to a session that is resumed."""

    def __init__(self, seq: int, state: SessionState, records: int) -> None:
        self.seq = seq
        """The last sequence number in the log."""
        self.state = state
        self.records = records
        """How many records came after the last checkpoint."""


class EventLog(Protocol):
    """The events of one session, in order, forever."""

    @property
    def shows_kept(self) -> bool:
        """Whether an event may be shown only after `sync`, and not as soon as it outlives this process: others rely on
        what they have seen."""

    @property
    def session(self) -> str:
        """The session's id."""

    def append(self, envelope: Envelope) -> int:
        """Add a record and say how many bytes it takes. It may stay in memory until `flush`."""

    def flush(self) -> None:
        """Hand over everything appended, so that it outlives this process.

        Raises:
            OSError: it could not be written, for example because the disk is full. The next `flush` tries again; up to
                a limit of the store nothing is forgotten, and beyond it the oldest read as a `Gap`.
        """

    async def sync(self) -> None:
        """Flush, and wait until a power cut cannot take it back. Does not block the event loop.

        Raises:
            LogLost: the session is another's now.
        """

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        """The records after sequence number `since`, in order; what cannot be read is a `Gap`."""

    def restore(self) -> Restored:
        """The state of the session: the last checkpoint and all that came after it."""

    def close(self) -> None:
        """Flush and let go of the session, so that another process may have it. Idempotent."""

    def ending(self) -> None:
        """Let whoever waits for the session know that it is about to be let go of, where that can be told."""

    def discard(self) -> None:
        """Close, and forget a session that was made and never began, so that its id can be had again."""


class SessionInfo(Value):
    """One entry in a list of sessions."""

    id: str
    workspace: str
    created: float
    updated: float
    agent: str | None = None
    """Who answers in it, if that was said."""
    given: Mapping[str, str] | None = None
    """Options that it was begun with, as they would be given again, if that was said."""


class SessionStore(Protocol):
    """Where sessions are kept."""

    def create(self, session: str, workspace: str, agent: str | None = None) -> EventLog:
        """A new session. `agent` is who answers in it, for those who want to know when they open it again.

        Raises:
            SessionExists: the id is taken.
            SessionHeld: another process has it open.
        """

    def open(self, session: str) -> EventLog:
        """An existing session. A failure leaves nothing behind.

        Raises:
            SessionNotFound: there is none of that id.
            SessionHeld: another process has it open.
            SessionDamaged: its log cannot be read.
        """

    def latest(self, workspace: str) -> str:
        """The id of the session that was used last in a workspace.

        Raises:
            SessionNotFound: there is none.
        """

    def list(self) -> list[SessionInfo]:
        """All sessions, the one used last first."""


#: What a session that is not kept remembers of itself, for subscribers that ask to read back.
MEMORY_RECORDS = 10_000


class MemoryLog:
    """A log in memory that drops its oldest records, for sessions that are not saved."""

    shows_kept = False

    def __init__(self, session: str, keep: int = MEMORY_RECORDS) -> None:
        self._session = session
        self._records: deque[Envelope] = deque(maxlen=keep)

    @property
    def session(self) -> str:
        return self._session

    def append(self, envelope: Envelope) -> int:
        self._records.append(envelope)
        return 0

    def flush(self) -> None:
        pass

    async def sync(self) -> None:
        pass

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        kept = [envelope for envelope in self._records if envelope.seq > since]
        if kept and kept[0].seq > since + 1:
            yield Gap(since + 1, kept[0].seq - 1)
        yield from kept

    def restore(self) -> Restored:
        return restore(reversed(self._records))

    def close(self) -> None:
        pass

    def ending(self) -> None:
        pass

    def discard(self) -> None:
        self._records.clear()


def restore(newest_first: Iterator[Envelope]) -> Restored:
    """Fold the records since the last checkpoint. Takes no more of the iterator than it needs."""
    since: list[Envelope] = []
    state = SessionState()
    for envelope in newest_first:
        if isinstance(envelope.event, Checkpointed):
            state = SessionState.from_snapshot(envelope.event.state)
            seq = since[0].seq if since else envelope.seq
            break
        since.append(envelope)
    else:
        seq = since[0].seq if since else 0
    for envelope in reversed(since):
        state.apply(envelope)
    return Restored(seq, state, len(since))
