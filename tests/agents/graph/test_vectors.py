"""Vectors: made once, kept within limits, never taken for others, and searched."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.loop import until
from trunkline.agents.graph import vectors
from trunkline.agents.graph.host import LocalHost
from trunkline.agents.graph.shelf import Shelf
from trunkline.agents.graph.vectors import VectorStore
from trunkline.core.faults import EmbeddingError, ProviderError
from trunkline.core.graph.hosting import EmbeddedStorageDescription
from trunkline.models.embedding_mock import MockEmbedding
from trunkline.models.engines import Vector


class Counting(MockEmbedding):
    """Counts what it embeds."""

    embedded = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        type(self).embedded += len(texts)
        return await super().embed(texts)


async def test_vectors_are_made_once_for_the_same_texts_and_again_for_others(tmp_path: Path) -> None:
    Counting.embedded = 0
    directory = str(tmp_path / "cache")
    first = await VectorStore(directory).get(Counting("m"), ["a", "b"])
    store = VectorStore(directory)
    second = await store.get(Counting("m"), ["a", "b"])
    assert Counting.embedded == 2
    assert np.array_equal(first.matrix, second.matrix)
    assert await store.get(Counting("m"), ["a", "b"]) is second
    await store.get(Counting("m"), ["ab"])
    await store.get(Counting("other"), ["a", "b"])
    assert Counting.embedded == 5
    # Another maker of vectors may have models of the same name.
    assert vectors._key(Counting("m"), ["a"]) != vectors._key(MockEmbedding("m"), ["a"])


async def test_a_client_cannot_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = VectorStore(str(tmp_path))
    await store.get(MockEmbedding("m"), ["anybody can have these made"])
    assert not os.listdir(tmp_path)
    # Those that were used longest ago make room.
    monkeypatch.setattr(vectors, "MAX_STORED_BYTES", 6000)
    for number in range(3):
        await store.get(Counting("m"), [str(number)])
        os.utime(tmp_path / f"{vectors._key(Counting('m'), [str(number)])}.npy", (number, number))
    (tmp_path / "other").write_text("not ours")
    # What is beside an index goes as well.
    for ending in (".usearch", ".usearch.sha256"):
        (tmp_path / f"old{ending}").write_bytes(b"x")
        os.utime(tmp_path / f"old{ending}", (0, 0))
    await store.get(Counting("m"), ["0"])
    await store.get(Counting("m"), ["3"])
    kept = [vectors._key(Counting("m"), [text]) for text in ("0", "2", "3")]
    assert set(os.listdir(tmp_path)) == {"other", *(f"{key}.npy" for key in kept)}


async def test_vectors_are_made_by_one_at_a_time_although_one_leaves_and_others_come() -> None:
    going, waits = 0, asyncio.Event()

    class Slow(MockEmbedding):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            nonlocal going
            going += 1
            assert going == 1
            try:
                await waits.wait()
            finally:
                going -= 1
            return await super().embed(texts)

    store, engine = VectorStore(), Slow("m")

    def in_line() -> bool:
        return any(lock._waiters for lock in store._making.values())

    first = asyncio.create_task(store.get(engine, ["a"]))
    await until(lambda: going)
    second = asyncio.create_task(store.get(engine, ["a"]))
    await until(in_line)
    first.cancel()
    await asyncio.wait({first})
    third = asyncio.create_task(store.get(engine, ["a"]))
    await until(lambda: going and in_line())
    waits.set()
    assert await second is await third
    del first, second, third
    gc.collect()
    assert not store._making


async def test_a_damaged_file_of_vectors_is_made_again(tmp_path: Path) -> None:
    await VectorStore(str(tmp_path)).get(Counting("m"), ["a", "b"])
    file = tmp_path / f"{vectors._key(Counting('m'), ['a', 'b'])}.npy"
    whole = file.read_bytes()
    # Cut, with a head that is no Python, another kind of file, and with two vectors in each other's place.
    rows = len(whole) - 32 - 2 * 384 * 4
    swapped = whole[:rows] + whole[rows + 384 * 4 : -32] + whole[rows : rows + 384 * 4] + whole[-32:]
    damages = (b"", b"garbage", whole[:-7], whole[:8] + b"\x36" + whole[9:], b"PK\5\6" + bytes(18), swapped)
    for damage in damages:
        file.write_bytes(damage)
        await VectorStore(str(tmp_path)).get(Counting("m"), ["a", "b"])
        assert file.read_bytes() == whole


async def test_vectors_of_another_model_of_the_same_name_are_made_again(tmp_path: Path) -> None:
    Counting.embedded = 0
    first, other = Counting("m"), Counting("m")
    first.fingerprint, other.fingerprint = "1", "2"
    for engine in (first, first, other):
        await VectorStore(str(tmp_path)).get(engine, ["a"])
    assert Counting.embedded == 2


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, None])
async def test_what_is_no_number_is_no_vector_neither_of_a_record_nor_of_a_question(number: Any) -> None:
    class Broken(MockEmbedding):
        broken = True

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            whole = await super().embed(texts)
            return [[number, *vector[1:]] for vector in whole] if self.broken else whole

    engine = Broken("m")
    host = LocalHost(Shelf(None), embedding=lambda name: engine)
    request = EmbeddedStorageDescription("s", "", ("a",), "m")
    with pytest.raises(EmbeddingError):
        await host.shelf.create_embedded(request, host.embedding)
    engine.broken = False
    await host.shelf.create_embedded(request, host.embedding)
    engine.broken = True
    with pytest.raises(ProviderError):
        await (await host.embedded("s")).search("a", 1)


async def test_an_engine_with_vectors_of_another_length_is_refused() -> None:
    class Odd(MockEmbedding):
        dimensions = 5

    with pytest.raises(ProviderError, match="another length"):
        await VectorStore().get(Odd("m"), ["a"])


async def test_many_vectors_are_searched_by_an_index_and_a_filter_still_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 100)
    monkeypatch.setattr(vectors, "_QUICK", 0)
    texts = [f"number {number} of many" for number in range(300)]
    made = await VectorStore(str(tmp_path)).get(Counting("m"), texts)
    index = tmp_path / f"{vectors._key(Counting('m'), texts)}.usearch"
    whole = index.read_bytes()
    beside = index.with_name(f"{index.name}.sha256")
    sums = beside.read_bytes()
    # An index is believed as it is read: other vectors in it give other answers, and other neighbours end the process.
    other = bytearray(whole)
    other[100 : len(other) // 2] = bytes(len(other) // 2 - 100)
    for content in (whole, b"damaged", bytes(other), whole[: len(whole) // 2], b""):
        index.write_bytes(content)
        found = await VectorStore(str(tmp_path)).get(Counting("m"), texts)
        assert found is not made
        assert found._index is not None
        (query,) = await MockEmbedding("m").embed([texts[123]])
        place, distance = (await found.nearest(query, 5))[0]
        assert (place, distance < 1e-5) == (123, True)
        mask = np.arange(300) > 200
        filtered = await found.nearest(query, 5, mask)
        assert filtered == found._exact(query, 5, mask)
        assert min(place for place, _ in filtered) > 200
        assert beside.read_bytes()[:32] == hashlib.sha256(index.read_bytes()).digest()
        assert index.read_bytes() != content or content == whole
    # An index of other vectors, and one that nothing is known of.
    index.write_bytes(whole)
    for told, is_whole in ((sums, True), (sums[:32] + bytes(32), False), (b"", False)):
        beside.write_bytes(told)
        assert vectors._is_whole(str(index), made.matrix) is is_whole
    beside.unlink()
    assert not vectors._is_whole(str(index), made.matrix)
