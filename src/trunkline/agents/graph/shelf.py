"""The storages of one session: those that were created by name, and those that nodes name by the path of a file.

A named storage stays until it is destroyed, and with the nodes that use it even then. What is in a file is read when
the first one asks for it, shared by all that do under whichever name, and gone with the last of them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.agents.graph import confined, embedded
from trunkline.agents.graph.embedded import EmbeddedStorage, EngineOf
from trunkline.agents.graph.memories import AgentMemory, MemoryStorage
from trunkline.agents.graph.memory_file import MemoryFile
from trunkline.agents.graph.shelf_files import StorageFiles
from trunkline.agents.graph.storages import StringStorage
from trunkline.agents.graph.vectors import Progress, VectorStore
from trunkline.core.faults import (
    BadEmbeddedName,
    BadStorageName,
    EmbeddedExists,
    EmbeddingError,
    StorageError,
    StorageExists,
    StorageMissing,
    StorageNameInUse,
)
from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription

#: Storages of each sort in one session.
MAX_STORAGES = 4096
#: Memories of one session: unlike what else is in files, they are not shared by all who have the same in theirs.
MAX_MEMORIES = 64
#: Characters of a name.
MAX_NAME = 256
#: Names that begin like this are ours.
_RESERVED = "__"

_Kinds = tuple[type[StorageError], type[StorageError], type[StorageError]]
_STRINGS: _Kinds = (BadStorageName, StorageExists, StorageError)
_EMBEDDED: _Kinds = (BadEmbeddedName, EmbeddedExists, EmbeddingError)


class Shelf:
    """Storages by name and by path. `root` is the storage folder; without one there are no files. Vectors, and what was
    read of files, are shared with other shelves. Unless it `keeps_memories`, each begins empty, and no file is written.
    """

    def __init__(
        self,
        root: str | None,
        vectors: VectorStore | None = None,
        files: StorageFiles | None = None,
        *,
        keeps_memories: bool = True,
    ) -> None:
        self.root = root
        #: Of the host, whatever folder inside of it the session chooses: memories are counted below it.
        self._top = root
        self._keeps_memories = keeps_memories
        self._vectors = vectors if vectors is not None else VectorStore()
        self._files = files if files is not None else StorageFiles()
        self._strings: dict[str, StringStorage] = {}
        self._embedded: dict[str, EmbeddedStorage] = {}

    # String storages.

    def create_strings(self, described: StringStorageDescription) -> StringStorage:
        """Make a storage.

        Raises:
            StorageError: it cannot be made.
        """
        name, path = described.name, described.file_path
        self._check_name(name, self._strings, _STRINGS)
        if bool(path) == bool(described.strings or described.keys):
            raise StorageError(f"The storage `{name}` needs either strings or a file.")
        if path:
            made = self._strings_from_file(described)
        else:
            self._check_not_a_file(name)
            made = StringStorage(name, described.kind, described.strings, described.keys)
        self._strings[name] = made
        return made

    def _strings_from_file(self, described: StringStorageDescription) -> StringStorage:
        try:
            return self._files.strings(self.root, described.file_path, described.name, described.kind).lent()
        except StorageMissing as error:
            raise StorageError(error.message) from None

    def destroy_strings(self, name: str) -> None:
        """Forget a storage. Nodes that use it keep it.

        Raises:
            BadStorageName: there is none.
        """
        if self._strings.pop(name, None) is None:
            raise BadStorageName(f"There is no storage `{name}`.")

    async def strings(self, reference: str) -> StringStorage:
        """A storage by its name, else by the path of its file, as it is now. Files are read in a thread.

        Raises:
            StorageError: it is outside the folder, not there, or cannot be read.
        """
        found = self._strings.get(reference)
        return found if found is not None else await asyncio.to_thread(self._files.strings, self.root, reference)

    # Embedded storages.

    async def create_embedded(
        self, described: EmbeddedStorageDescription, engine_of: EngineOf, progress: Progress | None = None
    ) -> EmbeddedStorage:
        """Make an embedded storage. `progress` hears how many of its records are embedded.

        Raises:
            StorageError: it cannot be made.
            ModelError: as `engine_of` says.
        """
        name, path = described.name, described.config_path
        self._check_name(name, self._embedded, _EMBEDDED)
        given = (path, described.strings, described.records_json, described.memory_path)
        if list(map(bool, given)).count(True) != 1:
            raise EmbeddingError(
                f"The embedded storage `{name}` needs either strings, or records, or a file that describes it, or that "
                "of a memory."
            )
        made: EmbeddedStorage
        if described.memory_path:
            made = await self._memory(described, engine_of)
        elif path:
            made = await self._embedded_from_file(name, path, engine_of, progress)
        else:
            self._check_not_a_file(name)
            model = described.embedding_model
            if described.records_json:
                records = await asyncio.to_thread(embedded.inline_records, name, described.records_json, model)
            else:
                records = await asyncio.to_thread(embedded.inline, name, described.strings, model)
            engine, most = await engine_of(model), embedded.MAX_INLINE_NUMBERS
            made = await embedded.build(name, records, engine, self._vectors, progress, max_numbers=most)
        # Somebody may have been quicker in the meantime.
        self._check_name(name, self._embedded, _EMBEDDED)
        self._embedded[name] = made
        return made

    async def _memory(self, described: EmbeddedStorageDescription, engine_of: EngineOf) -> MemoryStorage:
        name, model = described.name, described.embedding_model
        self._check_not_a_file(name)
        if not model:
            raise EmbeddingError(f"The memory `{name}` needs an `embedding_model`.")
        if sum(isinstance(each, MemoryStorage) for each in self._embedded.values()) >= MAX_MEMORIES:
            raise EmbeddingError(f"A session has at most {MAX_MEMORIES} memories.")
        file = await asyncio.to_thread(MemoryFile.at, self.root, described.memory_path, name, self._top)
        engine = await engine_of(model)
        if self._keeps_memories:
            memory = self._files.memory(file, name, model, engine)
            await memory.refresh()
        else:
            memory = AgentMemory(name, model, engine, None)
        return MemoryStorage(memory, engine)

    async def _embedded_from_file(
        self, name: str, path: str, engine_of: EngineOf, progress: Progress | None
    ) -> EmbeddedStorage:
        try:
            found = await self._files.embedded(self.root, path, name, engine_of, self._vectors, progress)
            return found.lent()
        except StorageMissing as error:
            raise EmbeddingError(error.message) from None

    def destroy_embedded(self, name: str) -> None:
        """Forget an embedded storage. Nodes that use it keep it.

        Raises:
            BadEmbeddedName: there is none.
        """
        if self._embedded.pop(name, None) is None:
            raise BadEmbeddedName(f"There is no embedded storage `{name}`.")

    async def embedded(self, reference: str, engine_of: EngineOf) -> EmbeddedStorage:
        """An embedded storage by its name, else by the path of the file that describes it, as it is now.

        Raises:
            StorageError: it is outside the folder, not there, or cannot be read.
            ModelError: as `engine_of` says.
        """
        found = self._embedded.get(reference)
        if found is not None:
            return found
        return await self._files.embedded(self.root, reference, reference, engine_of, self._vectors)

    def _check_name(self, name: str, taken: dict[str, Any], kinds: _Kinds) -> None:
        """Look whether a storage can have the name. The faults are for one that cannot be, one that is taken, and one
        too many."""
        unfit, exists, full = kinds
        if not name or len(name) > MAX_NAME or name.startswith(_RESERVED) or not name.isprintable():
            raise unfit(f"`{name[:MAX_NAME]}` is not a valid name for a storage.")
        if name in taken:
            raise exists(f"There is a storage `{name}` already.")
        if len(taken) >= MAX_STORAGES:
            raise full(f"A session has at most {MAX_STORAGES} storages.")

    def _check_not_a_file(self, name: str) -> None:
        if confined.exists(self.root, name):
            raise StorageNameInUse(f"`{name}` is a file in the storage folder: a storage cannot have its name.")
