"""Storages that are in files: in memory once for all sessions of a server, for as long as somebody uses them.

A file that has changed is another one. Whoever asks from then on gets what is in it now, and whoever has the old one
keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock
from typing import TypeVar
from weakref import WeakValueDictionary

from trunkline.agents.graph import confined, embedded, storages
from trunkline.agents.graph.embedded import EmbeddedRecords, EmbeddedStorage, EngineOf
from trunkline.agents.graph.memories import AgentMemory
from trunkline.agents.graph.memory_file import MemoryFile
from trunkline.agents.graph.storages import StringStorage
from trunkline.agents.graph.vectors import Progress, VectorStore
from trunkline.core.graph.ordinals import StringStorageKind
from trunkline.models.engines import EmbeddingEngine

T = TypeVar("T")
_Key = tuple[object, ...]


class StorageFiles:
    """What was read of files. A path is one of a session's own folder, and stays in there."""

    def __init__(self) -> None:
        self._strings: WeakValueDictionary[_Key, StringStorage] = WeakValueDictionary()
        self._records: WeakValueDictionary[_Key, EmbeddedRecords] = WeakValueDictionary()
        self._embedded: WeakValueDictionary[_Key, EmbeddedStorage] = WeakValueDictionary()
        self._memories: WeakValueDictionary[_Key, AgentMemory] = WeakValueDictionary()
        # Files are read in threads.
        self._lock = Lock()

    def strings(self, root: str | None, path: str, name: str = "", kind: int | None = None) -> StringStorage:
        """The storage in a file, of that kind, or else of the one that its name tells. For a thread.

        Raises:
            Fault: as `storages.load`.
        """
        state = confined.state(root, path)
        kind = StringStorageKind.of_file(path) if kind is None else kind
        key = None if state is None else (*state, kind)
        return self._once(self._strings, key, lambda: storages.load(root, path, name, kind))

    async def embedded(
        self, root: str | None, path: str, name: str, engine_of: EngineOf, store: VectorStore,
        progress: Progress | None = None,
    ) -> EmbeddedStorage:  # fmt: skip
        """The storage that a file describes, with the engine that it has in this session.

        Raises:
            Fault: as `embedded.read_records` and `embedded.build`, or as `engine_of` says.
        """
        records, state = await asyncio.to_thread(self._read_records, root, path, name)
        engine = await engine_of(records.embedding_model)
        key = None if state is None else (*state, type(engine), engine.name, engine.fingerprint, engine.dimensions)
        found = self._embedded.get(key) if key is not None else None
        if found is None:
            found = await embedded.build(name, records, engine, store, progress)
            if key is not None:
                # Somebody may have been quicker in the meantime.
                found = self._embedded.setdefault(key, found)
        elif progress is not None:
            progress(found.record_count, found.record_count)
        return found

    def memory(self, file: MemoryFile, name: str, model: str, engine: EmbeddingEngine) -> AgentMemory:
        """What is remembered in a file, with that engine."""
        key = (file.path, type(engine), engine.name, engine.fingerprint, engine.dimensions)
        return self._memories.setdefault(key, AgentMemory(name, model, engine, file))

    def _read_records(self, root: str | None, path: str, name: str) -> tuple[EmbeddedRecords, _Key | None]:
        state = embedded.state(root, path, name)
        return self._once(self._records, state, lambda: embedded.read_records(root, path, name)), state

    def _once(self, known: WeakValueDictionary[_Key, T], state: _Key | None, read: Callable[[], T]) -> T:
        """What is known of a file in this state, else what is read of it. It is in that state or a later one then."""
        if state is None:
            return read()
        with self._lock:
            found = known.get(state)
        if found is None:
            made = read()
            with self._lock:
                found = known.setdefault(state, made)
        return found
