"""An embedding model in this process: llama.cpp and a GGUF file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from trunkline.base.vocabulary import LEAST_WINDOW
from trunkline.core.faults import ProviderError
from trunkline.models.engines import Vector, fingerprint
from trunkline.models.llama_server import EMBEDDED_TOKENS, LlamaServer
from trunkline.models.load_options import NOTHING, LoadOptions

#: Texts at once: between two such groups others have their turn.
BATCH = 16
#: What is looked at of a text. Each character may be a token of its own, and some are two: what is too long is halved.
MAX_CHARS = 4 * EMBEDDED_TOKENS


class LlamaEmbedding:
    """An `EmbeddingEngine`. `load` makes one."""

    def __init__(self, name: str, server: LlamaServer) -> None:
        self.name = name
        self.fingerprint = ""
        self.dimensions = 0
        self.used = server.used
        self._server: LlamaServer | None = server
        self._busy = asyncio.Lock()

    @classmethod
    async def load(
        cls,
        name: str,
        path: str,
        *,
        window: int | None = None,
        threads: int | None = None,
        options: LoadOptions = NOTHING,
    ) -> Self:
        """Load a model, and see how long its vectors are. `window`: the longest text, in tokens.

        Raises:
            ProviderError: it cannot be loaded, or gives no vectors.
        """
        window = max(LEAST_WINDOW, min(options.context or window or EMBEDDED_TOKENS, EMBEDDED_TOKENS))
        options = options.replace(threads=options.threads or threads)
        try:
            return await cls._load(name, path, window, options, mean=False)
        except ProviderError:
            # A file that does not say how a text's vector is made of its tokens' leaves it to us: their mean.
            return await cls._load(name, path, window, options, mean=True)

    @classmethod
    async def _load(cls, name: str, path: str, window: int, options: LoadOptions, *, mean: bool) -> Self:
        engine = cls(name, await asyncio.to_thread(_server, path, window, options, mean))
        try:
            (vector,) = await engine.embed(["a"])
        except BaseException:
            await engine.close()
            raise
        engine.fingerprint = f"{fingerprint(path)} {'mean' if mean else ''}"
        engine.dimensions = len(vector)
        return engine

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            async with self._busy:
                if self._server is None:
                    raise ProviderError(f"The model `{self.name}` was unloaded.")
                group = [text[:MAX_CHARS] or " " for text in texts[start : start + BATCH]]
                vectors += await asyncio.to_thread(_embedded, self._server, group)
        return vectors

    async def close(self) -> None:
        """Free the memory, after what is going on. Idempotent."""
        async with self._busy:
            holder = [self._server]
            self._server = None
            await asyncio.to_thread(holder.clear)


def _server(path: str, window: int, options: LoadOptions, mean: bool) -> LlamaServer:
    return LlamaServer(path, window, 1, embedding=True, mean=mean, options=options)


def _embedded(server: LlamaServer, texts: list[str]) -> list[Vector]:
    import numpy as np

    answer = server.embed(texts)
    while "too large" in str(answer.get("error", "")) and max(map(len, texts)) > 1:
        longest = max(map(len, texts))
        texts = [text[: max(1, longest // 2)] for text in texts]
        answer = server.embed(texts)
    if "data" not in answer:
        raise ProviderError("The model returns no vectors: is it an embedding model?")
    rows = np.array([each["embedding"] for each in answer["data"]], np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list(rows / np.where(lengths == 0, 1, lengths))
