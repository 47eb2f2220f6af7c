"""Who owns a session: the node that runs its turns and writes its log.

Each record about it is written with the number of the one before: of two nodes that want a session, one gets it. The
number of the record is the fence: what the owner writes is refused as soon as there is a later one.
"""

from __future__ import annotations

import asyncio

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.store.jetstream.errors import StreamGone, WrongSequence
from trunkline.store.jetstream.stream import SessionStream

#: How often a record is tried while others are written.
MOST_TRIES = 10
_PAUSE_SECONDS = 0.02


class SessionOwner(Value):
    """A record about a session. `node` is empty if it was let go of."""

    fence: int
    """Its number in the stream; 0: there is none, and the session is new or was removed."""
    node: str = ""
    run: str = ""
    """Which run of the node: one that was started again is another."""


class Ownership:
    """The records of all sessions."""

    def __init__(self, stream: SessionStream) -> None:
        self._stream = stream

    async def find(self, session: str) -> SessionOwner:
        """The last record about a session.

        Raises:
            StreamGone, StreamRefused: nobody can say now.
        """
        seq, data = await self._stream.last(self._stream.owner_subject(session))
        if not seq:
            return SessionOwner(0)
        found = jsontext.loads(data)
        return SessionOwner(seq, found["node"], found["run"])

    async def claim(self, session: str, before: SessionOwner, node: str, run: str) -> SessionOwner | None:
        """Own a session after `before`, the record that is known; None if somebody else was faster.

        Raises:
            StreamGone, StreamRefused: nobody can say whether it worked.
        """
        data, subject = jsontext.dumps({"node": node, "run": run}), self._stream.owner_subject(session)
        tries = 0
        while True:
            try:
                return SessionOwner(await self._stream.publish(subject, data, expected=before.fence), node, run)
            except (WrongSequence, StreamGone) as error:
                # Perhaps ours, if an answer was lost on its way; and while another is on its way, nobody knows yet.
                found = await self.find(session)
                if found.fence != before.fence:
                    return found if (found.node, found.run) == (node, run) else None
                tries += 1
                if tries == MOST_TRIES:
                    raise StreamGone("NATS does not say who owns the session.", retryable=True) from error
                await asyncio.sleep(_PAUSE_SECONDS * tries)

    async def release(self, session: str, mine: SessionOwner) -> None:
        """Let go of a session: whoever wants it may have it. Nothing happens if it is not ours any more.

        Raises:
            StreamGone, StreamRefused: nobody can say whether it worked.
        """
        await self.claim(session, mine, "", "")

    async def forget(self, session: str) -> None:
        """Remove everything about a session. What its owner still writes is refused.

        Raises:
            StreamGone, StreamRefused: nobody can say whether it worked.
        """
        await self._stream.purge(self._stream.owner_subject(session))
        await self._stream.purge(self._stream.log_subject(session))
