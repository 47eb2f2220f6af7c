"""Which nodes there are. Each says again and again that it is alive, and counts as dead when it has not for a while.

A node that cannot say so, because it is cut off or was stopped, counts itself dead a little earlier than the others do:
it lets go of its sessions before anybody takes them. What it still writes then is refused by the stream all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, Fault
from trunkline.store.jetstream.errors import StreamError, WrongSequence
from trunkline.store.jetstream.stream import LEASE_SECONDS, START_SECONDS, SessionStream

logger = logging.getLogger(__name__)

#: How often a node says that it is alive.
RENEW_SECONDS = 1.0
#: The same after it could not: servers that elect a leader may leave little of the lease, and refuse at once.
AGAIN_SECONDS = 0.2
#: How long before the others it counts itself dead: more than clocks of machines run apart in that time.
EARLIER_SECONDS = 1.5
#: How often a node looks who is there.
LOOK_SECONDS = 1.0


class ClusterNode(Value):
    """A node as it says of itself."""

    name: str
    run: str
    """Which run of it: one that was started again is another."""
    address: str = ""
    """Where it serves HTTP, for people."""
    home: str = ""
    """What tells two nodes with the same name apart."""
    draining: bool = False
    """It takes no new sessions, and lets go of those that it has."""
    sessions: int = 0
    """How many are awake there."""
    started_at: int = 0


class Nodes:
    """All of them, and our own lease."""

    def __init__(self, stream: SessionStream, me: ClusterNode, lost: Callable[[], None] = lambda: None) -> None:
        """`lost` is called when we are not alive any more as far as the others are concerned."""
        self._stream = stream
        self.me = me
        self._lost = lost
        self.others: Mapping[str, ClusterNode] = {}
        """The living, by their names, as of the last look."""
        self.changed: Callable[[], None] = lambda: None
        """Called when a node has gone or is drained."""
        self._revision = 0
        self._until = 0.0
        """Until when we count ourselves alive, by the loop's clock."""
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._is_lost = False
        self._current_look: asyncio.Task[None] | None = None
        self._next_look: asyncio.Task[None] | None = None

    @property
    def is_held(self) -> bool:
        """Whether we may act as the owner of our sessions."""
        return not self._is_lost and asyncio.get_running_loop().time() < self._until

    def is_alive(self, name: str, run: str) -> bool:
        """Whether a run of a node counts as alive."""
        if (name, run) == (self.me.name, self.me.run):
            return self.is_held
        other = self.others.get(name)
        return other is not None and other.run == run

    async def start(self) -> None:
        """Say that we are there.

        Raises:
            ConfigError: another node of that name is alive, or nobody answers.
        """
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while True:
            told: Fault = ConfigError(
                f"Another exchange runs as node `{self.me.name}`.",
                hint="Each node needs its own `node` in the section `[cluster]`.",
            )
            try:
                if await self._claimed():
                    await self.look()
                    break
            except StreamError as error:
                # Servers that have just started elect their leaders first.
                told = ConfigError(str(error))
            if asyncio.get_running_loop().time() > deadline:
                raise told
            await asyncio.sleep(LOOK_SECONDS)
        self._tasks = (
            asyncio.create_task(self._renew(), name="say that this node is alive"),
            asyncio.create_task(self._watch(), name="see which nodes are alive"),
        )

    async def close(self) -> None:
        """Say that we are gone: nobody has to wait for our lease to run out."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._until = 0.0
        if not self._is_lost:
            with suppress(StreamError, WrongSequence):
                await self._write(b"", {"KV-Operation": "DEL"})

    async def update(self, **changes: Any) -> None:
        """Say something else of ourselves from now on."""
        self.me = self.me.replace(**changes)
        with suppress(StreamError):
            await self._say()

    async def look(self) -> None:
        """See who is there now.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        found: dict[str, ClusterNode] = {}
        for subject in await self._stream.subjects(f"{self._prefix}>", of=self._bucket):
            _, data = await self._stream.last(subject, of=self._bucket)
            # One that has ended says nothing of itself, and one that has just died is not there any more.
            if data and (node := _node(data)).name != self.me.name:
                found[node.name] = node
        before, self.others = self.others, found
        if any(name not in found or found[name].run != node.run for name, node in before.items()):
            self.changed()

    async def look_after_now(self) -> None:
        """See who is there at a moment after this call. Many who ask at once share one look.

        Raises:
            StreamGone, StreamRefused: nobody can say.
        """
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look_next(self._current_look), name="look who is there")
        await asyncio.shield(self._next_look)

    async def _look_next(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        self._current_look, self._next_look = self._next_look, None
        await self.look()

    @property
    def _bucket(self) -> str:
        return f"KV_{self._stream.nodes}"

    @property
    def _prefix(self) -> str:
        return f"$KV.{self._stream.nodes}."

    async def _write(self, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Write what is known of us, after what we have written before."""
        subject = f"{self._prefix}{self.me.name}"
        self._revision = await self._stream.publish(subject, data, expected=self._revision, headers=headers)

    async def _claimed(self) -> bool:
        """Whether the name is ours now."""
        asked = asyncio.get_running_loop().time()
        self._revision, data = await self._stream.last(f"{self._prefix}{self.me.name}", of=self._bucket)
        if data and _node(data).home != self.me.home:
            return False
        # With our home, it is our last run: it is gone, or we could not have the home.
        try:
            await self._write(_encoded(self.me))
        except WrongSequence:
            return False
        self._until = asked + LEASE_SECONDS - EARLIER_SECONDS
        return True

    async def _renew(self) -> None:
        failures = 0
        while not self._is_lost:
            await asyncio.sleep(AGAIN_SECONDS if failures else RENEW_SECONDS)
            if not self.is_held:
                self._lose("it could not say in time that it is alive")
                return
            try:
                await self._say()
                failures = 0
            except StreamError as error:
                failures += 1
                if failures == 1:
                    logger.warning("this node cannot say that it is alive: %s", error)

    async def _say(self) -> None:
        while True:
            asked = asyncio.get_running_loop().time()
            try:
                await self._write(_encoded(self.me))
            except WrongSequence:
                # Ours, if an answer was lost on its way, or if somebody else of this node was faster, who may have said
                # less.
                self._revision, data = await self._stream.last(f"{self._prefix}{self.me.name}", of=self._bucket)
                if not data or _node(data).run != self.me.run:
                    self._lose("its lease has run out")
                    return
            else:
                self._until = asked + LEASE_SECONDS - EARLIER_SECONDS
                return

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except StreamError as error:
                logger.info("it is not known which nodes are alive: %s", error)

    def _lose(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            logger.error("this node lets go of all sessions: %s", why)
            self._lost()


def _encoded(node: ClusterNode) -> bytes:
    return jsontext.dumps(shapes.encode(node))


def _node(data: bytes) -> ClusterNode:
    return shapes.decode(ClusterNode, jsontext.loads(data))
