"""One server of a model: how much it has to do, and whether it can be used.

    server = known("http://gpu:8000/v1", "big")     # the same for all in this event loop who ask that model there

What a server has to do counts for all its models. Whether it can be used is found out for each: it may know one of them
and not the other, or take the key of one.

A server that fails is left out. After a while, twice as long each time, it is probed, which costs it next to nothing.
One good probe brings it back, on trial: it gets one request at a time until it has said a word to one of them. That way
a server which only seems to work costs one request now and then, and not all of them, although it is the quickest to be
done with them and so has the least to do.

It is left out at once if the connection fails or it says that it is too busy or not ready; after `STRIKES` failures in
a row if it fails otherwise, since that may be due to what it is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Protocol
from weakref import WeakKeyDictionary

from trunkline.base.backoff import delay
from trunkline.core.faults import Fault, ProviderError, TooLong
from trunkline.models.endpoint import without_secrets
from trunkline.models.http_errors import ServiceError
from trunkline.models.refused import PartRefused

logger = logging.getLogger(__name__)

#: How long a server is left out at first, doubled each time up to the longest: one that was restarted is back soon, and
#: one that is switched off for the night is not asked all night.
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
#: A probe that somebody waits for is not made earlier than this after the last.
AGAIN_SECONDS = 0.25
#: Failures in a row that are not the connection's, and may be the request's, until a server is left out.
STRIKES = 3
#: How much of a reason is repeated where several servers have one each.
REASON_CHARS = 120

#: What is wrong with the request, whoever is asked.
_REQUESTS_OWN = frozenset({400, 409, 411, 413, 414, 415, 422, 431, 451})
#: What a server says that has too much to do, or is not ready.
_NOT_NOW = frozenset({429, 503})


class ServerUser(Protocol):
    """Who asks a server: the servers of one model."""

    @property
    def limit(self) -> int:
        """How many requests a server may have at once."""

    @property
    def waiting(self) -> int:
        """How many requests wait for a server."""

    @property
    def oldest(self) -> int:
        """A number that says who of several has waited longest: the least. Any number where nobody waits."""

    async def probe(self, server: ModelServer) -> None:
        """See whether a server works.

        Raises:
            ProviderError: it does not.
        """

    def serve(self) -> None:
        """Something is different: see whether somebody who waits can be served."""


def is_request_fault(fault: ProviderError) -> bool:
    """Whether another server would say the same: it is about what was asked."""
    if isinstance(fault, TooLong | PartRefused):
        return True
    if not isinstance(fault, ServiceError) or fault.retryable:
        return False
    return fault.status is None or fault.status in _REQUESTS_OWN


class ServerLoad:
    """What a server has to do, for all its models."""

    def __init__(self) -> None:
        self.requests = 0


class ModelServer:
    """One of them, as this process sees it. For one event loop.

    Args:
        model: what the server calls the model.
        load: shared with its other models.
    """

    def __init__(self, url: str, model: str, load: ServerLoad) -> None:
        self.url = url
        self.model = model
        self.place = without_secrets(url)
        """How it is called where others can read it."""
        self.load = load
        self.up = True
        self.in_flight = 0
        """Requests for this model."""
        self.reason = ""
        """Why it is left out."""
        self.requests = 0
        self.failures = 0
        """All that there ever were."""
        self.users: list[ServerUser] = []
        self.times = 0
        """How often it has come and gone."""
        self._on_trial = False
        self._trials = 0
        self._strikes = 0
        self._outages = 0
        self._not_before = 0.0
        self._recovery: asyncio.Task[None] | None = None
        self._look: asyncio.Future[None] | None = None
        self._sooner: asyncio.Event | None = None

    @property
    def limit(self) -> int:
        """How many requests it may have at once: the least that anybody says."""
        return min((user.limit for user in self.users), default=1)

    @property
    def has_room(self) -> bool:
        """Whether it is there and takes one more request."""
        return self.up and self.in_flight < self.limit and not (self._on_trial and self._trials)

    def attach(self, user: ServerUser) -> None:
        """Somebody begins to use it."""
        self.users.append(user)
        if not self.up and self._recovery is None:
            self._probe_after(0.0)

    async def detach(self, user: ServerUser) -> None:
        """Somebody does not use it any more. The last one takes the probes along."""
        if user in self.users:
            self.users.remove(user)
        if self.users or self._recovery is None:
            return
        recovery = self._recovery
        recovery.cancel()
        await asyncio.wait([recovery])
        if self._recovery is recovery:
            # It had not begun, so that it could not put things in order itself.
            self._recovered()

    def begin(self) -> ServerRequest:
        """One request more. Its `end` is to be called, whatever happens."""
        self.in_flight += 1
        self.load.requests += 1
        self.requests += 1
        self._trials += self._on_trial
        return ServerRequest(self, self._on_trial)

    async def look_again(self) -> None:
        """See now whether it is back, if that is not known: it was left out, and was not looked at just now."""
        loop = asyncio.get_running_loop()
        if self.up or self._look is None or self._sooner is None or loop.time() < self._not_before:
            return
        self._sooner.set()
        # Whoever leaves does not take the answer from the others.
        await asyncio.shield(self._look)

    def _spoke(self, request: ServerRequest) -> None:
        if not self.up and request.times == self.times:
            # It was asked although it was left out, having nobody beside it.
            self._back(on_trial=False)
        elif self.up and self._on_trial:
            self._on_trial = False
            self._tell()

    def _answered(self) -> None:
        # One that is left out finishes what it had begun, which says nothing of what it will do with the next.
        if self.up:
            self._strikes = self._outages = 0

    def _failed(self, request: ServerRequest, fault: ProviderError) -> None:
        self.failures += 1
        if not self.up or request.times != self.times:
            return
        self._strikes += 1
        status = fault.status if isinstance(fault, ServiceError) else None
        unreachable = fault.retryable and (not isinstance(fault, ServiceError) or status in _NOT_NOW)
        if unreachable or self._on_trial or self._strikes >= STRIKES:
            asked = getattr(fault, "after", None) or 0.0
            self._leave_out(fault.message, min(asked, LONGEST_SECONDS))

    def _leave_out(self, reason: str, asked: float) -> None:
        self.up = self._on_trial = False
        self.times += 1
        self._outages += 1
        self._trials = self._strikes = 0
        seconds = max(asked, delay(self._outages, FIRST_SECONDS, LONGEST_SECONDS))
        self._told_why(reason)
        logger.warning("the model server %s failed, and is probed in %.1f s: %s", self.place, seconds, self.reason)
        self._not_before = asyncio.get_running_loop().time() + asked
        # One that is still at work has been woken up, and looks at once.
        if self.users and self._recovery is None:
            self._probe_after(seconds)
        self._tell()

    def _back(self, *, on_trial: bool = True) -> None:
        self.up = True
        self._on_trial = on_trial
        self.times += 1
        self._trials = 0
        self.reason = ""
        logger.warning("the model server %s works again", self.place)
        if self._sooner is not None:
            self._sooner.set()
        self._tell()

    def _probe_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._sooner, self._look = asyncio.Event(), loop.create_future()
        self._recovery = loop.create_task(self._recover(self._sooner, seconds), name=f"probe {self.place}")

    async def _recover(self, sooner: asyncio.Event, seconds: float) -> None:
        """Look from time to time until it is back."""
        loop = asyncio.get_running_loop()
        try:
            while not self.up:
                try:
                    async with asyncio.timeout(seconds):
                        await sooner.wait()
                except TimeoutError:
                    pass
                sooner.clear()
                if not self.up:
                    await self._probed()
                self._looked()
                self._look = loop.create_future()
                self._not_before = loop.time() + AGAIN_SECONDS
                seconds = delay(self._outages, FIRST_SECONDS, LONGEST_SECONDS)
        finally:
            self._recovered()

    def _recovered(self) -> None:
        self._looked()
        # What an idle server holds on to must not hold on to the event loop.
        self._look = self._sooner = self._recovery = None

    def _looked(self) -> None:
        if self._look is not None and not self._look.done():
            self._look.set_result(None)

    async def _probed(self) -> None:
        times = self.times
        try:
            await self.users[0].probe(self)
        except Fault as fault:
            if times == self.times:
                self._outages += 1
                self._told_why(fault.message)
        else:
            if times == self.times:
                self._back()

    def _told_why(self, reason: str) -> None:
        self.reason = reason if len(reason) <= REASON_CHARS else f"{reason[:REASON_CHARS]}..."

    def _ended(self, request: ServerRequest) -> None:
        self.in_flight -= 1
        self.load.requests -= 1
        if request.on_trial and request.times == self.times:
            self._trials -= 1
        self._tell()

    def _tell(self) -> None:
        """Let those go on who wait for it, whoever has waited longest first."""
        for user in sorted((user for user in self.users if user.waiting), key=lambda user: user.oldest):
            user.serve()


class ServerRequest:
    """One request on a server, from when the server was chosen."""

    def __init__(self, server: ModelServer, on_trial: bool) -> None:
        self.server = server
        self.on_trial = on_trial
        self.times = server.times
        self._spoken = self._over = False

    @property
    def spoken(self) -> bool:
        """Whether something of the answer has come."""
        return self._spoken

    def spoke(self) -> None:
        """Something of the answer has come. Idempotent."""
        if not self._spoken:
            self._spoken = True
            self.server._spoke(self)

    def answered(self) -> None:
        """All of it has come."""
        self.server._answered()

    def failed(self, fault: ProviderError) -> bool:
        """It did not work. Whether that is the server's fault."""
        if is_request_fault(fault):
            return False
        self.server._failed(self, fault)
        return True

    def end(self) -> None:
        """It is over. Idempotent."""
        if not self._over:
            self._over = True
            self.server._ended(self)


class _Known:
    """What is known in one event loop."""

    def __init__(self) -> None:
        self.servers: dict[tuple[str, str], ModelServer] = {}
        self.loads: dict[str, ServerLoad] = {}


_known: WeakKeyDictionary[asyncio.AbstractEventLoop, _Known] = WeakKeyDictionary()


def known(url: str, model: str) -> ModelServer:
    """The server of a model at an address."""
    here = _known.setdefault(asyncio.get_running_loop(), _Known())
    if (url, model) not in here.servers:
        here.servers[url, model] = ModelServer(url, model, here.loads.setdefault(url, ServerLoad()))
    return here.servers[url, model]


def servers() -> tuple[ModelServer, ...]:
    """All that were ever asked in this event loop, in the order of their first use."""
    here = _known.get(asyncio.get_running_loop())
    return () if here is None else tuple(here.servers.values())


def waiting() -> Counter[str]:
    """How many requests wait for a server in this event loop, by model; of the models that are in use."""
    users = {id(user): (server.model, user) for server in servers() for user in server.users}
    found: Counter[str] = Counter()
    for model, user in users.values():
        found[model] += user.waiting
    return found
