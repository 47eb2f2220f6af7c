"""This exchange as a node of a cluster: which sessions are its own, and how the others are reached.

    async with Cluster.opened(settings, home) as cluster:
        other = await cluster.elsewhere(session, may_run=True)    # None: it is ours now

A session is claimed when it is first used here and nobody has it: it is new, it was let go of, or its owner is dead.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

from trunkline.core.faults import Fault, StoreUnavailable
from trunkline.core.ids import new_id
from trunkline.exchange.cluster.calls import Answer, NodeCalls
from trunkline.exchange.cluster.nodes import ClusterNode, Nodes
from trunkline.exchange.session_rows import SessionRow
from trunkline.exchange.settings import ClusterSettings
from trunkline.store.copying import copy
from trunkline.store.filelog import FileLog
from trunkline.store.files import FileStore
from trunkline.store.jetstream.errors import StreamError, StreamGone
from trunkline.store.jetstream.log import StreamedLog
from trunkline.store.jetstream.ownership import Ownership, SessionOwner
from trunkline.store.jetstream.reading import read_until
from trunkline.store.jetstream.stream import SessionStream

logger = logging.getLogger(__name__)

#: How long a node that was lost waits before it tries to be one again.
REJOIN_SECONDS = 1.0

#: How long it may take to read what happened in a session.
READ_SECONDS = 20.0

CUT_OFF = "This node is cut off from its cluster, and answers nothing until it is back."


class Cluster:
    """One node. Made by `opened`."""

    def __init__(self, settings: ClusterSettings, stream: SessionStream, me: ClusterNode) -> None:
        self.settings = settings
        self.stream = stream
        self.ownership = Ownership(stream)
        self.owned: dict[str, SessionOwner] = {}
        """The sessions that are ours, with the records that say so."""
        self.wires: dict[str, SessionOwner] = {}
        """Likewise the wires that one node serves for all, by their names."""
        self.lost: Callable[[], Awaitable[None]] = _nothing
        """Lets go of all sessions at once: they may be others'."""
        self.changed: Callable[[], None] = lambda: None
        """Called when a node has gone: its sessions are free."""
        self._answer: Answer = _refuse
        self.nodes = Nodes(stream, me, self._gone)
        self.calls = self._calls()
        self._rejoining: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, settings: ClusterSettings, home: str, *, address: str = "", at: int = 0
    ) -> AsyncIterator[Cluster]:
        """Connect to the servers. The node is one of the cluster after `join`.

        Raises:
            ConfigError: nobody answers there.
        """
        async with SessionStream.opened(settings.nats, name=settings.name) as stream:
            mark = await asyncio.to_thread(_mark_of, home)
            cluster = cls(settings, stream, ClusterNode(settings.node, new_id(), address, mark, started_at=at))
            try:
                yield cluster
            finally:
                await cluster._leave()

    async def join(self, answer: Answer) -> None:
        """Be one of the nodes. `answer` does what the others ask for.

        Raises:
            ConfigError: another node of that name is alive.
        """
        self._answer = answer
        await self.calls.start(self.nodes.me.run)
        self.nodes.changed = lambda: self.changed()
        await self.nodes.start()

    def _calls(self) -> NodeCalls:
        return NodeCalls(
            self.stream, lambda request: self._answer(request), lambda node, run: self.nodes.is_alive(node, run)
        )

    @property
    def me(self) -> ClusterNode:
        """This node."""
        return self.nodes.me

    # Whose a session is.

    async def elsewhere(
        self, session: str, *, may_run: Callable[[str], bool] = lambda node: True
    ) -> ClusterNode | None:
        """The node that has a session; None: this one, from now on if nobody had it.

        Args:
            may_run: whether a node of that name may run it.

        Raises:
            StoreUnavailable: nobody can say, or no node may run it now.
        """
        found = await self._owner(session, may_run)
        if isinstance(found, ClusterNode):
            return found
        self.owned[session] = found
        return None

    async def serve(self, wire: str) -> SessionOwner | None:
        """The right to serve a wire that one node serves for all; None: another has it. It is ours for as long as it is
        in `wires`.

        Raises:
            StoreUnavailable: nobody can say, or no node may have it now.
        """
        # No session has such an id.
        found = await self._owner(f"wire/{wire}", lambda node: True)
        if isinstance(found, ClusterNode):
            return None
        self.wires[wire] = found
        return found

    async def stop_serving(self, wire: str) -> None:
        """Let go of that: whoever wants it next has it."""
        if (mine := self.wires.pop(wire, None)) is not None:
            with suppress(StreamError):
                await self.ownership.release(f"wire/{wire}", mine)

    async def _owner(self, name: str, may_run: Callable[[str], bool]) -> SessionOwner | ClusterNode:
        """The record by which something is ours, from now on if nobody had it; or the other node that has it, or is to
        have it."""
        while True:
            self.check()
            owner = await self.ownership.find(name)
            if (owner.node, owner.run) == (self.me.name, self.me.run):
                return owner
            if owner.node and (other := await self.living(owner)) is not None:
                return other
            if not may_run(self.me.name) or self.me.draining:
                return await self._chosen(may_run)
            claimed = await self.ownership.claim(name, owner, self.me.name, self.me.run)
            if claimed is not None:
                return claimed

    def check(self) -> None:
        """See that this node may act.

        Raises:
            StoreUnavailable: it is cut off.
        """
        if not self.nodes.is_held:
            raise _cut_off()

    async def release(self, session: str) -> None:
        """Let go of a session that is ours and at rest: whoever wants it next has it."""
        if (mine := self.owned.pop(session, None)) is not None:
            with suppress(StreamError):
                await self.ownership.release(session, mine)

    async def forget(self, session: str) -> None:
        """A session that is ours was removed.

        Raises:
            StreamGone, StreamRefused: it is not known whether that is so for the others, too.
        """
        await self.ownership.forget(session)
        self.owned.pop(session, None)

    async def living(self, owner: SessionOwner) -> ClusterNode | None:
        """The owner, if it is another node and alive. One that we have not heard of may have come just now.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        if not self.nodes.is_alive(owner.node, owner.run):
            await self.nodes.look_after_now()
        return self.nodes.others.get(owner.node) if self.nodes.is_alive(owner.node, owner.run) else None

    async def elsewhere_for(self, may_run: Callable[[str], bool]) -> ClusterNode:
        """A node that may run an agent, the one with the fewest sessions.

        Raises:
            StoreUnavailable: there is none now.
        """
        self.check()
        return await self._chosen(may_run)

    async def _chosen(self, may_run: Callable[[str], bool]) -> ClusterNode:
        if not (found := self._able(may_run)):
            # One may have come just now.
            await self.nodes.look_after_now()
            found = self._able(may_run)
        if not found:
            told = "No node that may run this agent is there now."
            raise StoreUnavailable(told, retryable=True, hint="Start one of its `nodes`, or try again soon.")
        return min(found, key=lambda node: (node.sessions, node.name))

    def _able(self, may_run: Callable[[str], bool]) -> list[ClusterNode]:
        return [each for each in self.nodes.others.values() if may_run(each.name) and not each.draining]

    # What happened in it.

    async def log(self, store: FileStore, row: SessionRow) -> tuple[StreamedLog, bool]:
        """The log of a session that is ours, and whether it is new.

        What this machine has of it is read from the stream anew: others may have written since, and what we could not
        publish never happened.

        Raises:
            StoreUnavailable: it cannot be read now, or is not ours any more.
        """
        if (owner := self.owned.get(row.id)) is None:
            # This node was cut off since it became ours.
            raise _cut_off()
        # Also what we have written ourselves since we own it: it may have slept.
        last, _ = await self.stream.last(self.stream.both_subjects(row.id))
        file, _ = await self._copied(store, row, max(last, owner.fence))
        is_new = not int(file.restore().seq)
        return StreamedLog(file, self.stream, owner, lambda: self.nodes.is_held), is_new

    async def replica(self, store: FileStore, row: SessionRow) -> tuple[FileLog, int]:
        """What has happened in a session so far, on this machine, and the number of the message after which the rest
        comes.

        Raises:
            StreamGone, StreamRefused: it cannot be read now.
        """
        last, _ = await self.stream.last(self.stream.both_subjects(row.id))
        return await self._copied(store, row, last)

    async def _copied(self, store: FileStore, row: SessionRow, until: int) -> tuple[FileLog, int]:
        file, whole = await asyncio.to_thread(_emptied, store, row), 0
        try:
            if until:
                async with asyncio.timeout(READ_SECONDS), aclosing(read_until(self.stream, row.id, until)) as batches:
                    async for batch in batches:
                        copy(batch.events, file)
                        whole = batch.whole
        except TimeoutError:
            file.close()
            raise StreamGone("NATS does not say what happened in the session.", retryable=True) from None
        except BaseException:
            file.close()
            raise
        return file, whole

    async def ask(self, node: ClusterNode, request: Mapping[str, Any]) -> Any:
        """Have another node do something.

        Raises:
            StoreUnavailable: it does not answer.
            Fault: what it says.
        """
        return await self.calls.ask(node, request)

    # Losing it.

    def _gone(self) -> None:
        self.owned.clear()
        self.wires.clear()
        if self._rejoining is None or self._rejoining.done():
            self._rejoining = asyncio.create_task(self._rejoin(), name="be a node again")

    async def _rejoin(self) -> None:
        """Let go of everything, and come back as another run when the servers can be reached."""
        await self.lost()
        await self.calls.close()
        while True:
            await asyncio.sleep(REJOIN_SECONDS)
            again = Nodes(self.stream, self.me.replace(run=new_id()), self._gone)
            calls = self._calls()
            try:
                await calls.start(again.me.run)
                again.changed = lambda: self.changed()
                await again.start()
            except (Fault, OSError) as error:
                logger.info("this node is not back yet: %s", error)
                await calls.close()
                continue
            self.nodes, self.calls = again, calls
            logger.warning("this node is back, as another run")
            self.changed()
            return

    async def _leave(self) -> None:
        if self._rejoining is not None:
            self._rejoining.cancel()
            await asyncio.wait({self._rejoining})
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.calls.close)
            await self.nodes.close()


def _cut_off() -> StoreUnavailable:
    return StoreUnavailable(CUT_OFF, retryable=True, hint="Connect to another node, or try again soon.")


def _emptied(store: FileStore, row: SessionRow) -> FileLog:
    from trunkline.core.faults import SessionNotFound

    with suppress(SessionNotFound):
        store.forget_log(row.id)
    return store.create(row.id, row.workspace, row.agent)


def _mark_of(home: str) -> str:
    """What tells this home from others."""
    path = os.path.join(home, "node.id")
    with suppress(FileNotFoundError), open(path, encoding="ascii") as file:
        if found := file.read().strip():
            return found
    made = new_id()
    with open(path, "w", encoding="ascii") as file:
        file.write(made)
    return made


async def _nothing() -> None:
    """There is nothing to let go of yet."""


async def _refuse(request: Mapping[str, Any]) -> Any:
    raise StoreUnavailable("This node is not ready yet.", retryable=True)
