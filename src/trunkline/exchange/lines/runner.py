"""Agents on a social network as a wire of an exchange: `[wires.runner]`, with the keys of `[runner]`.

Each of `[wires.runner.agents.NAME]` is run as by `trunkline runner`, and its brain is a session with an agent of the
exchange: what it uses is counted there, what it may not do is asked there, and others can look on. The launcher, which
looks after agents from outside, is served if the file says where or with which secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from trunkline.base import config_addresses
from trunkline.base.hosts import is_loopback
from trunkline.base.keyring import system_keyring
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.core.starting import callers_secret
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.lines.brain import ExchangeBrain
from trunkline.exchange.settings import ExchangeSettings, WireSettings
from trunkline.exchange.wire_keys import settled
from trunkline.runner.brain import Brain
from trunkline.runner.config import RunnerConfig, normalise
from trunkline.runner.engine import Cycles
from trunkline.runner.fleet import Fleet, FleetHome
from trunkline.runner.holding import Hold
from trunkline.runner.keys import Keys
from trunkline.runner.launcher import Launcher, opened_fleet, serve
from trunkline.runner.opening import open_runner

#: The wire's name in the file.
NAME = "runner"
#: Whoever writes one of these wants a launcher.
_OF_A_LAUNCHER = ("listen", "secret_env", "secret_keyring", "secret_file", "allow_origin")


def service(exchange: Exchange, wire: WireSettings) -> RunnerLine:
    """The runners, as the file says.

    Raises:
        ConfigError: one of them cannot work as configured, or nobody would run.
    """
    return RunnerLine(exchange, setup(exchange.settings, wire, exchange.environ))


class RunnerSetup(Value):
    """What the file says, understood."""

    given: tuple[Mapping[str, Any], ...]
    """What each agent's runner is told."""
    names: Mapping[str, str]
    """What each is called in the file, by its id on the network."""
    launcher: Launcher | None
    db: str | None = None
    """The database in which other launchers share them."""

    def __repr__(self) -> str:
        return f"RunnerSetup(names={self.names!r})"


def setup(settings: ExchangeSettings, wire: WireSettings, environ: Mapping[str, str]) -> RunnerSetup:
    """See what is to run.

    Raises:
        ConfigError: one of them cannot work as configured, or nobody would run.
    """
    tables: Mapping[str, Any] = wire.keys.get("agents", {})
    launcher = _launcher(settings, wire, environ)
    if not tables and launcher is None:
        raise ConfigError("There is no agent to run.", hint=f"Write `[wires.{NAME}.agents.NAME]` into the file.")
    agent = next(iter(wire.agents or settings.agents), "")
    given = tuple(_with_brain(table, agent) for table in tables.values())
    names: dict[str, str] = {}
    for name, told in zip(tables, given, strict=True):
        config = normalise(told, environ)
        if config.agent_id in names:
            raise ConfigError(f"`{name}` is the same agent as `{names[config.agent_id]}`: `{config.agent_id}`.")
        names[config.agent_id] = name
        if config.brain is not None and config.brain.get("kind") == "agent":
            _agent_of(config.brain, settings.agents)
    # The exchanges of a cluster have the same file: without leases, each of them would run the same agents.
    shared = settings.cluster.postgres if settings.cluster else None
    return RunnerSetup(given, names, launcher, settled(settings.path, wire, environ)["db"] or shared)


class RunnerLine:
    """All runners of an exchange, and their launcher. A `Service`."""

    name = NAME
    about = "agents on a social network"

    def __init__(self, exchange: Exchange, found: RunnerSetup, keys: Keys | None = None) -> None:
        """`keys`: where a launcher keeps the secrets that it is given; the system's keyring, if left out."""
        self._exchange = exchange
        self._setup = found
        self._keys = keys or Keys(system_keyring)

    @property
    def where(self) -> str:
        """The launcher's address, or who runs."""
        launcher = self._setup.launcher
        return ", ".join(self._setup.names.values()) if launcher is None else f"http://{launcher.host}:{launcher.port}"

    @property
    def trial(self) -> str:
        """How to try it."""
        return "trunkline usage" if self._setup.launcher is None else f"trunkline runner status --url {self.where}"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Run them until `stop` is set.

        Raises:
            ConfigError: the launcher's address cannot be had, or a package is missing.
        """
        launcher = self._setup.launcher
        exchange = self._exchange
        place = FleetHome(exchange.settings.home, self._runner, agents=self._setup.given, environ=exchange.environ)
        async with opened_fleet(place, self._keys, self._setup.db) as fleet:
            if launcher is None:
                await _alone(fleet, stop, reachable)
                return

            def begun(host: str, port: int) -> None:
                self._setup = self._setup.replace(launcher=launcher.replace(port=port))
                reachable()

            await serve(launcher, stop, begun, fleet)

    def _runner(self, config: RunnerConfig, home: str, port: int | None, hold: Hold) -> Cycles:
        environ = self._exchange.environ
        return open_runner(config, home=home, port=port, with_agent=self._brain, environ=environ, hold=hold)

    def _brain(self, config: RunnerConfig, given: Mapping[str, Any]) -> Brain:
        agent = _agent_of(given, self._exchange.settings.agents)
        who = self._setup.names.get(config.agent_id, config.agent_id)
        return ExchangeBrain(
            self._exchange.switchboard,
            agent,
            session_id=f"{NAME}-{agent}-{config.agent_id}",
            person=f"{NAME}:{who}",
            wire=NAME,
            seconds=config.timeout_seconds,
        )


async def _alone(fleet: Fleet, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
    """Run agents without a launcher."""
    try:
        await fleet.begin()
        reachable()
        await stop.wait()
    finally:
        await fleet.close()


def _with_brain(table: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """What an agent's runner is told; one without a brain or a model of its own has an agent of the exchange."""
    if table.get("brain") is not None or table.get("llm") is not None:
        return table
    return {**table, "brain": {"kind": "agent", "name": agent}}


def _agent_of(brain: Mapping[str, Any], agents: Collection[str]) -> str:
    """The agent of the exchange that a brain is.

    Raises:
        ConfigError: there is no such agent, or what is said of it belongs elsewhere.
    """
    agent = str(brain.get("name") or "").strip()
    if agent not in agents:
        known = ", ".join(f"`{name}`" for name in agents)
        raise ConfigError(f"`brain.name` is `{agent[:80]}`.", hint=f"The exchange has {known or 'no agents'}.")
    for key in ("allow", "options", "keep"):
        if brain.get(key) is not None:
            hint = f"What the agent may do is said in `[agents.{agent}]`; its sessions are always kept."
            raise ConfigError(f"`brain.{key}` is not for an agent of the exchange.", hint=hint)
    return agent


def _launcher(settings: ExchangeSettings, wire: WireSettings, environ: Mapping[str, str]) -> Launcher | None:
    if not any(key in wire.keys for key in _OF_A_LAUNCHER):
        return None
    found = settled(settings.path, wire, environ)
    secret = callers_secret(found["secret"], found["secret_file"])
    if not secret:
        hint = "Say where it is with `secret_env`, `secret_keyring` or `secret_file`."
        raise ConfigError("A launcher needs a secret that callers must know.", hint=hint)
    host, port = config_addresses.listening(found["listen"]) or ("127.0.0.1", 0)
    if not is_loopback(host):
        hint = "A launcher holds keys of wallets: use a tunnel to reach it."
        raise ConfigError(f"`wires.{NAME}.listen` lets other machines connect to `{host}`.", hint=hint)
    return Launcher(settings.home, host, port, secret, found["allow_origin"])
