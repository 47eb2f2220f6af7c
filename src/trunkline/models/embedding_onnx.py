"""Sentence embeddings with MiniLM: an ONNX file, and the tokenizer beside it.

The vector of a text is the mean of what the model says of its tokens, brought to length 1.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError
from trunkline.models.catalog_entry import TOKENIZER
from trunkline.models.engines import Vector, fingerprint
from trunkline.models.installed import no_engine
from trunkline.models.llama_server import default_threads
from trunkline.models.load_options import CPU, LoadedAs
from trunkline.models.onnx import runtime, session_options

#: What the model was made for. The rest of a longer text does not count.
MAX_TOKENS = 256
#: What is looked at of a text at all: no text of this length has fewer tokens than that.
MAX_CHARS = 16 * 1024
#: The types of vectors.
_NUMBERS = ("tensor(float)", "tensor(float16)")
#: Texts at once: more is not quicker, and between two such groups others have their turn.
BATCH = 32


class OnnxEmbedding:
    """An `EmbeddingEngine`. `load` makes one."""

    def __init__(self, name: str, session: Any, tokenizer: Any, fingerprint: str, threads: int = 0) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.used = LoadedAs(threads=threads, device=CPU)
        states = _states(session)
        self.dimensions = int(states.shape[-1])
        self._output = states.name
        self._inputs = [each.name for each in session.get_inputs()]
        self._session = session
        self._tokenizer = tokenizer
        self._busy = asyncio.Lock()

    @classmethod
    async def load(cls, name: str, path: str, *, threads: int | None = None) -> OnnxEmbedding:
        """Load a model.

        Raises:
            ProviderError: it cannot be loaded.
        """
        threads = threads or default_threads()
        session, tokenizer = await asyncio.to_thread(_load, path, threads)
        return cls(name, session, tokenizer, fingerprint(path, _tokenizer(path)), threads)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            async with self._busy:
                if self._session is None:
                    raise ProviderError(f"The model `{self.name}` was unloaded.")
                group = [text[:MAX_CHARS] for text in texts[start : start + BATCH]]
                vectors += await asyncio.to_thread(self._embedded, self._session, group)
        return vectors

    def tokens(self, texts: Sequence[str]) -> int:
        """What the model reads of all texts together. Blocks."""
        encoded = self._tokenizer.encode_batch([jsontext.whole(text[:MAX_CHARS]) for text in texts])
        return sum(sum(each.attention_mask) for each in encoded)

    def _embedded(self, session: Any, texts: list[str]) -> list[Vector]:
        import numpy as np

        # Lone surrogates are no text to the tokenizer.
        encoded = self._tokenizer.encode_batch([jsontext.whole(text) for text in texts])
        tokens = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        (states,) = session.run([self._output], {name: given[name] for name in self._inputs})
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return list((means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32))

    async def close(self) -> None:
        """Free the memory, after what is going on. Idempotent."""
        async with self._busy:
            self._session = None


def _states(session: Any) -> Any:
    """What a model tells of each token: numbers for each text, token and dimension. Some tell other things first.

    Raises:
        ProviderError: it tells nothing of the kind.
    """
    for output in session.get_outputs():
        if output.type in _NUMBERS and len(output.shape) == 3 and isinstance(output.shape[-1], int):
            return output
    raise ProviderError("The model returns no vectors: is it an embedding model?")


def _tokenizer(path: str) -> str:
    """Beside the model, or in the folder above: hubs have the files of ONNX in a folder of their own."""
    folder = os.path.dirname(path)
    beside, above = os.path.join(folder, TOKENIZER), os.path.join(os.path.dirname(folder), TOKENIZER)
    return above if not os.path.exists(beside) and os.path.exists(above) else beside


def _load(path: str, threads: int) -> tuple[Any, Any]:
    try:
        onnxruntime = runtime()
        from tokenizers import Tokenizer
    except ImportError:
        raise ProviderError(no_engine("embeddings")) from None
    try:
        tokenizer = Tokenizer.from_file(_tokenizer(path))
        session = onnxruntime.InferenceSession(path, session_options(threads), providers=["CPUExecutionProvider"])
    except Exception as error:  # each library has its own kinds
        raise ProviderError(f"`{os.path.basename(path)}` cannot be loaded ({type(error).__name__}).") from None
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()
    return session, tokenizer
