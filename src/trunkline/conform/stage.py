"""Where one check plays, in every kit: what it opens, the records of that, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from trunkline.base.process import Input
from trunkline.base.values import Value
from trunkline.conform.probe import AGENT_LOCK
from trunkline.conform.process import Hear, RunningTarget, nothing
from trunkline.conform.record import Record, Roles

_LOOK_SECONDS = 0.02


class Closable(Protocol):
    """A process or a connection."""

    async def close(self) -> None:
        """End it. Bounded in time; once more does no harm."""


Opened = TypeVar("Opened", bound=Closable)


class ProgramTarget(Value):
    """What is under test, where that is a command: how to start it, and how patient to be with it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class Stage:
    """The place of one check. Those of the kits add what they open: processes, or connections to a server."""

    def __init__(self, name: str, roles: Roles) -> None:
        self.records: list[Record] = []
        """One for each that was opened."""
        self._name = name
        self._roles = roles
        self._opened: list[Closable] = []

    @property
    def was_reached(self) -> bool:
        """Whether the target is known to be there. A stage that opens something before it asks the target says more."""
        return bool(self._opened)

    def record(self, argv: tuple[str, ...]) -> Record:
        """The record of one more that is to be opened; `opened` keeps it."""
        name = self._name if not self.records else f"{self._name} ({len(self.records) + 1})"
        return Record(name, argv, self._roles)

    def opened(self, record: Record, found: Opened) -> Opened:
        """It could be opened: its record counts, and `close` ends it."""
        self.records.append(record)
        self._opened.append(found)
        return found

    async def close(self) -> None:
        """End whatever is still open. Bounded in time."""
        for each in self._opened:
            await each.close()


class ProgramStage(Stage):
    """A stage for commands: each check has a folder that goes with it, with a workspace and a home for their state."""

    def __init__(self, name: str, roles: Roles, cwd: str | None = None, files: Iterable[str] = ()) -> None:
        """`cwd` is the workspace; a fresh directory unless given. `files` are what the check makes there, or has made:
        one that was given holds nothing of another check, and keeps nothing of this one."""
        super().__init__(name, roles)
        self.folder = Path(tempfile.mkdtemp(prefix="conform-")).resolve()
        self.workspace = Path(cwd) if cwd else self.folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self._files = tuple(files)
        self._tidy()

    def environment(self, program: ProgramTarget, **own: str) -> dict[str, str]:
        """The variables of a command: ours, a home that all processes of one check share, the kit's, and its own.

        Trunkline keeps its state in that home, so that they see each other's sessions; others do not mind the variable.
        """
        return {**os.environ, "TRUNKLINE_HOME": str(self.folder / "home"), **own, **program.env}

    async def run(
        self, record: Record, env: Mapping[str, str], stdin: Input = "pipe", hear: Hear = nothing
    ) -> RunningTarget:
        """Start what the record is of, in the workspace; do not wait.

        Raises:
            SpawnError: it could not be started.
        """
        running = await RunningTarget.start(record.argv, str(self.workspace), env, record, stdin, hear)
        return self.opened(record, running)

    async def close(self) -> None:
        """End what was started, remove what was made. Other checks need not wait for the disk."""
        await super().close()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        self._tidy()

    def _tidy(self) -> None:
        for file in self._files:
            (self.workspace / file).unlink(missing_ok=True)


class AgentStage(ProgramStage):
    """A stage on which the agent is ours: what is under test starts it, and it leaves marks in a folder.

    `patience`: how much later than it has to what is under test may do something.
    """

    def __init__(self, name: str, roles: Roles, patience: float) -> None:
        super().__init__(name, roles)
        self._patience = patience

    @property
    def marks(self) -> Path:
        """The folder with the agent's part, where it leaves its marks."""
        raise NotImplementedError

    def has(self, name: str) -> bool:
        """Whether the agent has left that mark."""
        return (self.marks / name).exists()

    async def comes(self, name: str, within: float) -> bool:
        """Wait for a mark of the agent."""
        deadline = time.monotonic() + within
        while not self.has(name):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    async def agent_lives(self) -> bool:
        """Whether the agent goes on although it should not; a moment is granted."""
        return await self.is_held(AGENT_LOCK)

    async def is_held(self, name: str) -> bool:
        """Whether somebody holds that lock for longer than a process takes to die."""
        deadline = time.monotonic() + self._patience / 4
        while _is_locked(self.marks / name):
            if time.monotonic() > deadline:
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        return False


def _is_locked(path: Path) -> bool:
    """Whether a process holds that lock."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
