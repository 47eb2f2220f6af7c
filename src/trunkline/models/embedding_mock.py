"""The mock that embeds: each word and each three letters in a row within a word have a direction of their own.

A text is the sum of its directions, in 384 dimensions. So the same text has distance 0, alike texts are near, and texts
that share nothing are about 1 apart (the directions are pseudo-random, so it is never exactly 1).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

from trunkline.models.engines import Vector

#: As many as the embedding model of the built-in catalog has.
DIMENSIONS = 384
#: What is looked at of a text that is to be embedded. A longer one costs no more.
MAX_EMBEDDED_CHARS = 4096
#: Characters of a text after which others have their turn.
_LONG = 512
#: Directions that are kept, 1.5 KiB each.
_KEPT_DIRECTIONS = 8192
_WORD = re.compile(r"\w+")


class MockEmbedding:
    """An `EmbeddingEngine` for any model name."""

    dimensions = DIMENSIONS
    fingerprint = ""

    def __init__(self, name: str = "mock") -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Add up the directions of what each text is made of."""
        vectors = []
        for text in texts:
            vectors.append(_embedded(text))
            if len(text) > _LONG:
                await asyncio.sleep(0)
        return vectors


def _features(text: str) -> Iterator[str]:
    words = _WORD.findall(text[:MAX_EMBEDDED_CHARS].casefold())
    for word in words:
        yield f"w{word}"
        for start in range(len(word) - 2):
            yield f"t{word[start : start + 3]}"
    if not words:
        # Only marks, or nothing: then the whole is the one thing to tell it by.
        yield f"x{text[:MAX_EMBEDDED_CHARS].strip()}"


@lru_cache(maxsize=_KEPT_DIRECTIONS)
def _direction(feature: str) -> Any:
    """Ones and minus ones, as the bits of the feature's hash are."""
    import hashlib

    import numpy as np

    bits = hashlib.shake_256(feature.encode("utf-8", "surrogatepass")).digest(DIMENSIONS // 8)
    return np.unpackbits(np.frombuffer(bits, np.uint8)).astype(np.float32) * 2 - 1


def _embedded(text: str) -> Vector:
    import numpy as np

    total = np.zeros(DIMENSIONS, np.float32)
    for feature in _features(text):
        total += _direction(feature)
    length = float(np.linalg.norm(total))
    return cast("Vector", total / length if length else total)
