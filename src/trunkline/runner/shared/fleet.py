"""The agents of a launcher that shares them with others: it runs some, and stands by for the rest.

- An agent that is started at one launcher is known to all. Each that has its secrets stands by for it: from a `start`
  there, too, from its keyring, or from its environment where the configuration names variables.
- Who stops an agent, at whichever launcher, stops it everywhere; a launcher that ends lets the others go on.
- Those that a file names are run by the launchers whose files name them, as each says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

from trunkline.core.faults import Fault, StoreUnavailable
from trunkline.runner import parting
from trunkline.runner.config import RunnerConfig, merged
from trunkline.runner.engine import Engine
from trunkline.runner.finishing import finished
from trunkline.runner.fleet import (
    HELD_ELSEWHERE,
    AlreadyRunning,
    Fleet,
    FleetError,
    FleetHome,
    Resting,
    SharingState,
    waits_for,
)
from trunkline.runner.holding import Hold
from trunkline.runner.keys import Keys
from trunkline.runner.known import KnownAgent
from trunkline.runner.shared.roster import SharedRoster

logger = logging.getLogger(__name__)


class _StandsBy(FleetError):
    """Another launcher runs the agent."""


class SharedFleet(Fleet):
    """The agents of one launcher. Belongs to one event loop. Who opened the roster closes it afterwards."""

    def __init__(self, place: FleetHome, keys: Keys, roster: SharedRoster) -> None:
        super().__init__(place, keys, roster)
        self._shared = roster
        self._standing: dict[str, RunnerConfig] = {}
        """Those that this launcher runs or could run, with their secrets."""
        self._sharing: asyncio.Task[None] | None = None

    @property
    def shared(self) -> SharingState:
        return SharingState(self._shared.is_up, self._shared.held)

    async def begin(self) -> None:
        for given in self.place.agents:
            config = await self._checked(given)
            self._always.add(config.agent_id)
            self._standing[config.agent_id] = config
            self.resting[config.agent_id] = Resting(self._remembered(config))
        self._sharing = asyncio.create_task(self._shared.share(self), name="share agents")

    async def restore(self) -> None:
        # Who shares them tells of all.
        return None

    async def start(self, given: Mapping[str, Any]) -> str:
        """Run an agent, as any fleet; or stand by for it, if another launcher runs it."""
        try:
            return await super().start(given)
        except _StandsBy as standing:
            return str(standing)

    async def close(self) -> None:
        if self._sharing is not None:
            self._sharing.cancel()
            await asyncio.wait({self._sharing})
            await self._shared.leave()
        await super().close()
        # What was being taken or changed meanwhile.
        await asyncio.gather(*map(self._leave_to_others, list(self._locks)))

    async def configure(self, agent_id: str | None, change: Mapping[str, Any]) -> None:
        await super().configure(agent_id, change)
        for id, engine in self.engines.items():
            self._standing[id] = engine.config

    # What whoever shares them asks and tells

    def named(self) -> list[KnownAgent]:
        """Those that a file names."""
        return [self._remembered(self._standing[id]) for id in self._always]

    def able(self) -> Collection[str]:
        """Those that are run here or could be."""
        return () if self._closing else self._standing.keys()

    def running(self) -> Collection[str]:
        """Those that are run here."""
        return self.engines.keys()

    def idle(self) -> Collection[str]:
        """Those of them that are between two cycles."""
        return [id for id, engine in self.engines.items() if engine.idle and not self._lock(id).locked()]

    def seen(self, elsewhere: Mapping[str, str]) -> None:
        """Which agents run in other launchers, and what those are called."""
        self.elsewhere = elsewhere

    async def learn(self, agent_id: str) -> None:
        """Somebody made an agent known in another launcher, or changed or stopped it."""
        known = await self._shared.known(agent_id)
        if known is None or agent_id in self._always:
            return
        # Not under the lock: a keyring may take long, and whoever brings the secrets meanwhile is not to wait for it.
        kept = await self._kept(known)
        async with self._lock(agent_id):
            # What was true before somebody else had the lock may be so no more.
            known = await self._shared.known(agent_id) or known
            standing = self._standing.get(agent_id)
            whole = merged(known.config, kept if standing is None else parting.parted(standing).secret)
            missing = parting.missing(whole, known.secrets) if known.wanted else []
            if not known.wanted or missing:
                self._standing.pop(agent_id, None)
                await self._end(agent_id)
                self.resting[agent_id] = Resting(known, waits_for(missing) if missing else None, tuple(missing))
                return
            try:
                await self._change(await self._checked(whole))
            except (Fault, OSError) as error:
                self._standing.pop(agent_id, None)
                await self._end(agent_id)
                self.resting[agent_id] = Resting(known, str(error))

    async def take(self, agent_id: str) -> None:
        """Run an agent, if it is still free: its next cycle is when it would have been."""
        if self._closing or self._lock(agent_id).locked():
            return
        async with self._lock(agent_id):
            config = self._standing.get(agent_id)
            if config is None or agent_id in self.engines:
                return
            try:
                await self._run(config, paced=True)
            except (_StandsBy, StoreUnavailable):
                # Somebody was faster; or nobody can know now.
                return
            except (Fault, OSError) as error:
                logger.error("The runner of `%s` is not started: %s", agent_id, error)
                del self._standing[agent_id]
                self.resting[agent_id] = Resting(self._remembered(config), str(error))

    async def lay_down(self, agent_id: str) -> None:
        """Stop running an agent, unless it may run here by now."""
        async with self._lock(agent_id):
            if not await self._shared.may_run(agent_id):
                await self._give_up(agent_id)

    async def hand_over(self, agent_id: str) -> None:
        """The same for the sake of another launcher: not in the middle of a cycle."""
        async with self._lock(agent_id):
            engine = self.engines.get(agent_id)
            if engine is not None and engine.idle:
                await self._give_up(agent_id)

    # Its parts

    async def _begin(self, config: RunnerConfig) -> Engine:
        """Somebody wants it to run."""
        if config.agent_id in self.engines:
            raise AlreadyRunning(f"Runner is already running for agent {config.agent_id}")
        self._standing[config.agent_id] = config
        await self._roster.keep(self._remembered(config))
        try:
            return await self._run(config)
        except _StandsBy:
            self.resting[config.agent_id] = Resting(self._remembered(config))
            self._is_elsewhere(config.agent_id)
            self._save_beside(config)
            raise

    async def _run(self, config: RunnerConfig, *, paced: bool = False) -> Engine:
        agent_id = config.agent_id
        hold = await self._roster.hold(agent_id)
        if hold is None:
            raise _StandsBy(agent_id)
        try:
            engine = await self._opened(config, hold)
        except BaseException:
            await finished(self._roster.let_go(agent_id))
            raise
        self.engines[agent_id], self._holds[agent_id] = engine, hold
        self.resting.pop(agent_id, None)
        self._go(engine, hold.idle_seconds if paced else None)
        return engine

    async def _leave_to_others(self, agent_id: str) -> None:
        async with self._lock(agent_id):
            await self._give_up(agent_id)

    async def _give_up(self, agent_id: str) -> None:
        if agent_id in self.engines:
            self._is_elsewhere(agent_id)
            await self._end(agent_id)

    def _is_taken(self, agent_id: str) -> bool:
        # Its lock may be somebody's who looks at what other launchers do.
        return agent_id in self.engines

    def _is_elsewhere(self, agent_id: str) -> None:
        # At which launcher, the next look tells.
        self.elsewhere = {agent_id: "another launcher", **self.elsewhere}

    def _ended_meanwhile(self, agent_id: str) -> None:
        # It may have been handed over as soon as its first cycle was over.
        if agent_id not in self.elsewhere:
            super()._ended_meanwhile(agent_id)

    async def _change(self, config: RunnerConfig) -> None:
        """Another configuration counts from now on."""
        agent_id = config.agent_id
        before, engine = self._standing.get(agent_id), self.engines.get(agent_id)
        self._standing[agent_id] = config
        if engine is None:
            self.resting[agent_id] = Resting(self._remembered(config))
        elif before is None or before.given != config.given:
            fresh = await self._opened(config, self._holds[agent_id])
            await engine.stop()
            self.engines[agent_id] = fresh
            self._go(fresh)

    async def _kept(self, known: KnownAgent) -> Mapping[str, Any]:
        """The secrets of an agent that the keyring has, if they are needed from there."""
        if not known.wanted or known.agent_id in self._standing:
            return {}
        kept = await self._keys.load(known.agent_id) if known.secrets else None
        self.kept[known.agent_id] = kept is not None or not known.secrets
        return kept or {}

    async def _stop(self, agent_id: str) -> None:
        if agent_id not in self._locks and agent_id not in self.resting:
            return
        async with self._lock(agent_id):
            try:
                await self._roster.want(agent_id, False)
            finally:
                # Also if the others cannot be told: whoever says so learns that.
                await self._end(agent_id)

    async def _borrowed(self, agent_id: str) -> Hold:
        hold = await self._roster.hold(agent_id)
        if hold is None:
            raise AlreadyRunning(f"Runner is already running for agent {agent_id}. {HELD_ELSEWHERE}")
        return hold

    async def _returned(self, agent_id: str) -> None:
        await finished(self._roster.let_go(agent_id))
