"""Which server a request of a model goes to, and who waits for one.

    choice = ServerChoice("far", [known(url, "big") for url in urls], limit=64, probe=probe)
    request = await choice.take()
    try:
        ...                             # ask `request.server`, and tell the request what comes of it
    finally:
        request.end()

The one with the fewest requests, for whichever model, is chosen, in turn where several have as few. Servers that are
left out are not asked, unless there is only one: then there is nothing to choose, and it is asked whatever is known of
it. Where all have as many requests as they may, those who wait are served in the order in which they came, whoever asks
for the model. Nobody waits for a server that is not there: when none is, all are looked at once more, and then it is
said.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Final

from trunkline.core.faults import ProviderError
from trunkline.core.graph import queueing
from trunkline.models.model_server import ModelServer, ServerRequest

#: Requests that a server has at once, unless somebody says otherwise. vLLM and SGLang answer some hundred at once, the
#: more the slower; those of llama.cpp's server that have no slot wait there.
MAX_CONCURRENT: Final = 64

#: Says who came first, among all who wait.
_tickets = count()


class NoServerUp(ProviderError):
    """None of a model's servers can be used now."""


class _Waiter:
    """A request that waits. `tried`: the server that it does not want."""

    def __init__(self, tried: ModelServer | None) -> None:
        # One that was sent elsewhere has waited before.
        self.ticket = next(_tickets) if tried is None else -1
        self.tried = tried
        #: None: there is nobody to wait for.
        self.turn: asyncio.Future[ServerRequest | None] = asyncio.get_running_loop().create_future()


class ServerChoice:
    """The servers of one model. For one event loop.

    Args:
        name: what people call the model.
        limit: requests that each server may have at once.
        probe: sees whether a server works; raises a `ProviderError` if it does not.
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[ModelServer],
        limit: int,
        probe: Callable[[ModelServer], Awaitable[None]],
    ) -> None:
        self._name = name
        self.servers = tuple(servers)
        self.limit = limit
        self._probe = probe
        self._alone = len(self.servers) == 1
        self._next = 0
        self._waiters: deque[_Waiter] = deque()
        self._attached = False

    @property
    def waiting(self) -> int:
        """How many requests wait for a server."""
        return len(self._waiters)

    @property
    def oldest(self) -> int:
        """The number of the one that has waited longest; see `ServerUser`."""
        return self._waiters[0].ticket if self._waiters else 0

    async def probe(self, server: ModelServer) -> None:
        """See whether a server works; see `ServerUser`."""
        await self._probe(server)

    async def take(self, tried: ModelServer | None = None) -> ServerRequest:
        """A server, for one request. `tried`: one that has just failed at it, so that another is wanted.

        Raises:
            NoServerUp: none can be used.
        """
        self._attach()
        while True:
            if not self._any_up(tried) and not await self._looked_again(tried):
                raise self.none_up()
            waiter = _Waiter(tried)
            (self._waiters.append if tried is None else self._waiters.appendleft)(waiter)
            self.serve()
            loop = asyncio.get_running_loop()
            began = loop.time()
            waits = not waiter.turn.done()
            try:
                request = await waiter.turn
            except BaseException:
                self._left(waiter)
                raise
            if waits:
                queueing.waited(loop.time() - began)
            if request is not None:
                return request

    def serve(self) -> None:
        """Give the servers that have room to those who wait, in their order."""
        waiters, self._waiters = self._waiters, deque()
        while waiters:
            waiter = waiters.popleft()
            if waiter.turn.done():
                continue
            if not self._any_up(waiter.tried):
                waiter.turn.set_result(None)
            elif (server := self._chosen(waiter.tried)) is not None:
                waiter.turn.set_result(server.begin())
            else:
                self._waiters.append(waiter)
                if waiter.tried is None:
                    # Nor has any server room for those behind it: thousands may wait.
                    break
        self._waiters += waiters

    def none_up(self) -> NoServerUp:
        """The fault that names all servers, and says why each is left out."""
        left_out = "; ".join(f"`{server.place}`: {server.reason.rstrip('.')}" for server in self.servers)
        return NoServerUp(
            f"No server of the model `{self._name}` can be used ({left_out}).",
            retryable=True,
            hint="Trunkline keeps probing them: try again later.",
        )

    async def close(self) -> None:
        """Let go of the servers. Idempotent; a later request takes them again."""
        self._attached = False
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.turn.done():
                waiter.turn.set_exception(ProviderError(f"The model `{self._name}` was unloaded.", retryable=True))
        for server in self.servers:
            await server.detach(self)

    def _attach(self) -> None:
        if not self._attached:
            self._attached = True
            for server in self.servers:
                server.attach(self)

    def _any_up(self, tried: ModelServer | None) -> bool:
        return self._alone or any(server.up for server in self.servers if server is not tried)

    async def _looked_again(self, tried: ModelServer | None) -> bool:
        """Look at the servers that are left out, until one is back or it is known that none is. Whether one is."""
        looks = {asyncio.ensure_future(server.look_again()) for server in self.servers if server is not tried}
        try:
            pending = looks
            while pending and not self._any_up(tried):
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for look in looks:
                look.cancel()
        return self._any_up(tried)

    def _chosen(self, tried: ModelServer | None) -> ModelServer | None:
        if self._alone:
            (only,) = self.servers
            return only if only.in_flight < only.limit else None
        best: ModelServer | None = None
        total = len(self.servers)
        start = self._next
        for at in range(start, start + total):
            server = self.servers[at % total]
            if server is not tried and server.has_room and (best is None or server.load.requests < best.load.requests):
                best, self._next = server, (at + 1) % total
        return best

    def _left(self, waiter: _Waiter) -> None:
        """Somebody waits no longer, and may have been given a server in this very moment."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if waiter.turn.done() and not waiter.turn.cancelled() and waiter.turn.exception() is None:
            request = waiter.turn.result()
            if request is not None:
                request.end()
