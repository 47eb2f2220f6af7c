"""What loaded models take: measured where that can be, and else estimated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from trunkline.agents.graph.pool_engines import LoadedEngine
from trunkline.base import memory
from trunkline.base.values import Value
from trunkline.core.graph.resident import ResidentModel

T = TypeVar("T")


class ModelMemory(Value):
    """Bytes, and whether they were measured."""

    bytes: int = 0
    measured: bool = False


class MemoryMeter:
    """Watches how the process grows while models are loaded.

    Where two are loaded at once nobody can tell which has taken what, and what grows by less than the files of a model
    has not read them, or has them in another process. Then it is the size of the files.
    """

    def __init__(self, resident: Callable[[], int] = memory.resident) -> None:
        self._resident = resident
        self._loading = 0
        self._begun = 0

    async def watch(self, work: Awaitable[T], files: int, found: Callable[[ModelMemory], None]) -> T:
        """Wait for a model that is being loaded; tells what it takes when it is there."""
        self._loading += 1
        self._begun += 1
        number, alone, before = self._begun, self._loading == 1, self._resident()
        try:
            loaded = await work
        finally:
            self._loading -= 1
        grown = self._resident() - before
        measured = alone and number == self._begun and before > 0 and grown >= files
        found(ModelMemory(grown if measured else files, measured))
        return loaded


class Resident:
    """A model that is loaded, or is being loaded."""

    def __init__(self, work: Coroutine[Any, Any, LoadedEngine], meter: MemoryMeter, files: int) -> None:
        self.memory = ModelMemory(files)
        self.loading = asyncio.create_task(meter.watch(work, files, self._weighed))
        self.uses = 0
        self.pinned = False

    def _weighed(self, found: ModelMemory) -> None:
        self.memory = found

    @property
    def is_there(self) -> bool:
        """Whether it has been loaded."""
        return self.loading.done() and not self.loading.cancelled() and self.loading.exception() is None

    def told(self, name: str) -> ResidentModel:
        """What is told of it, once it is there."""
        waiting = getattr(self.loading.result(), "waiting", 0)
        return ResidentModel(name, self.memory.bytes, self.memory.measured, waiting)
