"""All agents of one launcher: at most one engine for each, known again after a restart.

An agent's configuration is kept without its secrets. After a restart those that were running run again if the keyring
has their secrets; the others wait until somebody starts them with their secrets.

Where launchers of several machines share their agents, see `shared.fleet`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, Fault
from trunkline.runner import config_parts, parting, secrets
from trunkline.runner.breaker import BreakerSettings
from trunkline.runner.budget import Budget
from trunkline.runner.config import RunnerConfig, merged, normalise
from trunkline.runner.cycle import CycleReport
from trunkline.runner.engine import Cycles, Engine
from trunkline.runner.figures import RunnerFigures
from trunkline.runner.finishing import finished, on_disk
from trunkline.runner.holding import FileHold, FileRoster, Hold, Roster
from trunkline.runner.keys import Keys
from trunkline.runner.known import KnownAgent
from trunkline.tools.threads import in_thread

logger = logging.getLogger(__name__)

#: How long `start` waits for the first cycle. Callers give up sooner or later; the cycle goes on.
FIRST_CYCLE_SECONDS = 20.0
#: How much longer it waits for the keyring, which answers in milliseconds unless somebody must unlock it.
KEYRING_SECONDS = 1.0

WAITING = "waiting for secrets"
STANDING_BY = "standing by"
HELD = "Another launcher of this home runs it."
HELD_ELSEWHERE = "Another launcher that shares it runs it."
ENDING = "The launcher is being stopped."
STOPPED_MEANWHILE = "The agent was stopped while it was started."


class FleetError(Exception):
    """A launcher cannot do that with the agent. Raise one of its children."""


class AlreadyRunning(FleetError):
    """The agent is running, or about to."""


class NotStarted(FleetError):
    """The agent was started, and does not run: somebody stopped it, or the launcher."""


class NotInFleet(FleetError):
    """This launcher does not run the agent, or does not know it."""


class FleetHome(Value):
    """Where a fleet is at home."""

    home: str
    make: Callable[[RunnerConfig, str, int | None, Hold], Cycles] | None = None
    """What makes runners; the usual one unless given."""
    patience: BreakerSettings | None = None
    agents: tuple[Mapping[str, Any], ...] = ()
    """Those that run whenever the launcher does: a file names them, and nobody needs to know them after a restart."""
    environ: Mapping[str, str] = os.environ
    """Where references in configurations lead."""


class Resting(Value):
    """An agent that is known and does not run."""

    known: KnownAgent
    reason: str | None = None
    """Why it does not, if somebody wants it to."""
    missing: tuple[str, ...] = ()
    """The secrets that it waits for."""
    last: Mapping[str, Any] = {}
    """How it was when it was stopped."""

    def status(self, runs_at: str | None = None) -> dict[str, Any]:
        """How it is; `runs_at`: the other launcher that runs it."""
        state = WAITING if self.missing else "stopped" if runs_at is None else STANDING_BY
        return {
            **self.last,
            "agentId": self.known.agent_id,
            "running": False,
            "state": state,
            "runsAt": runs_at,
            "missingSecrets": list(self.missing),
            "lastError": self.reason or self.last.get("lastError"),
        }


class SharingState(Value):
    """How it is to share agents with other launchers."""

    is_up: bool
    """Whether the database answers that they share."""
    leases: int
    """How many rights to run an agent the launcher has."""


class Fleet:
    """The agents of one launcher. Belongs to one event loop."""

    def __init__(self, place: FleetHome, keys: Keys, roster: Roster | None = None) -> None:
        """`roster`: which agents launchers know, and who may run them; that of the home, if left out."""
        self.place = place
        self.port: int | None = None
        """The launcher's, for the logs of the agents."""
        self.engines: dict[str, Engine] = {}
        self.resting: dict[str, Resting] = {}
        self.kept: dict[str, bool] = {}
        """Whether the keyring has the secrets of those that run."""
        self._always: set[str] = set()
        """The ids of those that the place names."""
        self.elsewhere: Mapping[str, str] = {}
        """Those that other launchers run, and what those are called."""
        self.figures = RunnerFigures()
        self._keys = keys
        self._roster = roster or FileRoster(place.home)
        self._holds: dict[str, Hold] = {}
        """The right to run those that run."""
        self._once: dict[str, Engine] = {}
        """Those that run one cycle only."""
        self._budgets: dict[str, Budget] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        """Who starts, changes or stops an agent has its lock."""
        self._closing = False
        self._opening_once = asyncio.Lock()
        self._saving: set[asyncio.Task[None]] = set()

    @property
    def shared(self) -> SharingState | None:
        """How it is to share them with other launchers; None where they are not shared."""
        return None

    async def begin(self) -> None:
        """Run those that always do. One that cannot is told of in its status.

        Raises:
            ConfigError: what one of them is told cannot be understood.
        """
        for given in self.place.agents:
            config = await self._checked(given)
            self._always.add(config.agent_id)
            async with self._lock(config.agent_id):
                try:
                    await self._begin(config)
                except (AlreadyRunning, Fault, OSError) as error:
                    logger.error("The runner of `%s` is not started: %s", config.agent_id, error)
                    self.resting[config.agent_id] = Resting(self._remembered(config), str(error))

    async def restore(self) -> None:
        """Know the agents of earlier launchers again, and run those that were running.

        Raises:
            ConfigError: what is known cannot be read.
        """
        for known in await self._roster.all():
            if known.agent_id not in self._always | self.engines.keys():
                self.resting[known.agent_id] = Resting(known)
        for known in [each.known for each in self.resting.values()]:
            if known.wanted and not self._lock(known.agent_id).locked() and known.agent_id in self.resting:
                await self._again(known)

    async def start(self, given: Mapping[str, Any]) -> str:
        """Run an agent; gives its id after its first cycle, or when that takes too long.

        A configuration of nothing but an agent's id and secrets is completed by what is known of it.

        Raises:
            AlreadyRunning: it is.
            NotStarted: it was stopped meanwhile.
            ConfigError: it cannot work as configured.
        """
        whole = await self._whole(given)
        self._check_ending()
        agent_id = _named(whole, self.place.environ)
        # Reserved before anything is waited for: of two that come at once, one is refused.
        if self._is_taken(agent_id):
            raise AlreadyRunning(f"Runner is already running for agent {agent_id}")
        async with self._lock(agent_id):
            engine = await self._begin(await self._checked(whole))
        saving = self._save_beside(engine.config)
        await engine.first_cycle(FIRST_CYCLE_SECONDS)
        await asyncio.wait({saving}, timeout=KEYRING_SECONDS)
        self._check_ending()
        # Another engine may have taken its place: then its configuration was changed.
        if agent_id not in self.engines or not self.engines[agent_id].running:
            self._ended_meanwhile(agent_id)
        return agent_id

    async def stop(self, agent_id: str | None = None) -> None:
        """Stop one agent, or all. They are not started again after a restart. One that is not known is stopped."""
        chosen = [agent_id] if agent_id is not None else [*self.engines, *(self.resting.keys() - self.elsewhere.keys())]
        await asyncio.gather(*map(self._stop, chosen))

    async def close(self) -> None:
        """Stop all for now: after a restart they run again. Nothing is started any more."""
        self._closing = True
        await asyncio.gather(*map(self._end, list(self.engines)), *(each.stop() for each in list(self._once.values())))
        for saving in self._saving:
            saving.cancel()
        await asyncio.gather(*self._saving, return_exceptions=True)

    async def configure(self, agent_id: str | None, change: Mapping[str, Any]) -> None:
        """Change a part of a running agent's configuration. It goes on at once with the new one.

        Raises:
            UnknownAgent: it is not running.
            ConfigError: it could not work so. Nothing is changed.
        """
        agent_id = self._engine(agent_id).config.agent_id
        async with self._lock(agent_id):
            engine = self._engine(agent_id)
            config = await self._checked(merged(engine.config.given, change))
            if config.agent_id != agent_id:
                raise ConfigError("`agentId` cannot be changed.", hint="Stop this agent, and start the other one.")
            fresh = await self._made(config, self._holds[agent_id])
            await engine.stop()
            self.engines[agent_id] = fresh
            self._go(fresh)
        await asyncio.wait({self._save_beside(config)}, timeout=KEYRING_SECONDS)

    async def run_once(self, agent_id: str | None, given: Mapping[str, Any] | None) -> CycleReport:
        """Run one cycle now: of an agent that is running, or of one that this configuration describes.

        Raises:
            UnknownAgent: there is none.
            ConfigError: it cannot work as configured.
        """
        if given is None:
            return await self._engine(agent_id).run_once()
        config = await self._checked(await self._whole(given))
        async with self._opening_once:
            engine = self.engines.get(config.agent_id) or self._once.get(config.agent_id)
            is_ours = engine is None
            if engine is None:
                hold = await self._borrowed(config.agent_id)
                engine = self._once[config.agent_id] = await self._opened(config, hold)
        if not is_ours:
            return await engine.run_once()
        try:
            return await engine.run_once()
        finally:
            await engine.stop()
            del self._once[config.agent_id]
            await self._returned(config.agent_id)

    # Its parts

    async def _again(self, known: KnownAgent) -> None:
        """Run an agent of an earlier launcher, or know why not."""
        agent_id = known.agent_id
        # Not under the lock: a keyring may take long, and whoever brings the secrets meanwhile is not to be refused.
        kept = await self._keys.load(agent_id) if known.secrets else {}
        whole = merged(known.config, kept or {})
        if self._lock(agent_id).locked() or agent_id not in self.resting:
            return
        async with self._lock(agent_id):
            if missing := parting.missing(whole, known.secrets):
                self.resting[agent_id] = Resting(known, waits_for(missing), tuple(missing))
                return
            try:
                await self._begin(await self._checked(whole))
                self.kept[agent_id] = True
            except (AlreadyRunning, Fault, OSError) as error:
                self.resting[agent_id] = Resting(known, str(error))

    async def _begin(self, config: RunnerConfig) -> Engine:
        agent_id = config.agent_id
        hold = await self._roster.hold(agent_id)
        if hold is None:
            raise AlreadyRunning(f"Runner is already running for agent {agent_id}. {HELD}")
        try:
            engine = await self._made(config, hold)
        except BaseException:
            await finished(self._roster.let_go(agent_id))
            raise
        self.engines[agent_id], self._holds[agent_id] = engine, hold
        self.resting.pop(agent_id, None)
        self._go(engine)
        return engine

    async def _borrowed(self, agent_id: str) -> Hold:
        """The right to run one cycle: beside a launcher of this home, which waits for its end meanwhile."""
        return FileHold(self.place.home, agent_id)

    async def _returned(self, agent_id: str) -> None:
        """Give that right back."""

    def _go(self, engine: Engine, idle_seconds: float | None = None) -> None:
        # While all are being stopped, one more must not begin.
        if not self._closing:
            engine.start(idle_seconds)

    async def _made(self, config: RunnerConfig, hold: Hold) -> Engine:
        """An engine whose agent is known after a restart."""
        engine = await self._opened(config, hold)
        try:
            await self._roster.keep(self._remembered(config))
        except BaseException:
            await engine.stop()
            raise
        return engine

    async def _opened(self, config: RunnerConfig, hold: Hold) -> Engine:
        place = self.place
        budget = self._budgets.setdefault(config.agent_id, Budget())
        budget.count(hold.cycles_today)
        known = secrets.known(config.secrets(), place.environ)
        try:
            runner = await on_disk(lambda: (place.make or _runner)(config, place.home, self.port, hold))
        except ConfigError as error:
            raise ConfigError(known.text(str(error))) from None
        return Engine(config, known, runner, patience=place.patience, budget=budget, figures=self.figures)

    async def _stop(self, agent_id: str) -> None:
        if agent_id not in self._locks and agent_id not in self.resting:
            return
        async with self._lock(agent_id):
            await self._end(agent_id)
            resting = self.resting.get(agent_id)
            # Another launcher's agent is not ours to stop.
            if resting is not None and await self._roster.hold(agent_id):
                try:
                    await self._roster.want(agent_id, False)
                finally:
                    await self._roster.let_go(agent_id)
                self.resting[agent_id] = Resting(resting.known.replace(wanted=False), last=resting.last)

    async def _end(self, agent_id: str) -> None:
        engine = self.engines.get(agent_id)
        if engine is None:
            return
        await engine.stop()
        if self.engines.get(agent_id) is engine:
            del self.engines[agent_id], self._holds[agent_id]
            # In the same tick: whoever asks meanwhile is told of it.
            self.resting[agent_id] = Resting(self._remembered(engine.config), last=engine.status())
            await finished(self._roster.let_go(agent_id))

    async def _whole(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """A configuration; one of secrets alone is completed by what is known of the agent."""
        agent_id = given.get("agentId")
        resting = self.resting.get(agent_id.strip()) if isinstance(agent_id, str) else None
        if resting is None or not parting.is_only_secrets(given):
            return given
        known = resting.known
        kept = await self._keys.load(known.agent_id) if known.secrets else None
        whole: Mapping[str, Any] = merged(merged(known.config, kept or {}), given)
        if missing := parting.missing(whole, known.secrets):
            raise ConfigError(waits_for(missing))
        return whole

    async def _checked(self, given: Mapping[str, Any]) -> RunnerConfig:
        """A configuration, or what is wrong with it without what is secret in it. Its prompts may be in files."""
        try:
            return await in_thread(lambda _: normalise(given, self.place.environ))
        except ConfigError as error:
            known = secrets.Secrets(config_parts.values(config_parts.secret(given)))
            raise ConfigError(known.text(str(error))) from None

    def _remembered(self, config: RunnerConfig) -> KnownAgent:
        parts = parting.parted(config)
        wanted = config.agent_id not in self._always
        return KnownAgent(config.agent_id, parts.public, tuple(parting.paths(parts.secret)), wanted)

    def _is_taken(self, agent_id: str) -> bool:
        """Whether an agent runs, or is about to."""
        return agent_id in self.engines or self._lock(agent_id).locked()

    def _ended_meanwhile(self, agent_id: str) -> None:
        """An agent was started, and does not run any more."""
        raise NotStarted(STOPPED_MEANWHILE)

    def _check_ending(self) -> None:
        if self._closing:
            raise NotStarted(ENDING)

    def _save_beside(self, config: RunnerConfig) -> asyncio.Task[None]:
        """Nobody waits long for a keyring; what it keeps later is kept, too."""
        saving = asyncio.create_task(self._save(config), name=f"secrets of {config.agent_id}")
        self._saving.add(saving)
        saving.add_done_callback(self._saving.discard)
        return saving

    async def _save(self, config: RunnerConfig) -> None:
        secret = parting.parted(config).secret
        self.kept[config.agent_id] = not secret or await self._keys.save(config.agent_id, secret)

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _engine(self, agent_id: str | None) -> Engine:
        """The engine of an agent; nobody need say which if there is only one."""
        if agent_id is None and len(self.engines) == 1:
            return next(iter(self.engines.values()))
        if agent_id is None or agent_id not in self.engines:
            raise NotInFleet(agent_id or "")
        return self.engines[agent_id]


def _runner(config: RunnerConfig, home: str, port: int | None, hold: Hold) -> Cycles:
    from trunkline.runner.opening import open_runner

    return open_runner(config, home=home, port=port, hold=hold)


def _named(given: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Whose configuration it is, as far as it says so."""
    found = config_parts.resolved({"agentId": given.get("agentId")}, environ)["agentId"]
    return found.strip() if isinstance(found, str) else ""


def waits_for(missing: list[str]) -> str:
    """What is told of an agent whose secrets are not here."""
    names = ", ".join(f"`{name}`" for name in missing)
    return f"It waits for its secrets: no keyring has {names}. Start it with them."
