"""Where graph agents live: a host with its models, sessions with a shelf each, and what one agent may use of them.

The server end of the Tryll wire has its agents from here, and `wires/tryll/host.py` says what it asks for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from trunkline.agents.graph import confined
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.agent_engine import GraphClient, SessionAgents
from trunkline.agents.graph.agent_models import check_nodes
from trunkline.agents.graph.diagnostics import by_kind
from trunkline.agents.graph.embedded import EmbeddedStorage
from trunkline.agents.graph.hearing.input import Hearing, HostedVoiceInput, open_voice
from trunkline.agents.graph.mustache import QUICK_TEMPLATES
from trunkline.agents.graph.nodes import NODES
from trunkline.agents.graph.patterns import PatternBook, PatternThread, pattern_threads
from trunkline.agents.graph.recorded import ConversationRecords, RecordedAgent
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.shelf_files import StorageFiles
from trunkline.agents.graph.storages import StringStorage
from trunkline.agents.graph.vectors import VectorStore
from trunkline.agents.graph.voices import VoicePool
from trunkline.core.faults import ModelError, OutsideStorage, StorageMissing
from trunkline.core.graph.description import GraphDescription
from trunkline.core.graph.hosting import (
    EmbeddedStorageDescription,
    HostSettings,
    Progress,
    StringStorageDescription,
    VoiceInputDescription,
)
from trunkline.core.graph.models import ModelInfo
from trunkline.core.graph.ordinals import InferenceEngine
from trunkline.core.graph.resident import ResidentModel
from trunkline.core.graph.turns import DescribeError
from trunkline.models.catalog_entry import HEARS, SPEAKS
from trunkline.models.engines import EmbeddingEngine, LanguageEngine
from trunkline.models.voice.engines import Voice


class Models(Protocol):
    """The models of a server; `pool.ModelPool` is one. `engine` is an `InferenceEngine`."""

    async def language(self, name: str, engine: int, client: GraphClient | None = None) -> LanguageEngine: ...

    async def embedding(self, name: str, engine: int) -> EmbeddingEngine: ...

    async def speech(self, name: str, kind: str, missing: type[ModelError]) -> tuple[Any, Callable[[], None]]: ...

    def named(self, kind: str) -> tuple[str, ...]: ...

    def is_here(self, name: str) -> bool: ...

    def list(self) -> tuple[ModelInfo, ...]: ...

    def resident(self) -> tuple[ResidentModel, ...]: ...

    async def download(self, name: str, progress: Progress) -> None: ...

    async def ensure(self, name: str, engine: int, progress: Progress) -> None: ...

    async def load(self, name: str) -> None: ...

    async def unload(self, name: str) -> None: ...

    async def delete(self, name: str) -> None: ...

    async def close(self) -> None: ...


class Voices(Hearing, Protocol):
    """What hears and speaks; `voices.VoicePool` is one. `engine` is an `InferenceEngine`."""

    async def voice(
        self, name: str, engine: int, fetched: Callable[[str], Awaitable[None]] | None = None
    ) -> Voice | None: ...


def _has_long_templates(graph: GraphDescription) -> bool:
    kinds = ((NODES.get(type(node.params)), node.params) for node in graph.nodes if node.params is not None)
    return sum(kind.template_size(params) for kind, params in kinds if kind is not None) > QUICK_TEMPLATES


class SessionHost:
    """A `HostSession`: a shelf of its own, and the engines that the client chose."""

    def __init__(
        self,
        models: Models,
        storage_root: str | None,
        vectors: VectorStore,
        voices: Voices | None,
        aside: PatternThread,
        files: StorageFiles,
        describe: DescribeError,
        records: ConversationRecords | None = None,
        *,
        keeps_memories: bool = True,
    ) -> None:
        self._models = models
        self._records = records
        self._describe = describe
        self._session_agents = SessionAgents()
        self._patterns = PatternBook(aside)
        self._voices = voices if voices is not None else VoicePool(models)
        self._storage_root = storage_root
        self._shelf = Shelf(storage_root, vectors, files, keeps_memories=keeps_memories)
        self._settings = HostSettings()

    def configure(self, settings: HostSettings) -> None:
        """Take other engines and another folder; see `HostSession`."""
        self._shelf.root = _folder(self._storage_root, settings.storage_data_folder)
        self._settings = settings

    async def create_agent(
        self,
        graph: GraphDescription,
        progress: Progress,
        *,
        default_model: str = "",
        diagnostics: bool = False,
        max_steps: int = 0,
    ) -> GraphAgent:
        """Make an agent; see `HostSession`."""
        make = partial(
            GraphAgent if self._records is None else partial(RecordedAgent, records=self._records),
            graph,
            self._host(progress),
            default_model=default_model,
            diagnostics=diagnostics,
            max_steps=max_steps,
            describe=self._describe,
        )
        agent = await asyncio.to_thread(make) if _has_long_templates(graph) else make()
        check_nodes(graph, default_model)
        try:
            await agent.open()
        except BaseException:
            agent.close()
            raise
        return agent

    async def create_strings(self, described: StringStorageDescription) -> StringStorage:
        """Make a storage; see `HostSession`. A file is read in a thread."""
        if described.file_path:
            return await asyncio.to_thread(self._shelf.create_strings, described)
        return self._shelf.create_strings(described)

    def destroy_strings(self, name: str) -> None:
        """Forget a storage; see `HostSession`."""
        self._shelf.destroy_strings(name)

    async def create_embedded(self, described: EmbeddedStorageDescription, progress: Progress) -> EmbeddedStorage:
        """Make an embedded storage; see `HostSession`."""
        host = self._host(progress)
        return await self._shelf.create_embedded(
            described, host.embedding, lambda done, total: progress(described.name, done, total)
        )

    def destroy_embedded(self, name: str) -> None:
        """Forget an embedded storage; see `HostSession`."""
        self._shelf.destroy_embedded(name)

    async def create_voice(self, described: VoiceInputDescription, progress: Progress) -> HostedVoiceInput:
        """Make a voice input; see `HostSession`."""
        host = self._host(progress)
        return await open_voice(
            described, self._settings.stt_engine, strings=self._shelf.strings, fetched=host.hears, hearing=self._voices
        )

    def close(self) -> None:
        """Forget all storages."""
        self._shelf = Shelf(None)

    def _host(self, progress: Progress) -> _AgentHost:
        client = GraphClient(self._session_agents)
        return _AgentHost(self._models, self._shelf, self._settings, progress, self._voices, client, self._patterns)


class _AgentHost:
    """A `Host` with the engines that the session had when the agent was made."""

    def __init__(
        self,
        models: Models,
        shelf: Shelf,
        settings: HostSettings,
        progress: Progress,
        voices: Voices,
        client: GraphClient,
        patterns: PatternBook,
    ) -> None:
        self._client = client
        self.patterns = patterns
        self._models = models
        self._voices = voices
        self._shelf = shelf
        self._settings = settings
        self._progress = progress

    async def language(self, model_name: str) -> LanguageEngine:
        engine = self._settings.inference_engine
        await self._fetched(model_name, engine)
        return await self._models.language(model_name, engine, self._client)

    async def embedding(self, model_name: str) -> EmbeddingEngine:
        engine = self._settings.embedding_engine
        await self._fetched(model_name, engine)
        return await self._models.embedding(model_name, engine)

    async def hears(self, name: str) -> None:
        """Under auto download, see to it that a model that hears is here. Whether there is one is not our business."""
        await self._fetched_of(HEARS, name, self._settings.stt_engine)

    async def voice(self, model_name: str) -> Voice | None:
        engine = self._settings.tts_engine
        return await self._voices.voice(model_name, engine, lambda name: self._fetched_of(SPEAKS, name, engine))

    async def _fetched_of(self, kind: str, name: str, engine: int) -> None:
        if name in self._models.named(kind):
            await self._fetched(name, engine)

    async def _fetched(self, name: str, engine: int) -> None:
        """Under auto download, see to it that a model is here."""
        if engine == InferenceEngine.MOCK or not self._settings.allow_auto_model_downloading:
            return
        await self._models.ensure(name, engine, self._progress)

    def start_over(self) -> None:
        for conversation in self._client.conversations.values():
            conversation.start_over()

    async def strings(self, reference: str) -> StringStorage:
        return await self._shelf.strings(reference)

    async def embedded(self, reference: str) -> EmbeddedStorage:
        return await self._shelf.embedded(reference, self.embedding)


class LocalGraphHost:
    """A `GraphHost` over a pool.

    `storage_root` is the folder that clients may name files of; None for no files. `records` keep what is said, if they
    are there. Unless it `keeps_memories`, those of a session begin empty and end with it.
    """

    def __init__(
        self,
        pool: Models,
        storage_root: str | None = None,
        vectors: VectorStore | None = None,
        voices: Voices | None = None,
        records: ConversationRecords | None = None,
        *,
        keeps_memories: bool = True,
    ) -> None:
        self.models = pool
        self._keeps_memories = keeps_memories
        self._records = records
        self._voices = voices
        self._storage_root = storage_root
        self._vectors = vectors if vectors is not None else VectorStore()
        self._files = StorageFiles()
        self._pattern_threads = pattern_threads()

    def open_session(self, describe: DescribeError = by_kind) -> SessionHost:
        """Begin a session, with a shelf of its own; see `GraphHost`."""
        aside = PatternThread(self._pattern_threads)
        return SessionHost(
            self.models,
            self._storage_root,
            self._vectors,
            self._voices,
            aside,
            self._files,
            describe,
            self._records,
            keeps_memories=self._keeps_memories,
        )

    async def close(self) -> None:
        """End downloads, and let go of all models."""
        if self._records is not None:
            await self._records.close()
        await self.models.close()
        # A pattern that is looked for ends soon; the others have nobody any more who waits for them.
        await asyncio.to_thread(self._pattern_threads.shutdown, cancel_futures=True)


def _folder(root: str | None, wanted: str) -> str | None:
    """The storage folder of a session: that of the server, or one inside of it."""
    if not wanted:
        return root
    confined.check_size(wanted)
    if root is None or "\0" in wanted:
        raise OutsideStorage(f"`{wanted}` cannot be the storage folder on this server.")
    if confined.is_foreign(wanted):
        raise OutsideStorage(f"`{wanted}` is a path of another system.")
    base = os.path.realpath(root)
    path = os.path.realpath(os.path.join(base, wanted))
    if path != base and not path.startswith(base.rstrip("/") + "/"):
        raise OutsideStorage(f"`{wanted}` is not in the storage root of this server.")
    if not os.path.isdir(path):
        raise StorageMissing(f"`{wanted}` is not a folder in this server's storage root.")
    return path
