"""The Tryll wire of an exchange: `agent:NAME` in a graph is a session with that agent, which others can join."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

from trunkline.base import config_addresses
from trunkline.base.hosts import is_loopback
from trunkline.core.agent import AddHistory
from trunkline.core.faults import AgentFailed, ConfigError, Unsupported
from trunkline.core.session import Session
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import WireSettings
from trunkline.exchange.tryll_service import PORT, TryllService
from trunkline.exchange.wire_keys import settled

#: The wire's name in the file, and who speaks when a game does.
NAME = "tryll"


def service(exchange: Exchange, wire: WireSettings) -> TryllService:
    """The server, as the file says.

    Raises:
        ConfigError: others would be let in unasked.
    """
    keys = wire.keys
    host, port = config_addresses.listening(keys.get("listen")) or ("127.0.0.1", PORT)
    token = "" if keys.get("no_token") else settled(exchange.settings.path, wire, exchange.environ)["token"] or ""
    if not is_loopback(host):
        if not keys.get("public"):
            hint = "Add `public = true` if that is what you want."
            raise ConfigError(f"`wires.{NAME}.listen` lets other machines connect to `{host}`.", hint=hint)
        if not token and not keys.get("no_token"):
            hint = "Say where it is with `token_env` or `token_keyring`, or write `no_token = true`."
            raise ConfigError("An address that others reach needs a token.", hint=hint)
    return TryllService(
        port,
        host,
        ExchangeAgents(exchange, wire.agents),
        strict="listen" in keys,
        token=token,
        models_dir=keys.get("models_dir"),
        storage_root=keys.get("storage_root"),
    )


class ExchangeAgents:
    """The agents of an exchange, for the graphs of a server. Their sessions stay when a graph ends."""

    person = NAME

    def __init__(self, exchange: Exchange, agents: tuple[str, ...] | None) -> None:
        """`agents`: only these; None: all."""
        self._exchange = exchange
        self._agents = agents
        self._seats: dict[str, AsyncExitStack] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """As the file has them now."""
        known = (entry.name for entry in self._exchange.directory.entries)
        return tuple(name for name in known if self._agents is None or name in self._agents)

    async def open(self, name: str, instructions: str | None) -> Session:
        """A new session, kept at work until `leave`.

        Raises:
            ConfigError, AgentFailed: its agent cannot be had.
        """
        board = self._exchange.switchboard
        live = await board.open(name, by=self.person)
        async with AsyncExitStack() as stack:
            live = await stack.enter_async_context(board.attached(live.id, by=self.person, wire=NAME))
            if instructions:
                with suppress(Unsupported):
                    await live.session.configure(AddHistory(instructions))
            self._seats[live.id] = stack.pop_all()
        return live.session

    async def check(self, session: Session) -> None:
        """Look whether it is still there: one that is attached to is at work until it is removed.

        Raises:
            AgentFailed: it was removed.
        """
        live = self._exchange.switchboard.live(session.id)
        if live is None or live.session is not session:
            raise AgentFailed("The session was removed.")

    async def leave(self, session: Session) -> None:
        """It stays in the exchange."""
        if (stack := self._seats.pop(session.id, None)) is not None:
            await stack.aclose()
