"""Opens the nodes of a graph's file with all that the file brings along, and without a model.

What only shows when a node meets its storage is found here: a field that the records do not have, a filter that does
not fit them, a pattern in a file that is none. Nothing is embedded and nothing is run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from trunkline.agents.graph import confined, embedded
from trunkline.agents.graph.embedded import EmbeddedRecords, EmbeddedStorage
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.memories import AgentMemory, MemoryStorage
from trunkline.agents.graph.memory_file import MemoryFile
from trunkline.agents.graph.plan import make_nodes
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.yaml_graph import GraphFile
from trunkline.core.faults import Fault, StorageMissing
from trunkline.core.graph.hosting import EmbeddedStorageDescription
from trunkline.models.embedding_mock import MockEmbedding


class _Absent(Exception):
    """A storage that neither the file nor its folder has: whoever runs the graph brings it."""


class _Shelves(LocalHost):
    """What the file brings along, with the graph's folder as the storage folder. Records have no vectors."""

    def __init__(self, folder: str) -> None:
        super().__init__(Shelf(folder))
        self._folder = folder
        self.brought: dict[str, EmbeddedStorage] = {}

    def add(self, described: EmbeddedStorageDescription) -> None:
        """Put an embedded storage there.

        Raises:
            Fault: it cannot be one.
        """
        name, model = described.name, described.embedding_model
        if described.memory_path:
            MemoryFile.at(self._folder, described.memory_path, name)
            self.brought[name] = _unwritten(name, model)
            return
        records = (
            embedded.inline_records(name, described.records_json, model)
            if described.records_json
            else embedded.inline(name, described.strings, model)
        )
        self.brought[name] = _unembedded(records)

    async def embedded(self, reference: str) -> EmbeddedStorage:
        found = self.brought.get(reference)
        if found is not None:
            return found
        if not confined.exists(self._folder, reference):
            raise _Absent
        return _unembedded(embedded.read_records(self._folder, reference, reference))

    async def strings(self, reference: str) -> Any:
        try:
            return await super().strings(reference)
        except StorageMissing:
            raise _Absent from None


def _unembedded(records: EmbeddedRecords) -> EmbeddedStorage:
    # Nobody searches it: a node that is opened looks at the fields alone.
    return EmbeddedStorage(records, cast(Any, None), cast(Any, None))


def _unwritten(name: str, model: str) -> MemoryStorage:
    engine = MockEmbedding(model)
    return MemoryStorage(AgentMemory(name, model, engine, None), engine)


async def trouble(file: GraphFile, folder: str) -> AsyncIterator[tuple[tuple[str, ...], Fault]]:
    """Whatever keeps an agent from being made of the file, each with the keys that lead to it."""
    host = _Shelves(folder)
    for strings in file.storages:
        try:
            host.shelf.create_strings(strings)
        except Fault as error:
            yield ("storages", strings.name), error
    for described in file.knowledge:
        try:
            host.add(described)
        except Fault as error:
            yield ("memories" if described.memory_path else "knowledge", described.name), error
    for node in make_nodes(file.graph, file.default_model).values():
        try:
            await node.open(host, file.default_model)
        except _Absent:
            continue
        except Fault as error:
            yield ("nodes", node.name), error
