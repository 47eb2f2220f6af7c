"""Where one check plays in which the agent is ours: what is under test starts it, and it leaves marks in a folder."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from trunkline.conform.place import Place, is_locked
from trunkline.conform.probe import AGENT_LOCK
from trunkline.conform.process import Running
from trunkline.conform.record import Roles

_LOOK_SECONDS = 0.02


class Played(Place):
    """The place of one check. `close` ends what it started and removes what it made.

    `patience`: how much later than it has to what is under test may do something.
    """

    def __init__(self, name: str, roles: Roles, patience: float) -> None:
        super().__init__(name, None, roles)
        self._patience = patience
        self._running: list[Running] = []

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
        return await self._is_held(AGENT_LOCK)

    async def close(self) -> None:
        """End what was started, remove what was made."""
        for running in self._running:
            await running.close()
        await self.remove()

    async def _is_held(self, name: str) -> bool:
        """Whether somebody holds that lock for longer than a process takes to die."""
        deadline = time.monotonic() + self._patience / 4
        while is_locked(self.marks / name):
            if time.monotonic() > deadline:
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        return False
