"""Engines as they are lent: the same for whoever uses them, and the pool knows who still does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import EmbeddingEngine, LanguageEngine, Prompt, Slot, Vector
from trunkline.models.generating import LOCAL


class LanguageLease:
    """A language engine, lent to one node until its `release`."""

    def __init__(self, engine: LanguageEngine, end: Callable[[], None]) -> None:
        self.context_size = engine.context_size
        self.tool_call_format = engine.tool_call_format
        self.default_sampling = engine.default_sampling
        self.provider = getattr(engine, "provider", LOCAL)
        self._engine = engine
        self._end: Callable[[], None] | None = end

    def refusal(self, sampling: SamplingParams) -> str | None:
        """As the engine does."""
        return self._engine.refusal(sampling)

    def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """As the engine does."""
        return self._engine.generate(prompt, sampling, stream=stream, grammar=grammar, slot=slot)

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """As the engine does."""
        return await self._engine.score(prompt, continuations, slot=slot)

    def count(self, text: str) -> int:
        """As the engine does."""
        return self._engine.count(text)

    def release(self, slot: Slot) -> None:
        """The node will not come back. Idempotent."""
        self._engine.release(slot)
        end, self._end = self._end, None
        if end is not None:
            end()


class EmbeddingLease:
    """An embedding engine, lent for as long as somebody holds this."""

    def __init__(self, engine: EmbeddingEngine) -> None:
        self.name = engine.name
        self.fingerprint = engine.fingerprint
        self.dimensions = engine.dimensions
        self._engine = engine

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As the engine does."""
        return await self._engine.embed(texts)
