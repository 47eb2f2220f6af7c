"""Where the sessions of a cluster are, for the switchboard: here, or on another node, where they are followed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from trunkline.base import backoff, jsontext, shapes
from trunkline.core.agent import Capabilities
from trunkline.core.faults import SessionExists, StoreUnavailable
from trunkline.core.log import EventLog
from trunkline.exchange.approvals import ApprovalStore
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.exchange.cluster.followed_live import FollowedLive, command_for
from trunkline.exchange.cluster.followed_session import FollowedSession
from trunkline.exchange.directory import AgentEntry, Directory
from trunkline.exchange.messages import Messages
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.settings import AgentSettings
from trunkline.store.files import FileStore
from trunkline.store.jetstream.errors import StreamError
from trunkline.store.jetstream.reading import follow

logger = logging.getLogger(__name__)

#: How many sessions are asked about at once, when a node has died.
AT_ONCE = 32

MOVED = "The session is moving to another node."
#: How often, and after how long, a session is asked for that moves: longer than a node takes to let go of it.
MOST_TRIES = 6
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 1.0


class SessionPlaces:
    """All sessions, as this node sees them: the `Places` of a cluster."""

    are_several = True

    def __init__(self, cluster: Cluster, directory: Directory, store: FileStore) -> None:
        self.cluster = cluster
        self._directory = directory
        self._store = store

    def may_run_here(self, agent: AgentSettings) -> bool:
        """Whether new sessions with an agent are opened on this node."""
        me = self.cluster.me
        return agent.may_run(me.name) and not me.draining

    def is_ours(self, session: str) -> bool:
        """Whether a session that became ours still is, as far as we have heard."""
        return session in self.cluster.owned

    async def is_still_ours(self, session: str) -> bool:
        """The same as the servers have it; not if they do not say."""
        try:
            owner = await self.cluster.ownership.find(session)
        except StreamError as error:
            logger.warning("it is not known whose session %s is: %s", session, error)
            return False
        me = self.cluster.me
        return self.cluster.nodes.is_held and (owner.node, owner.run) == (me.name, me.run)

    async def is_free(self, session: str) -> bool:
        """Whether no living node has a session.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        owner = await self.cluster.ownership.find(session)
        return not owner.node or await self.cluster.living(owner) is None

    async def is_elsewhere(self, session: str) -> bool:
        """Whether another living node has a session.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        owner = await self.cluster.ownership.find(session)
        return bool(owner.node) and owner.run != self.cluster.me.run and await self.cluster.living(owner) is not None

    async def free(self, sessions: Iterable[str]) -> list[str]:
        """Those of these that no living node has.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        names, several = sorted(sessions), asyncio.Semaphore(AT_ONCE)

        async def is_free(session: str) -> bool:
            async with several:
                return await self.is_free(session)

        found = await asyncio.gather(*map(is_free, names))
        return [session for session, is_free in zip(names, found, strict=True) if is_free]

    async def claimed(self, row: SessionRow) -> bool:
        """Own a new session; False: another node was faster, and has opened it.

        Raises:
            StoreUnavailable: nobody can say.
        """
        if (other := await self.cluster.elsewhere(row.id)) is None:
            return True
        asked = {"do": "open", "agent": row.agent, "session": row.id, "workspace": row.workspace, "by": row.by_person}
        await self.cluster.ask(other, {**asked, "passing": bool(row.passing)})
        return False

    async def claim(self, session: str) -> None:
        """Own a new session.

        Raises:
            SessionExists: another node has it.
            StoreUnavailable: nobody can say.
        """
        if (other := await self.cluster.elsewhere(session)) is not None:
            raise SessionExists(f"Session `{session[:80]}` is on node `{other.name}`.")

    async def log(self, row: SessionRow, *, resume: bool) -> tuple[EventLog, bool]:
        """The log of a session that is ours, and whether it is new: the stream knows, whatever is expected."""
        return await self.cluster.log(self._store, row)

    async def fetch(self, row: SessionRow) -> None:
        """Have what has happened in a session on this machine, to be read."""
        self.cluster.check()
        file, _ = await self.cluster.replica(self._store, row)
        file.close()

    async def release(self, session: str) -> None:
        """Let go of a session that is ours and at rest."""
        await self.cluster.release(session)

    async def forget(self, session: str) -> None:
        """A session that is ours was removed."""
        await self.cluster.forget(session)

    async def open_elsewhere(
        self, agent: AgentSettings, session: str, workspace: str | None, by: str, passing: bool
    ) -> None:
        """Have a node that may run an agent open a session.

        Raises:
            Fault: none can.
        """
        node = await self.cluster.elsewhere_for(agent.may_run)
        asked = {"do": "open", "agent": agent.name, "session": session, "workspace": workspace, "by": by}
        await self.cluster.ask(node, {**asked, "passing": passing})

    async def remove_elsewhere(self, session: str) -> bool:
        """Have the node that has a session remove it; whether it is another's."""
        other = await self.cluster.elsewhere(session)
        if other is None:
            return False
        await self.cluster.ask(other, {"do": "remove", "session": session})
        return True

    # Following.

    async def check_ours(self, row: SessionRow, entry: AgentEntry) -> None:
        """See that a session is ours, from now on if nobody had it.

        Raises:
            StoreUnavailable: it is another node's, or must be.
        """
        if await self.cluster.elsewhere(row.id, may_run=entry.settings.may_run) is not None:
            raise StoreUnavailable(MOVED, retryable=True, hint="Try again soon.")

    async def follow(
        self,
        row: SessionRow,
        entry: AgentEntry,
        approvals: ApprovalStore,
        messages: Messages,
        ended: Callable[[str], None],
    ) -> FollowedLive | None:
        """The session as another node has it; None if it is ours. `ended` is called when it has another owner.

        Raises:
            Fault: nobody can have it now.
        """
        standing = await self._woken_elsewhere(row, entry)
        if standing is None:
            return None
        file, last = await self.cluster.replica(self._store, row)
        ask = partial(self._ask, row.id, ended)
        session = FollowedSession(
            file,
            file.restore(),
            lambda command, by: ask(command_for(row.id, command, by)),
            shapes.decode(Capabilities, standing["capabilities"]),
        )
        following = asyncio.create_task(self._copy(session, last, ended), name="follow a session")
        return FollowedLive(session, entry, row, approvals, messages, ask, following)

    async def _woken_elsewhere(self, row: SessionRow, entry: AgentEntry) -> Mapping[str, Any] | None:
        """Have the node that has a session wake it; None if it is ours. One that moves meanwhile is asked for again."""
        tries = 0
        while True:
            other = await self.cluster.elsewhere(row.id, may_run=entry.settings.may_run)
            if other is None:
                return None
            try:
                # It may be asleep there, or free: then it is that node's now.
                found: Mapping[str, Any] = await self.cluster.ask(other, {"do": "wake", "session": row.id})
                return found
            except StoreUnavailable:
                tries += 1
                if tries > MOST_TRIES:
                    raise
                await asyncio.sleep(backoff.delay(tries, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS))

    async def _copy(self, session: FollowedSession, after: int, ended: Callable[[str], None]) -> None:
        async with aclosing(follow(self.cluster.stream, session.id, after)) as batches:
            async for batch in batches:
                if batch.events and batch.events[0].seq != session.seq + 1:
                    # It was removed, and begun again under its id.
                    break
                session.take(batch.events)
                if batch.owner is not None and jsontext.loads(batch.owner)["run"] in ("", self.cluster.me.run):
                    # It was let go of, or is ours now.
                    break
        ended(session.id)

    async def _ask(self, session: str, ended: Callable[[str], None], request: Mapping[str, Any]) -> Any:
        """Ask whoever owns a session now. If nobody does, it is not followed any more: the next who wants it has it."""
        owner = await self.cluster.ownership.find(session)
        node = await self.cluster.living(owner) if owner.node else None
        if node is None:
            ended(session)
            raise StoreUnavailable(MOVED, retryable=True, hint="Try again soon.")
        return await self.cluster.ask(node, request)
