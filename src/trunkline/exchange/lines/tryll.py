"""The Tryll wire of an exchange: `agent:NAME` in a graph is a session with that agent, which others can join."""

from __future__ import annotations

from contextlib import suppress

from trunkline.base import config_addresses
from trunkline.base.hosts import is_loopback
from trunkline.core.agent import AddHistory
from trunkline.core.faults import ConfigError, Unsupported
from trunkline.core.session import Session
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.seats import Seats
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
    websocket = config_addresses.beside(keys.get("ws"), host, port)
    doors = {"listen": host} | ({"ws": websocket[0]} if websocket is not None else {})
    public = {key: there for key, there in doors.items() if not is_loopback(there)}
    if public:
        if not keys.get("public"):
            hint = "Add `public = true` if that is what you want."
            key, there = next(iter(public.items()))
            raise ConfigError(f"`wires.{NAME}.{key}` lets other machines connect to `{there}`.", hint=hint)
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
        websocket=websocket,
        websocket_strict=keys.get("ws") is not True,
        origins=keys.get("ws_origins", ()),
        max_clients=keys.get("max_clients", 0),
        max_agents=keys.get("max_agents", 0),
        turns_per_minute=keys.get("turns_per_minute", 0),
    )


class ExchangeAgents(Seats):
    """The agents of an exchange, for the graphs of a server. Their sessions stay when a graph ends."""

    person = NAME
    serving = False

    def __init__(self, exchange: Exchange, agents: tuple[str, ...] | None) -> None:
        """`agents`: only these; None: all."""
        super().__init__(exchange.switchboard, NAME)
        self._exchange = exchange
        self._agents = agents

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
        live = await self._board.open(name, by=self.person)
        await self.take(live.id, self.person)
        if instructions:
            try:
                with suppress(Unsupported):
                    await live.session.configure(AddHistory(instructions))
            except BaseException:
                await self.leave(live.session)
                raise
        return live.session

    def stop(self, session: Session, turn: int) -> None:
        """Stop the turn. When the server ends, one in which a person is asked goes on: as after `kill -9`."""
        if self.serving or not (session.turn == turn and session.waiting):
            session.stop(self.person, turn)
