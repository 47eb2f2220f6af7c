"""A chat platform as a wire of an exchange, such as `[wires.telegram]`. Each chat is a session that others can join.

It is the bridge of `trunkline bridge run`, with sessions of the exchange in the place of its own.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from typing import Any

from trunkline.base.chat_platforms import PLATFORMS
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.platforms import made, senders_of
from trunkline.chat.settings import BridgeSettings
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.session import Session
from trunkline.exchange import config_secrets
from trunkline.exchange.config_secrets import ENV, KEYRING
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.seats import Seats
from trunkline.exchange.settings import WireSettings

#: The keys of a wire that are the bridge's, and not the platform's.
BRIDGE_KEYS = ("instructions", "verbosity", "rate", "queue", "max_chars")
#: How long the last messages may take to be delivered: less than the exchange waits for a wire that it stops.
DRAIN_SECONDS = 1.0
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
        senders = senders_of(self._settings, (self.name,))
        platform = made(self.name, self._settings, senders, self._exchange.environ)
        home = self._exchange.settings.home
        store = ChatStore(os.path.join(home, "chat.db"))
        opener = ExchangeOpener(self._exchange, self._settings, self.name)
        bridge = Bridge(platform, store, opener, senders, files=os.path.join(home, "chat-files"))
        try:
            await bridge.start()
            reachable()
            await _until(stop, bridge)
        finally:
            try:
                await bridge.close(drain_seconds=DRAIN_SECONDS)
            finally:
                store.close()


async def _until(stop: asyncio.Event, bridge: Bridge) -> None:
    serving = asyncio.create_task(bridge.serve(), name="serve a chat platform")
    stopping = asyncio.create_task(stop.wait(), name="wait for stop")
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
