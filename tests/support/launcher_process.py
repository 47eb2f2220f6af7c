"""`trunkline runner serve` as a process that shares its agents, and can be stopped, frozen and killed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.patience import PATIENCE_SECONDS

SECRET = "a-secret-of-some-length"

#: The usual ones are for machines and networks; nothing here is further away than another process.
PROGRAM = """
from trunkline.runner.shared import leases, roster, rows
leases.LEASE_SECONDS, leases.RENEW_SECONDS, leases.MARGIN_SECONDS = {lease}, {lease} / 10, {lease} / 5
roster.LOOK_SECONDS, rows.ALIVE_SECONDS = 0.1, {lease} / 2
{more}
from trunkline.cli.runner import command
command()
"""

#: It neither renews its leases nor sees that they are over: only what it does before it acts can stop it.
DEAF = """
leases.RENEW_SECONDS = roster.LOOK_SECONDS = 3600
leases.Lease._look = lambda lease: None
"""
#: And its own clock tells it nothing.
TIMELESS = f"""{DEAF}
leases.ticks = lambda: 0.0
"""

_READY = re.compile(r"The launcher is ready: (http://127\.0\.0\.1:(\d+)) ")


class LauncherProcess:
    """A launcher. `said` is what it wrote to standard error after its first line."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, port: str, home: Path) -> None:
        self.process = process
        self.home = home
        self.port = port
        self.said: list[str] = []
        self._http = httpx.AsyncClient(base_url=url, headers={"x-runner-secret": SECRET}, timeout=PATIENCE_SECONDS)
        self._hearing = asyncio.create_task(self._hear())

    async def status(self) -> dict[str, dict[str, Any]]:
        """All agents that it knows, by their ids."""
        answer = await self._http.get("/runner/status")
        assert answer.status_code == 200, answer.text
        return {each["agentId"]: each for each in answer.json()["status"]["agents"]}

    async def running(self) -> set[str]:
        """The agents that it runs."""
        return {id for id, each in (await self.status()).items() if each["running"]}

    async def ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Have it do something, and say what it answers."""
        answer = await self._http.post(f"/runner/{path}", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self, number: int) -> int:
        """Send it a signal that ends it, and wait until it has."""
        self.signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)

    async def close(self) -> None:
        if self.process.returncode is None:
            # One that is frozen would not even notice.
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self._hearing
        await self._http.aclose()

    async def _hear(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said.append(line.decode())


@asynccontextmanager
async def launcher_process(
    db: str, home: Path, *, lease: float = 4.0, environ: Mapping[str, str] | None = None, more: str = ""
) -> AsyncIterator[LauncherProcess]:
    """A launcher that is ready, until the end of the block.

    Args:
        lease: how long its leases last, in seconds.
        more: what it does before it starts.
    """
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM.format(lease=lease, more=more), "serve", "--listen", "127.0.0.1:0", "--db", db,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"TRUNKLINE_HOME": str(home), "RUNNER_LAUNCHER_SECRET": SECRET, **(environ or {})},
    )  # fmt: skip
    try:
        assert started.stderr is not None
        line = (await asyncio.wait_for(started.stderr.readline(), PATIENCE_SECONDS)).decode()
        found = _READY.match(line)
        assert found, line + (await started.stderr.read()).decode()
        launcher = LauncherProcess(started, found[1], found[2], home)
        try:
            yield launcher
        finally:
            await launcher.close()
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()
