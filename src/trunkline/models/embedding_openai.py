"""An embedding model behind OpenAI-compatible addresses."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError
from trunkline.models.engines import Vector
from trunkline.models.remote import Remote

#: The longest answer: the vectors of a group of texts.
MAX_BODY = 64 * 1024 * 1024
#: Texts that are embedded by one request.
BATCH = 64
#: Numbers of a vector by which a model is known again; see `OpenAIEmbedding.fingerprint`.
MARKS = 8
#: Numbers of a vector, as far as 32 bits can hold them.
_LARGEST = 1e38


class OpenAIEmbedding:
    """An `EmbeddingEngine` at one address or several. `load` makes one."""

    dimensions = 0
    fingerprint = ""

    def __init__(self, remote: Remote) -> None:
        self.name = remote.name
        self._remote = remote

    @classmethod
    async def load(cls, remote: Remote) -> OpenAIEmbedding:
        """Ask how long the vectors are.

        Raises:
            ProviderError: nobody answers, or not with vectors.
        """
        engine = cls(remote)
        try:
            (vector,) = await engine.embed(["a"])
        except BaseException:
            await engine.close()
            raise
        engine.dimensions = len(vector)
        engine.fingerprint = engine._marked(vector)
        return engine

    def _marked(self, vector: Vector) -> str:
        """What tells this model from another one at the same address, under the same name.

        Which numbers of a vector are its largest, and their signs: that is the same for one model although servers
        calculate a little differently each time, and hardly for two. Several servers are taken at their word that they
        have the same model: with one more or less of them, vectors that were kept are still good.
        """
        largest = sorted(range(len(vector)), key=lambda at: -abs(vector[at]))[:MARKS]
        marks = [at if vector[at] >= 0 else ~at for at in sorted(largest)]
        where = self._remote.urls[0] if len(self._remote.urls) == 1 else ""
        return hashlib.sha256(repr((where, self._remote.model, marks)).encode()).hexdigest()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            group = list(texts[start : start + BATCH])
            body = {"input": group, "encoding_format": "float"}
            answer = await self._remote.whole("/embeddings", body, MAX_BODY)
            vectors += await asyncio.to_thread(self._vectors, answer, len(group))
        return vectors

    def _vectors(self, answer: bytes, count: int) -> list[Vector]:
        import numpy as np

        try:
            told = sorted(jsontext.loads(answer)["data"], key=lambda each: each["index"])
            rows = np.array([each["embedding"] for each in told], np.float64)
            if rows.ndim != 2 or len(rows) != count or (self.dimensions and rows.shape[1] != self.dimensions):
                raise ValueError
            # What is no number, and what is too large to have a length.
            if not np.abs(rows).max() < _LARGEST:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ProviderError(f"The server of the model `{self.name}` gave no vectors that can be used.") from None
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list((rows / np.where(lengths == 0, 1, lengths)).astype(np.float32))

    async def close(self) -> None:
        """Close connections. Idempotent; a later request opens them again."""
        await self._remote.close()
