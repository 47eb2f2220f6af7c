"""The requests of one client that are under way: in their order, or beside each other, and not too many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.errors import TryllError

if TYPE_CHECKING:
    from trunkline.wires.tryll.serve import TryllServer
    from trunkline.wires.tryll.serve.connection import ServerConnection

#: Requests under way, turns aside, and the bytes of all: beyond that the client is not read.
MAX_REQUESTS = 64
MAX_REQUEST_BYTES = 16 * 1024 * 1024


class RequestLane:
    """What is done one after the other, as it came. `busy`: somebody is at it."""

    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.waiting: deque[tuple[Callable[[Any], Awaitable[None]], Any, int]] = deque()
        """What to do, the request, and the size of its frame."""


class RequestScheduler:
    """Base of a session. `crowded`: the client has asked for more than it gets at a time."""

    __slots__ = ("_bytes", "_lane", "_requests", "_tasks", "connection", "crowded", "server")

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.server: TryllServer = connection.server
        self.crowded = False
        self._requests = self._bytes = 0
        self._lane: RequestLane | None = None
        """None until something is to be done in order."""
        self._tasks: set[asyncio.Task[None]] = set()

    def weigh(self, size: int, requests: int = 0) -> None:
        """So many bytes more are under way, and so many requests."""
        self._bytes += size
        self._requests += requests
        was, self.crowded = self.crowded, self._requests >= MAX_REQUESTS or self._bytes >= MAX_REQUEST_BYTES
        if was and not self.crowded:
            self.server.loop.call_soon(self.connection.go_on)

    def pause(self) -> None:
        """Let others have their turn before the next request: as if there were as many under way as may be."""
        self.weigh(0, MAX_REQUESTS)
        self.server.loop.call_soon(self.weigh, 0, -MAX_REQUESTS)

    def in_order(
        self,
        do: Callable[[Any], Awaitable[None]],
        request: m.Message,
        size: int,
        lane: RequestLane | None = None,
        *,
        new: bool = True,
    ) -> None:
        """Do it when all is done that came before it in the lane: that of the session, if no other is named.

        `new`: it is new work, which a server that stops does not take.
        """
        if new:
            self._working()
        self.weigh(size, 1)
        if lane is None:
            lane = self._lane = self._lane or RequestLane()
        lane.waiting.append((do, request, size))
        if not lane.busy:
            lane.busy = True
            self._spawn(self._walk(lane))

    async def _walk(self, lane: RequestLane) -> None:
        while lane.waiting:
            await self._attempt(*lane.waiting.popleft())
            if lane.waiting:
                # What waits for nothing would keep the loop to itself.
                await asyncio.sleep(0)
        lane.busy = False

    def beside(self, do: Callable[[Any], Awaitable[None]], request: m.Message, size: int) -> None:
        """Do it beside everything else."""
        self._working()
        self.weigh(size, 1)
        self._spawn(self._attempt(do, request, size))

    def ahead(self, do: Callable[[Any], Awaitable[None]], request: m.Message, size: int) -> None:
        """Do it beside everything else that is under way, and before anything that the client asks for next."""
        self.weigh(size, MAX_REQUESTS)
        self._spawn(self._attempt(do, request, size, MAX_REQUESTS))

    async def _attempt(
        self, do: Callable[[Any], Awaitable[None]], request: m.Message, size: int, requests: int = 1
    ) -> None:
        try:
            await do(request)
        except Exception as error:
            self._failed(request, error)
        finally:
            self.weigh(-size, -requests)

    def _spawn(self, work: Any) -> None:
        task = self.server.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._rest()

    def _working(self) -> None:
        if self.server.stopping:
            raise TryllError(2001)

    def _failed(self, request: m.Message, error: Exception) -> None:
        """Tell the client what became of its request."""
        raise NotImplementedError

    def _rest(self) -> None:
        """Something is over. Perhaps everything is."""
        raise NotImplementedError
