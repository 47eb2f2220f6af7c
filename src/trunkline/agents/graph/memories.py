"""Memories: embedded storages that agents write into, for later sessions.

What a user said is knowledge about them and no more: whoever finds an entry gets it in quotes, with what it is and when
it was written down, in one line that nothing in it can end.

    The user said (2026-11-18): "My name is Ann."
    Noted about the user (2026-11-18): "The user is called Ann."
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.embedded import EmbeddedRecords, EmbeddedStorage, FoundRecord
from trunkline.agents.graph.file_queues import FileQueues
from trunkline.agents.graph.filters import Predicate
from trunkline.agents.graph.memory_file import MAX_TEXT, WAIT_SECONDS, FileState, MemoryEntry, MemoryFile, MemoryKind
from trunkline.agents.graph.params import MAX_ENTRIES
from trunkline.agents.graph.vectors import BATCH, Vectors, checked
from trunkline.models.engines import EmbeddingEngine

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

#: Distances that are none: two vectors of one text may differ in their last digits.
_ROUNDING = 1e-6
#: Threads that write memories down, and nothing else. A file has one at most: the others are held up only when other
#: processes have locked so many files at once.
WRITING_THREADS = 16
_SHOWN: dict[MemoryKind, str] = {"said": "The user said", "note": "Noted about the user"}

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class AgentMemory:
    """What is remembered, for all sessions of a process that use one file with one model. Without a file it is
    forgotten with the last of them."""

    def __init__(self, name: str, model: str, engine: EmbeddingEngine, file: MemoryFile | None, clock: Clock = _now):
        self.name = name
        self._model = model
        self._engine = engine
        self._file = file
        self._clock = clock
        self._state: FileState | None = None
        self._entries: tuple[MemoryEntry, ...] = ()
        # Whoever reads the file and whoever writes it take turns.
        self._turn = asyncio.Lock()
        self.records = EmbeddedRecords(model, (), (), {})
        self.vectors = _vectors(engine, [])

    @property
    def entries(self) -> tuple[MemoryEntry, ...]:
        """All of it, oldest first."""
        return self._entries

    async def refresh(self) -> None:
        """See what other processes have written.

        Raises:
            EmbeddingError: the file is no memory any more.
            ProviderError: the engine failed.
        """
        if self._file is None or self._file.state() == self._state:
            return
        async with self._turn:
            await self._look()

    async def _look(self) -> None:
        if self._file is None or (state := self._file.state()) == self._state:
            return
        await self._take((await asyncio.to_thread(self._file.read, self.name))[-MAX_ENTRIES:])
        self._state = state

    async def remember(
        self, texts: Sequence[str], kind: MemoryKind, *, most: int, threshold: float
    ) -> tuple[MemoryEntry, ...]:
        """Write down what is not known yet; gives that. What is as near to something known as the threshold is known.

        Raises:
            EmbeddingError: it cannot be written.
            ProviderError: the engine failed.
        """
        async with self._turn:
            await self._look()
            new: list[MemoryEntry] = []
            known = self.vectors
            for text in filter(None, map(written, texts)):
                vector = await self._embedded([text])
                near = await known.nearest(vector[0], 1)
                if near and near[0][1] <= threshold + _ROUNDING:
                    continue
                known = Vectors(_stacked(known.matrix, vector))
                new.append(MemoryEntry(os.urandom(8).hex(), f"{self._clock():%Y-%m-%dT%H:%M:%SZ}", kind, text))
            if new:
                await self._write(new, most)
            there = {entry.id for entry in self._entries}
            return tuple(entry for entry in new if entry.id in there)

    async def _write(self, new: Sequence[MemoryEntry], most: int) -> None:
        if self._file is None:
            await self._take((*self._entries, *new)[-most:])
            return
        # Who has queued for as long as another process may be waited for does not wait for it once more.
        write = partial(self._file.add, new, most, self.name, time.monotonic() + WAIT_SECONDS)
        left, state = await _queues().run(self._file.path, write)
        await self._take(left[-MAX_ENTRIES:])
        self._state = state

    async def _take(self, entries: Sequence[MemoryEntry]) -> None:
        """These are all that there are. Those that were there before keep their vectors."""
        places = {entry.id: at for at, entry in enumerate(self._entries)}
        fresh = [entry for entry in entries if entry.id not in places]
        vectors = await self._embedded([entry.text for entry in fresh])
        made = {entry.id: vector for entry, vector in zip(fresh, vectors, strict=True)}
        rows = [made[each.id] if each.id in made else self.vectors.matrix[places[each.id]] for each in entries]
        self._entries = tuple(entries)
        texts = tuple(map(shown, entries))
        self.records = EmbeddedRecords(self._model, tuple(entry.id for entry in entries), texts, {})
        self.vectors = _vectors(self._engine, rows)

    async def _embedded(self, texts: Sequence[str]) -> NDArray[float32]:
        blocks = [_vectors(self._engine, []).matrix]
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            blocks.append(checked(self._engine, await self._engine.embed(batch), len(batch)))
            await asyncio.sleep(0)
        return _stacked(*blocks)


class MemoryStorage(EmbeddedStorage):
    """A memory as a storage of one session: a search finds what is in it then."""

    __slots__ = ("memory",)

    def __init__(self, memory: AgentMemory, engine: EmbeddingEngine) -> None:
        super().__init__(memory.records, memory.vectors, engine)
        self.memory = memory

    @property
    def size(self) -> int:
        """It is in a file, which is the host's own."""
        return 0

    async def search(self, query: str, count: int, predicate: Predicate | None = None) -> list[FoundRecord]:
        await self.memory.refresh()
        vector = checked(self._engine, await self._engine.embed([query]), 1)[0]
        self.records, self._vectors = self.memory.records, self.memory.vectors
        records, mask = self.records, None if predicate is None else predicate(self.record_count)
        found = await self._vectors.nearest(vector, count, mask)
        return [FoundRecord(at, records.ids[at], records.texts[at], distance) for at, distance in found]


@cache
def _queues() -> FileQueues:
    return FileQueues(WRITING_THREADS, "write-memory")


def written(text: str) -> str:
    """A text as it is kept: in one line, without what does not show, and not too long."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * MAX_TEXT])
    return " ".join(plain.split())[:MAX_TEXT].rstrip()


def shown(entry: MemoryEntry) -> str:
    """An entry as whoever finds it gets it."""
    text = written(entry.text).replace('"', "'")
    return f'{_SHOWN[entry.kind]} ({written(entry.time)[:10]}): "{text}"'


def _vectors(engine: EmbeddingEngine, rows: Sequence[Any]) -> Vectors:
    import numpy as np

    return Vectors(np.asarray(rows, np.float32).reshape(len(rows), engine.dimensions))


def _stacked(*blocks: NDArray[float32]) -> NDArray[float32]:
    import numpy as np

    return np.concatenate([block.reshape(-1, blocks[0].shape[1]) for block in blocks])
