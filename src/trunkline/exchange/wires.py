"""The wires in an exchange's file that listen or connect on their own.

Each is a `Service` that is kept running: one that crashes is restarted without affecting the others. New settings start
new wires, stop removed ones, and leave unchanged ones alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib import import_module

from trunkline.base import log_context
from trunkline.base.chat_platforms import remote
from trunkline.base.extras import lacking
from trunkline.core.faults import ConfigError, Fault
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.service import Service
from trunkline.exchange.settings import WireSettings
from trunkline.exchange.supervisor import Pace, State, Supervisor

logger = logging.getLogger(__name__)

#: Creates the service of a wire. Raises `ConfigError` if it cannot be served as configured.
MakeLine = Callable[[Exchange, WireSettings], Service]

#: For each wire, the module with its `service` (a `MakeLine`).
LINES: Mapping[str, str] = {
    "network": "trunkline.exchange.lines.network",
    "runner": "trunkline.exchange.lines.runner",
    "tryll": "trunkline.exchange.lines.tryll",
    **dict.fromkeys(remote(), "trunkline.exchange.lines.bridge"),
}

Say = Callable[[str], None]


def line(exchange: Exchange, wire: WireSettings) -> Service:
    """The service of a wire.

    Raises:
        ConfigError: it cannot be served here.
    """
    if wire.name not in LINES:
        raise ConfigError(
            "The exchange cannot serve this wire yet.", hint=f"Take `[wires.{wire.name}]` out of the file."
        )
    try:
        make: MakeLine = import_module(LINES[wire.name]).service
        return make(exchange, wire)
    except ModuleNotFoundError as error:
        if (told := lacking(error)) is None:
            raise
        raise ConfigError(told) from None


class _Running:
    """A running wire."""

    def __init__(
        self, settings: WireSettings, service: Service, say: Say, pace: Pace | None, reached: dict[str, str]
    ) -> None:
        self.settings = settings
        self._say = say
        self._reached = reached
        self._stop = asyncio.Event()
        supervisor = Supervisor([service], self._report, pace)
        with log_context.about(wire=settings.name):
            self._task = asyncio.create_task(supervisor.run(self._stop), name=f"wire {settings.name}")

    def _report(self, service: Service, state: State, detail: str) -> None:
        if state == "reachable":
            # The port may be another one than the file says, if that was taken.
            told = self._reached[self.settings.name] = service.where
        else:
            self._reached.pop(self.settings.name, None)
            told = detail
        if state not in ("starting", "stopped"):
            self._say(f"wire {self.settings.name}: {state}{'  ' + told if told else ''}")

    async def stop(self) -> None:
        """End it, in bounded time."""
        self._stop.set()
        await asyncio.wait({self._task})
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            logger.error("the wire %s failed", self.settings.name, exc_info=error)


class Wires:
    """All running wires."""

    def __init__(self, exchange: Exchange, say: Say, make: MakeLine = line, pace: Pace | None = None) -> None:
        self._exchange = exchange
        self._say = say
        self._make = make
        self._pace = pace
        self._running: dict[str, _Running] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The wires that run, or try to."""
        return tuple(self._running)

    async def take_up(self, wires: Mapping[str, WireSettings]) -> None:
        """Run exactly these. One that cannot be served is reported, and does not hold up the others."""
        gone = [name for name, running in self._running.items() if wires.get(name) != running.settings]
        await self._stop(gone)
        for name, settings in wires.items():
            if name in self._running:
                continue
            try:
                service = self._make(self._exchange, settings)
            except Fault as fault:
                self._say(f"wire {name}: given up  {fault}")
                continue
            self._running[name] = _Running(settings, service, self._say, self._pace, self._exchange.reached)

    async def close(self) -> None:
        """End them all."""
        await self._stop(list(self._running))

    async def _stop(self, names: list[str]) -> None:
        await asyncio.gather(*(self._running.pop(name).stop() for name in names))
