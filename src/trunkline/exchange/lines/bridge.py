"""A chat platform as a wire of an exchange, such as `[wires.telegram]`. Each chat is a session that others can join.

It is the bridge of `trunkline bridge run`, with sessions of the exchange in the place of its own. In a cluster one node
serves the platform, from a database that all nodes share, and another one takes over.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.base import backoff
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.database import Fence
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.platform import KeepsState, Platform
from trunkline.chat.platforms import made, senders_of
from trunkline.chat.settings import BridgeSettings
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.session import Session
from trunkline.exchange import config_secrets
from trunkline.exchange.config_secrets import ENV, KEYRING
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.seats import Seats
from trunkline.exchange.settings import WireSettings

if TYPE_CHECKING:
    from trunkline.chat.delivery.shared import SharedChat
    from trunkline.exchange.cluster.cluster import Cluster
    from trunkline.exchange.cluster.wire_place import WirePlace
    from trunkline.store.jetstream.ownership import SessionOwner

logger = logging.getLogger(__name__)

#: The keys of a wire that are the bridge's, and not the platform's.
BRIDGE_KEYS = ("instructions", "verbosity", "rate", "queue", "max_chars")
#: How long the last messages may take to be delivered: less than the exchange waits for a wire that it stops.
DRAIN_SECONDS = 1.0
#: How soon a node of a cluster sees that it is to serve no more, and the longest wait after it could not.
WATCH_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 30.0
#: Whether what is asked expires, the exchange says, and not the chat.
NEVER = math.inf


def service(exchange: Exchange, wire: WireSettings) -> BridgeLine:
    """The bridge of a platform, as the file says.

    Raises:
        ConfigError: nobody could answer there.
    """
    return BridgeLine(exchange, wire)


class ExchangeOpener(Opener):
    """Opens sessions of the exchange, and lets go of them when a chat falls silent: they stay."""

    shares = True

    def __init__(self, exchange: Exchange, settings: BridgeSettings, platform: str) -> None:
        super().__init__(settings, environ=exchange.environ)
        self._platform = platform
        self._board = exchange.switchboard
        self._seats = Seats(exchange.switchboard, platform)

    async def open(self, name: str, session_id: str | None = None, *, chat: str = "") -> Session:
        """A session with the agent of that name, kept at work until `close`. `chat` is who began it.

        Raises:
            SessionNotFound: there is none of that id.
            ConfigError, AgentFailed: the agent cannot be had.
        """
        if session_id is None:
            session_id = (await self._board.open(name, by=chat or self._platform)).id
        return await self._seats.take(session_id, chat or self._platform)

    async def submit(self, session: Session, message: UserMessage) -> int:
        """As the exchange does it."""
        return await self._seats.submit(session, message)

    async def close(self, session: Session) -> None:
        """It stays in the exchange."""
        await self._seats.leave(session)


class BridgeLine:
    """One platform's bridge. A `Service`."""

    def __init__(self, exchange: Exchange, wire: WireSettings) -> None:
        self.name = wire.name
        self._exchange = exchange
        self._settings = _settings(exchange, wire)
        self._senders = senders_of(self._settings, (self.name,))

    @property
    def where(self) -> str:
        """It has no address of its own."""
        return PLATFORMS[self.name].title

    @property
    def about(self) -> str:
        """What it is good for."""
        return f"agents in chats on {self.where}"

    @property
    def trial(self) -> str:
        """How to try it."""
        return f"trunkline bridge check {self.name}"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set.

        Raises:
            ConfigError: something is missing, or somebody else serves that account.
        """
        cluster = self._exchange.cluster
        if cluster is None:
            platform = self._platform()
            store = ChatStore(os.path.join(self._exchange.settings.home, "chat.db"))
            await self._serve(platform, store, stop.wait, reachable)
        else:
            # Also a node that only stands by does what it is there for.
            reachable()
            await self._take_turns(cluster, stop)

    def _platform(self) -> Platform:
        return made(self.name, self._settings, self._senders, self._exchange.environ)

    async def _serve(
        self,
        platform: Platform,
        store: ChatStore,
        over: Callable[[], Awaitable[object]],
        reachable: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve until `over` returns. The store is closed then."""
        opener = ExchangeOpener(self._exchange, self._settings, self.name)
        files = os.path.join(self._exchange.settings.home, "chat-files")
        bridge = Bridge(platform, store, opener, self._senders, files=files)
        try:
            await bridge.start()
            reachable()
            await _until(over, bridge)
        finally:
            try:
                await bridge.close(drain_seconds=DRAIN_SECONDS)
            finally:
                store.close()

    # In a cluster.

    async def _take_turns(self, cluster: Cluster, stop: asyncio.Event) -> None:
        """Serve whenever it is this node's turn, until `stop` is set. What goes wrong here may go right on another node
        or later, so nothing is given up."""
        from trunkline.exchange.cluster.wire_place import LOOK_SECONDS, WirePlace

        place = WirePlace(cluster, self.name)
        failures = 0
        while (mine := await place.taken(stop)) is not None:
            try:
                problem = await self._serve_ours(cluster, place, mine, stop)
            except Fault as fault:
                problem = str(fault)
            finally:
                await place.let_go()
            failures = failures + 1 if problem else 0
            if problem and not stop.is_set():
                logger.warning("%s is not served here now: %s", self.name, problem)
                # Long enough for others to look: whoever can serve it, is to.
                delay = backoff.delay(failures, 3 * LOOK_SECONDS, LONGEST_DELAY_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await stop.wait()

    async def _serve_ours(self, cluster: Cluster, place: WirePlace, mine: SessionOwner, stop: asyncio.Event) -> str:
        """Serve for as long as this node is to; gives why it could not, if so.

        Raises:
            Fault: it could not.
        """
        from trunkline.chat.delivery.shared import SharedChat

        platform = self._platform()
        fence = Fence(await cluster.stream.epoch(), mine.fence)
        shared = await asyncio.to_thread(SharedChat.opened, cluster.settings.postgres, self.name, fence)
        try:
            if isinstance(platform, KeepsState):
                platform.keep_state_in(shared)
            await self._serve(platform, ChatStore(database=shared), partial(_over, stop, place, shared))
        finally:
            problem = shared.lost
            shared.close()
        return problem


async def _over(stop: asyncio.Event, place: WirePlace, shared: SharedChat) -> None:
    """Wait until this node is to serve no more. If the platform may be another's, nothing is written here then."""
    while not stop.is_set() and place.is_ours and not shared.lost:
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_SECONDS):
                await stop.wait()
    if not place.is_held:
        shared.lose("This node is not to serve the platform any more.")


async def _until(over: Callable[[], Awaitable[object]], bridge: Bridge) -> None:
    serving = asyncio.create_task(bridge.serve(), name="serve a chat platform")
    stopping = asyncio.ensure_future(over())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (serving, stopping):
            task.cancel()
        await asyncio.wait({serving, stopping})
    if not serving.cancelled():
        serving.result()


def _settings(exchange: Exchange, wire: WireSettings) -> BridgeSettings:
    names = wire.agents if wire.agents is not None else tuple(entry.name for entry in exchange.directory.entries)
    if not names:
        raise ConfigError("There is no agent who could answer.", hint="Add one as `[agents.NAME]`.")
    # As if they were written down: a secret that the file names counts before one in a usual variable.
    keys = {key: value for key, value in wire.keys.items() if not key.endswith((ENV, KEYRING))}
    keys |= config_secrets.named(wire, exchange.environ)
    own: dict[str, Any] = {key: keys.pop(key) for key in BRIDGE_KEYS if key in keys}
    allow, approvers = tuple(keys.pop("allow", ())), tuple(keys.pop("approvers", ()))
    keys.pop("agent", None)
    return BridgeSettings(
        agent=names[0],
        agents={name: name for name in names},
        allow=allow,
        approvers=approvers,
        approval_seconds=NEVER,
        platforms={wire.name: keys},
        **own,
    )
