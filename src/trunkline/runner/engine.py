"""One agent, kept going: a cycle, a pause, the next cycle, whatever a cycle meets with.

A cycle has a limit as a whole, besides those of its exchanges, so that nothing that hangs stops the agent for ever.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from trunkline.runner.breaker import Breaker, BreakerSettings
from trunkline.runner.budget import Budget, daily_limit
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import IN_FLIGHT, CycleReport
from trunkline.runner.figures import RunnerFigures
from trunkline.runner.secrets import Secrets

if TYPE_CHECKING:
    from trunkline.runner.chain.performer import TxPerformer

logger = logging.getLogger(__name__)

#: A cycle has a few reads, one model call and some writes; each has the limit of the configuration, and together this
#: many of them.
LIMIT_IN_EXCHANGES = 20
#: How long a cycle that was told to end may take to do so, and how long everything may take to let go.
STOP_SECONDS = 3.0
#: Characters of the model's last output that a status shows.
MAX_OUTPUT = 4000

STOPPED = "The runner was stopped"

#: Statuses of the network that no second try changes: the credential is wrong, revoked or replaced.
_REFUSED = (401, 403)
#: Actions that write into a community.
_WRITING = ("create_thread", "comment")


class Cycles(Protocol):
    """What runs cycles: `runner.cycle.Runner` is one."""

    @property
    def log_path(self) -> str:
        """Where the communication log is."""

    @property
    def performer(self) -> TxPerformer | None:
        """What sends transactions."""

    @property
    def progress(self) -> CycleReport:
        """How far the cycle under way is."""

    async def cycle(self) -> CycleReport:
        """Run one."""

    async def close(self) -> None:
        """Let go of everything."""


class Engine:
    """Runs the cycles of one agent, from `start` to `stop`. Then it is over.

    Raises:
        ConfigError: its budget cannot be understood.
    """

    def __init__(
        self,
        config: RunnerConfig,
        secrets: Secrets,
        runner: Cycles,
        *,
        patience: BreakerSettings | None = None,
        budget: Budget | None = None,
        figures: RunnerFigures | None = None,
    ) -> None:
        self.config = config
        self.runner = runner
        self._secrets = secrets
        self._breaker = Breaker(config.interval_seconds, patience)
        self._budget = budget or Budget()
        self._figures = figures or RunnerFigures()
        self._most = daily_limit(config.found)
        self._keeping: asyncio.Task[None] | None = None
        self._under_way: asyncio.Task[CycleReport] | None = None
        self._stopped = False
        self._first = asyncio.Event()
        self._asked = asyncio.Event()
        """A cycle ran out of turn: the pause begins anew."""
        self._tally = _Tally()
        self._next_at: float | None = None
        self._started: float | None = None
        self.ran: float | None = None
        """When its last cycle began."""
        self.succeeded: float | None = None
        """When the last good one ended."""
        self._error: str | None = None
        self._refused = False

    @property
    def running(self) -> bool:
        """Whether cycles are being run, or waited for."""
        return self._keeping is not None and not self._keeping.done() and not self._stopped

    @property
    def idle(self) -> bool:
        """Whether it is between two cycles."""
        return self.running and (self._under_way is None or self._under_way.done()) and self._next_at is not None

    @property
    def failures(self) -> int:
        """How many cycles failed in a row."""
        return self._breaker.failures

    def start(self, idle_seconds: float | None = None) -> None:
        """Begin. The first cycle runs at once; if the last one began elsewhere so long ago, when its time has come."""
        self._started = time.time()
        wait = 0.0 if idle_seconds is None else max(0.0, self.config.interval_seconds - idle_seconds)
        self._keeping = asyncio.create_task(self._keep(wait), name=f"runner of {self.config.agent_id}")

    async def first_cycle(self, seconds: float) -> None:
        """Wait until the first cycle is over, but not longer."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return

    async def run_once(self) -> CycleReport:
        """Run one cycle now, unless one is under way."""
        report = await self._one()
        if not report.skipped:
            self._asked.set()
        return report

    async def stop(self) -> None:
        """End what is under way, in bounded time, and let go of everything. May be called again."""
        self._stopped = True
        self._next_at = None
        tasks = {task for task in (self._keeping, self._under_way) if task is not None and not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
        self._first.set()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.runner.close()
        except Exception as error:  # it is over, whatever did not let go
            logger.warning("The runner of `%s` did not end in order: %s", self.config.agent_id, type(error).__name__)

    # Cycles

    async def _keep(self, wait: float) -> None:
        if wait:
            self._first.set()
            await self._rest(wait)
        while not self._stopped:
            if self._budget.wait(self._most) == 0:
                await self._one()
            self._first.set()
            await self._rest()

    async def _rest(self, wait: float | None = None) -> None:
        """Wait for the time of the next cycle: after the usual pause, unless another one is given."""
        while True:
            self._asked.clear()
            pause = max(self._breaker.pause() if wait is None else wait, self._budget.wait(self._most))
            wait = None
            self._next_at = time.time() + pause
            try:
                async with asyncio.timeout(pause):
                    await self._asked.wait()
            except TimeoutError:
                return

    async def _one(self) -> CycleReport:
        """One cycle in a task of its own, which `stop` can end whoever waits for it."""
        if self._stopped or (self._under_way is not None and not self._under_way.done()):
            return CycleReport(error=STOPPED if self._stopped else IN_FLIGHT, skipped=True)
        task = self._under_way = asyncio.create_task(self._cycle(), name=f"cycle of {self.config.agent_id}")
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        return self.runner.progress.replace(error=STOPPED) if task.cancelled() else task.result()

    async def _cycle(self) -> CycleReport:
        self._breaker.trying()
        self._budget.spend()
        self._next_at = None
        self.ran = time.time()
        limit = LIMIT_IN_EXCHANGES * self.config.timeout_seconds
        try:
            async with asyncio.timeout(limit):
                report = await self.runner.cycle()
        except asyncio.CancelledError:
            self._figures.over(self.runner.progress, stopped=True)
            raise
        except TimeoutError:
            report = self.runner.progress.replace(error=f"The cycle took longer than {limit:g} seconds, and was ended.")
        except Exception as error:  # an agent goes on, whatever a cycle met with
            logger.debug("a cycle failed", exc_info=True)
            report = self.runner.progress.replace(error=self._secrets.text(f"{type(error).__name__}: {error}"))
        self._take(report)
        return report

    def _take(self, report: CycleReport) -> None:
        if report.skipped:
            return
        self._figures.over(report)
        self._tally.add(report)
        self._error = report.error
        self._refused = report.status in _REFUSED
        if report.error is None:
            if self._breaker.failures:
                logger.warning("The runner of `%s` works again.", self.config.agent_id)
            self.succeeded = time.time()
            self._breaker.succeeded()
        else:
            logger.warning("A cycle of `%s` failed: %s", self.config.agent_id, self._secrets.text(report.error))
            self._breaker.failed(refused=self._refused)

    def status(self) -> dict[str, Any]:
        """How it is, without secrets."""
        found = {
            "agentId": self.config.agent_id,
            "running": self.running,
            "state": "running" if self.running else "stopped",
            "startedAt": _iso(self._started),
            "elapsedRunningMs": _since(self._started) if self.running else 0,
            "lastRunAt": _iso(self.ran),
            "lastSuccessAt": _iso(self.succeeded),
            "nextRunAt": _iso(self._next_at) if self.running else None,
            "lastError": self._error,
            "credentialRefused": self._refused,
            "failuresInARow": self._breaker.failures,
            "breaker": self._breaker.state,
            "cyclesToday": self._budget.spent,
            "maxCyclesPerDay": self._most,
            **self._tally.shown(),
            "config": self.config.redacted(),
        }
        return self._secrets.data(found)  # type: ignore[no-any-return]  # a mapping stays one


class _Tally:
    """What the cycles of an agent came to."""

    def __init__(self) -> None:
        self._cycles = 0
        self._last_actions = 0
        self._threads = 0
        self._communities: set[str] = set()
        self._output: str | None = None
        self._handle: str | None = None
        self._community: Mapping[str, Any] = {}
        self._usage = {"llmCallCount": 0, "callsWithUsage": 0, "inputTokens": 0, "outputTokens": 0}

    def add(self, report: CycleReport) -> None:
        """One more cycle; one that failed has its share, too."""
        self._cycles += report.error is None
        # One that was dropped was not carried out, and names no community.
        self._last_actions = sum("communitySlug" in result for result in report.results)
        self._handle = report.handle or self._handle
        self._community = report.community or self._community
        for action in report.actions:
            self._threads += action.get("action") == "create_thread"
            if action.get("action") in _WRITING:
                self._communities.add(str(action.get("communitySlug")))
        if report.output is not None:
            self._output = report.output
            self._count(report)

    def _count(self, report: CycleReport) -> None:
        usage = self._usage
        usage["llmCallCount"] += 1
        if report.usage is not None and report.usage.known:
            usage["callsWithUsage"] += 1
            usage["inputTokens"] += report.usage.input_tokens or 0
            usage["outputTokens"] += report.usage.output_tokens or 0

    def shown(self) -> dict[str, Any]:
        """As members of a status."""
        usage = self._usage
        return {
            "cycleCount": self._cycles,
            "lastActionCount": self._last_actions,
            "lastLlmOutput": None if self._output is None else self._output[:MAX_OUTPUT],
            "llmUsageCumulative": {
                **usage,
                "callsWithoutUsage": usage["llmCallCount"] - usage["callsWithUsage"],
                "totalTokens": usage["inputTokens"] + usage["outputTokens"],
            },
            "agentHandle": self._handle,
            "activeCommunityName": self._community.get("name"),
            "activeCommunitySlug": self._community.get("slug"),
            "cumulativeThreadCreateCount": self._threads,
            "cumulativeWrittenCommunityCount": len(self._communities),
        }


def _iso(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _since(moment: float | None) -> int:
    return 0 if moment is None else int((time.time() - moment) * 1000)
