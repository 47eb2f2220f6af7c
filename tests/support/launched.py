"""Fake runners for a launcher's fleet: they do what a test tells them, and remember what was done to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.keyring import Keyring
from trunkline.core.faults import UnknownCall
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import CycleReport
from trunkline.runner.fleet import Fleet, FleetHome
from trunkline.runner.holding import Hold
from trunkline.runner.keys import Keys
from trunkline.runner.launcher import Launcher, serve

SECRET = "a-secret-of-some-length"
ORIGIN = "http://127.0.0.1:4317"

HANGS = CycleReport(error="it hangs")


class FakePerformer:
    """Transactions that wait, by their ids."""

    def __init__(self, *ids: str) -> None:
        self.waiting = list(ids)
        self.decided: list[tuple[str, bool]] = []

    def pending(self) -> list[dict[str, Any]]:
        return [{"id": id, "function": "f()", "to": "0x1", "value": "7"} for id in self.waiting]

    def decide(self, id: str, approve: bool) -> None:
        if id not in self.waiting:
            raise UnknownCall(f"No transaction `{id}` waits for approval.")
        self.waiting.remove(id)
        self.decided.append((id, approve))


class FakeRunner:
    """Plays reports, the last again and again. `HANGS` is one that never comes."""

    def __init__(self, config: RunnerConfig, reports: list[CycleReport], log_path: str = "") -> None:
        self.config = config
        self.reports = reports
        self.log_path = log_path
        self.performer: Any = None
        self.progress = CycleReport()
        self.begun = 0
        self.closed = False
        self.deaf = False
        """Whether it ignores that it is to end."""

    async def cycle(self) -> CycleReport:
        self.begun += 1
        report = self.reports[min(self.begun, len(self.reports)) - 1]
        while report is HANGS:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.deaf:
                    raise
        return report

    async def close(self) -> None:
        self.closed = True


class Runners:
    """What makes them: as `Place.make`."""

    def __init__(self, *reports: CycleReport) -> None:
        self.reports = list(reports) or [CycleReport()]
        self.made: list[FakeRunner] = []
        self.prepare: Callable[[FakeRunner], None] = lambda runner: None

    def __call__(self, config: RunnerConfig, home: str, port: int | None, hold: Hold) -> FakeRunner:
        runner = FakeRunner(config, self.reports, f"{home}/log.jsonl")
        self.prepare(runner)
        self.made.append(runner)
        return runner


class MemoryKeyring:
    """A keyring as far as `Keys` needs one."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


def keys(keyring: Keyring | None = None) -> Keys:
    return Keys(lambda: keyring)


def config(agent_id: str = "a1", **more: Any) -> dict[str, Any]:
    brain = {"kind": "scripted", "replies": []}
    return {"agentId": agent_id, "runnerToken": f"rnr_{agent_id}_0123456789", "brain": brain, **more}


@asynccontextmanager
async def launcher(home: Path, keyring: MemoryKeyring | None = None) -> AsyncIterator[str]:
    """A launcher in this process; gives its address."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    setup = Launcher(str(home), "127.0.0.1", 0, SECRET, ORIGIN)
    fleet = Fleet(FleetHome(str(home)), keys(keyring))
    serving = asyncio.create_task(
        serve(setup, stop, lambda host, port: address.set_result(f"http://{host}:{port}"), fleet)
    )
    try:
        yield await address
    finally:
        stop.set()
        await asyncio.wait_for(serving, PATIENCE_SECONDS)
