"""Vectors of many texts: made in batches, kept by what they were made of, and searched.

Up to `EXACT_LIMIT` vectors the search looks at each one, which is exact and takes milliseconds. Beyond that `usearch`
finds the nearest ones through an index, and only a filter still makes it look at each.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from trunkline.base import paths
from trunkline.core.faults import ProviderError
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import EmbeddingEngine, Vector

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from trunkline.agents.graph.filters import Mask

#: Vectors that are looked at one by one: some 20 ms of one core at 384 dimensions.
EXACT_LIMIT = 100_000
#: Texts that are embedded at once. An engine's memory grows with it, and so does the time between two reports.
BATCH = 32
#: Bytes of all files in the directory; those that were used longest ago make room. A million vectors of 384 dimensions
#: and their index are 3.5 GB, so the largest storage that there can be has its place.
MAX_STORED_BYTES = 8 << 30
#: Multiplications that are quicker done than handed to a thread.
_QUICK = 2_000_000

#: How the names of files end that we write.
_OURS = (".npy", ".usearch", ".sha256", ".part")

Progress = Callable[[int, int], None]


class Vectors:
    """The vectors of some texts, in their order."""

    def __init__(self, matrix: NDArray[float32]) -> None:
        self.matrix = matrix
        self._index: Any = None

    @property
    def dimensions(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    async def nearest(self, query: Vector, count: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """The nearest vectors that the mask lets through: place and cosine distance, nearest first."""
        if self.matrix.size <= _QUICK:
            return self._exact(query, count, mask)
        if self._index is not None and mask is None:
            return await asyncio.to_thread(self._approximate, query, count)
        return await asyncio.to_thread(self._exact, query, count, mask)

    def _exact(self, query: Vector, count: int, mask: Mask | None) -> list[tuple[int, float]]:
        import numpy as np

        places = np.arange(len(self)) if mask is None else np.flatnonzero(mask)
        matrix = self.matrix if mask is None or len(places) == len(self) else self.matrix[places]
        distances = 1.0 - matrix @ np.asarray(query, np.float32)
        if count < len(distances):
            best = np.argpartition(distances, count - 1)[:count]
        else:
            best = np.arange(len(distances))
        # Of two that are equally near, the earlier record comes first.
        best = best[np.lexsort((best, distances[best]))]
        return [(int(places[at]), max(0.0, float(distances[at]))) for at in best]

    def prepare(self, path: str | None) -> None:
        """Make the index of many vectors, or read it from a file if that is there. Takes minutes for a million."""
        import numpy as np

        if len(self) <= EXACT_LIMIT:
            return
        try:
            from usearch.index import Index
        except ImportError:
            # Then the search is exact, and takes longer.
            return
        index = Index(ndim=self.dimensions, metric="cos", dtype="f32")
        if path is not None and _is_whole(path, self.matrix):
            with suppress(Exception):
                index.load(path)
        if len(index) != len(self) or index.ndim != self.dimensions:
            index = Index(ndim=self.dimensions, metric="cos", dtype="f32")
            index.add(np.arange(len(self)), self.matrix)
            if path is not None:
                _replace(path, index.save)
                _replace(f"{path}.sha256", lambda partial: _write_sums(partial, path, self.matrix))
        self._index = index

    def _approximate(self, query: Vector, count: int) -> list[tuple[int, float]]:
        import numpy as np

        found = self._index.search(np.asarray(query, np.float32), count)
        return [
            (int(key), max(0.0, float(distance))) for key, distance in zip(found.keys, found.distances, strict=True)
        ]


class VectorStore:
    """Vectors by what they were made of: in memory while somebody uses them, and in a directory if there is one.

    Those of the Mock engine are not kept there: every client can have any number of them made, and they cost nothing.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._live: WeakValueDictionary[str, Vectors] = WeakValueDictionary()
        # There as long as somebody makes them, or waits for whoever does.
        self._making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, engine: EmbeddingEngine, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """The vectors of these texts by this engine: made once, whoever asks.

        Raises:
            ProviderError: the engine failed, or gave what cannot be used.
        """
        key = await asyncio.to_thread(_key, engine, texts)
        stored = self._directory is not None and type(engine) is not MockEmbedding
        lock = self._making.setdefault(key, asyncio.Lock())
        async with lock:
            found = self._live.get(key)
            if found is None and stored:
                found = await asyncio.to_thread(self._load, key, len(texts), engine.dimensions)
            if found is None:
                found = Vectors(await _embed(engine, texts, progress))
                if stored:
                    await asyncio.to_thread(self._save, key, found)
            elif progress is not None:
                progress(len(texts), len(texts))
            if found is not self._live.get(key):
                await asyncio.to_thread(found.prepare, self._path(key, "usearch") if stored else None)
                self._live[key] = found
                if stored:
                    await asyncio.to_thread(self._make_room, key)
        return found

    def _path(self, key: str, suffix: str) -> str | None:
        return os.path.join(self._directory, f"{key}.{suffix}") if self._directory is not None else None

    def _load(self, key: str, count: int, dimensions: int) -> Vectors | None:
        """What is in the directory; anything that is not right counts as nothing."""
        import numpy as np

        path = self._path(key, "npy")
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                matrix = np.load(file, allow_pickle=False)
                digest = file.read()
            if matrix.dtype != np.float32 or matrix.shape != (count, dimensions) or _digest(matrix) != digest:
                return None
        except Exception:
            # A damaged head can be anything to numpy, which takes it for Python's source.
            return None
        return Vectors(matrix)

    def _save(self, key: str, vectors: Vectors) -> None:
        path = self._path(key, "npy")
        if path is not None:
            _replace(path, lambda partial: _write(partial, vectors.matrix))

    def _make_room(self, key: str) -> None:
        """These were used just now; of the others, those that were used longest ago go while all are too much."""
        files = []
        with suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.startswith(key):
                        os.utime(entry.path)
                    about = entry.stat()
                    files.append((about.st_mtime, about.st_size, entry))
        total = sum(size for _, size, _ in files)
        for _, size, entry in sorted(files, key=lambda file: file[0]):
            if total <= MAX_STORED_BYTES:
                return
            if entry.name.startswith(key) or not entry.name.endswith(_OURS):
                continue
            with suppress(OSError):
                os.unlink(entry.path)
                total -= size


def _replace(path: str, write: Callable[[str], object]) -> None:
    """Write a file whole or not at all. One that cannot be written costs time the next time, and nothing else."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        paths.ensure_dir(os.path.dirname(path))
        write(partial)
        os.replace(partial, path)
    except (OSError, RuntimeError):
        with suppress(OSError):
            os.unlink(partial)


def _write(path: str, matrix: NDArray[float32]) -> None:
    import numpy as np

    with open(path, "wb") as file:
        np.save(file, matrix, allow_pickle=False)
        file.write(_digest(matrix))


def _digest(matrix: NDArray[float32]) -> bytes:
    """What follows the vectors in their file: damage shows, also where it makes other numbers of them."""
    return hashlib.sha256(matrix.reshape(-1).data).digest()


def _sums(path: str, matrix: NDArray[float32]) -> bytes:
    """What stands beside an index: by this it is known to be whole, and to be that of these vectors."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest() + _digest(matrix)


def _write_sums(partial: str, path: str, matrix: NDArray[float32]) -> None:
    with open(partial, "wb") as file:
        file.write(_sums(path, matrix))


def _is_whole(path: str, matrix: NDArray[float32]) -> bool:
    """Whether a file of an index is as it was written. `usearch` believes what it reads: damage ends the process."""
    try:
        with open(f"{path}.sha256", "rb") as file:
            told = file.read()
        return told == _sums(path, matrix)
    except OSError:
        return False


def _key(engine: EmbeddingEngine, texts: Sequence[str]) -> str:
    # Engines of one model name may differ: the mock has every name, and a file or an address may get another model.
    maker = type(engine)
    known = (maker.__module__, maker.__qualname__, engine.dimensions, engine.name, engine.fingerprint)
    digest = hashlib.sha256(f"2 {known!r}\0".encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def checked(engine: EmbeddingEngine, batch: Sequence[Vector], count: int) -> NDArray[float32]:
    """What an engine gave for so many texts.

    Raises:
        ProviderError: it is of another length, or not all of it are numbers: those would be near to everything.
    """
    import numpy as np

    try:
        with np.errstate(over="ignore"):
            block = np.asarray(batch, np.float32)
    except (TypeError, ValueError):
        raise ProviderError(f"`{engine.name}` returned something other than vectors.") from None
    if block.shape != (count, engine.dimensions):
        raise ProviderError(f"`{engine.name}` gave vectors of another length than {engine.dimensions}.")
    if not np.isfinite(block).all():
        raise ProviderError(f"`{engine.name}` gave vectors that are not all numbers.")
    return block


async def _embed(engine: EmbeddingEngine, texts: Sequence[str], progress: Progress | None) -> NDArray[float32]:
    import numpy as np

    matrix = np.empty((len(texts), engine.dimensions), np.float32)
    for start in range(0, len(texts), BATCH):
        batch = await engine.embed(texts[start : start + BATCH])
        matrix[start : start + BATCH] = checked(engine, batch, len(texts[start : start + BATCH]))
        if progress is not None:
            progress(min(start + BATCH, len(texts)), len(texts))
        await asyncio.sleep(0)
    return matrix
