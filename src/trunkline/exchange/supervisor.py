"""Runs services concurrently, and keeps them running.

- A service that crashes is restarted after a delay that doubles with each consecutive crash; the others are not
  affected.
- After too many consecutive crashes it is given up; a run that lasted a while resets the count. A service that cannot
  work as configured (a `ConfigError`) is given up at once: retrying would not help.
- On `stop` all services end together, in bounded time: they are asked, then cancelled, then abandoned and named.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Literal

from trunkline.base import backoff
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.exchange.service import Service

logger = logging.getLogger(__name__)

State = Literal["starting", "reachable", "crashed", "given up", "stopped", "stuck"]
Report = Callable[[Service, State, str], None]


class Pace(Value):
    """The limits of a supervisor, in seconds (and in crashes)."""

    first_delay: float = 0.25
    """Before the first restart: short, since most crashes are accidents."""
    longest_delay: float = 30.0
    """The longest delay: a machine that comes back is noticed within half a minute."""
    steady: float = 60.0
    """A run that lasted this long resets the count."""
    crashes: int = 8
    """Consecutive crashes; with the delays above, about a minute until somebody must look."""
    stopping: float = 3.0
    """For services to end when asked: open turns and connections are closed sooner."""
    cancelling: float = 1.0
    """For services that had to be cancelled."""


class Supervisor:
    """Keeps one or more services running."""

    def __init__(self, services: Sequence[Service], report: Report, pace: Pace | None = None) -> None:
        self._services = services
        self._report = report
        self._pace = pace or Pace()
        self.stuck: list[str] = []
        """Services that did not end: to end the process, do not wait for their tasks."""

    async def run(self, stop: asyncio.Event) -> bool:
        """Run until `stop` is set, then return True; return False if every service was given up."""
        tasks = {
            asyncio.create_task(self._keep(service, stop), name=f"service {service.name}"): service
            for service in self._services
        }
        stopping = asyncio.create_task(stop.wait(), name="wait for stop")
        try:
            pending: set[asyncio.Task[bool]] = {*tasks}
            while pending and not stopping.done():
                await asyncio.wait({*pending, stopping}, return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if not task.done()}
            return stop.is_set()
        finally:
            stop.set()
            stopping.cancel()
            await self._end(tasks)

    async def _keep(self, service: Service, stop: asyncio.Event) -> bool:
        """Run a service, and restart it when it crashes."""
        loop = asyncio.get_running_loop()
        crashes = 0
        while not stop.is_set():
            begun = loop.time()
            self._report(service, "starting", "")
            try:
                problem = await self._run_once(service, stop)
            except ConfigError as fault:
                self._report(service, "given up", str(fault))
                return False
            if stop.is_set():
                break
            if loop.time() - begun >= self._pace.steady:
                crashes = 0
            crashes += 1
            if crashes >= self._pace.crashes:
                self._report(service, "given up", f"{problem}, {crashes} times in a row")
                return False
            delay = backoff.delay(crashes, self._pace.first_delay, self._pace.longest_delay)
            self._report(service, "crashed", f"{problem}; next try in {delay:g} s")
            await _first(stop, delay)
        self._report(service, "stopped", "")
        return True

    async def _run_once(self, service: Service, stop: asyncio.Event) -> str:
        """Why the run ended, in words.

        Raises:
            ConfigError: it would end like that each time.
        """
        try:
            await service.run(stop, lambda: self._report(service, "reachable", ""))
        except Exception as error:
            if isinstance(error, ConfigError) and not error.retryable:
                raise
            logger.debug("the service %s crashed", service.name, exc_info=True)
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return "it ended by itself"

    async def _end(self, tasks: dict[asyncio.Task[bool], Service]) -> None:
        """Wait for all, cancel those that are late, and name those that ignore even that."""
        _, late = await asyncio.wait({*tasks}, timeout=self._pace.stopping)
        for task in late:
            task.cancel()
        if late:
            _, late = await asyncio.wait(late, timeout=self._pace.cancelling)
        for task in late:
            self.stuck.append(tasks[task].name)
            self._report(tasks[task], "stuck", "it did not stop, and was abandoned")


async def _first(stop: asyncio.Event, seconds: float) -> None:
    """Wait for `stop`, at most this long."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
