"""What a graph needs from whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trunkline.agents.graph.embedded import EmbeddedStorage
from trunkline.agents.graph.patterns import PatternBook
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.storages import StringStorage
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import EmbeddingEngine, LanguageEngine
from trunkline.models.mock_language import MockLanguage
from trunkline.models.voice.engines import Voice


class Host(Protocol):
    """What one agent works with: models and storages by name. Every failure is a `Fault` that names what was asked
    for."""

    @property
    def patterns(self) -> PatternBook:
        """The patterns of all guardrails of the session."""

    async def language(self, model_name: str) -> LanguageEngine:
        """The engine of a language model, loaded.

        Raises:
            ModelError: there is none, or it could not be fetched.
        """

    async def voice(self, model_name: str) -> Voice | None:
        """A model that speaks; the first that there is for no name. None where nothing is to be heard.

        Raises:
            ModelError: there is none, or it could not be fetched.
        """

    def start_over(self) -> None:
        """The conversation is another one: models that remember one by themselves are to be told it again."""

    async def strings(self, reference: str) -> StringStorage:
        """A string storage by its name, or by the path of its file.

        Raises:
            StorageError: outside the storage folder, not there, or not readable.
        """

    async def embedded(self, reference: str) -> EmbeddedStorage:
        """An embedded storage by its name, or by the path of the file that describes it.

        Raises:
            StorageError: outside the storage folder, not there, or not readable.
        """


class LocalHost:
    """A `Host` over a shelf of storages, with engines made by name: mocks, unless others are given."""

    def __init__(
        self,
        shelf: Shelf | None = None,
        *,
        language: Callable[[str], LanguageEngine] = MockLanguage,
        embedding: Callable[[str], EmbeddingEngine] = MockEmbedding,
        voice: Callable[[str], Voice | None] = lambda _: None,
    ) -> None:
        self.shelf = shelf if shelf is not None else Shelf(None)
        self._language = language
        self._embedding = embedding
        self._voice = voice
        self.patterns = PatternBook()

    async def language(self, model_name: str) -> LanguageEngine:
        return self._language(model_name)

    async def voice(self, model_name: str) -> Voice | None:
        return self._voice(model_name)

    async def embedding(self, model_name: str) -> EmbeddingEngine:
        """The engine of an embedding model: what a `Shelf` needs to make an embedded storage."""
        return self._embedding(model_name)

    def start_over(self) -> None:
        """Nobody here remembers a conversation by itself."""

    async def strings(self, reference: str) -> StringStorage:
        return await self.shelf.strings(reference)

    async def embedded(self, reference: str) -> EmbeddedStorage:
        return await self.shelf.embedded(reference, self.embedding)
