"""Embedded string storages: records that are found by their meaning.

Described by a file in the storage folder,

    {"version": 1, "embedding_model": "minilm-l6", "records_file": "lore.json", "fields": [...]}

whose records are an array of `{"id": ..., "text": ..., "metadata": {...}}`; made of an object that holds such `records`
and `fields` itself; or of plain texts, whose ids are their numbers. An `index_file` is accepted and neither read nor
written: vectors are kept by what they were made of.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from trunkline.agents.graph import confined
from trunkline.agents.graph.fields import Column, FieldError, columns, read_fields
from trunkline.agents.graph.filters import Predicate, compile_filter
from trunkline.agents.graph.vectors import Progress, Vectors, VectorStore, checked
from trunkline.base import jsontext
from trunkline.base.memory import weight
from trunkline.base.values import Value
from trunkline.core.faults import EmbeddingError, ProviderError
from trunkline.models.engines import EmbeddingEngine

#: Records of one storage.
MAX_RECORDS = 1_000_000
VERSION = 1
#: Numbers in all vectors of a storage that a client sends in one frame: 32 MB, or 20,833 records of 384 dimensions.
#: A frame must not cost more than 64 MiB; what is in files is the host's own.
MAX_INLINE_NUMBERS = 8_000_000
#: Records of such a storage, and values in all fields of all of them: defaults cost memory that no frame has bytes for.
MAX_INLINE_RECORDS = 10_000
MAX_INLINE_VALUES = 200_000
#: Records that are quicker filtered than handed to a thread.
_QUICK = 2000

#: Gives the engine of an embedding model.
EngineOf = Callable[[str], Awaitable[EmbeddingEngine]]


class FoundRecord(Value):
    """A record that was found: its place among all records, and its cosine distance from what was asked."""

    index: int
    id: str
    text: str
    distance: float


class EmbeddedRecords:
    """What a storage is made of. It does not change, and can be referred to weakly."""

    __slots__ = ("__weakref__", "columns", "embedding_model", "ids", "size", "texts")

    def __init__(
        self, embedding_model: str, ids: tuple[str, ...], texts: tuple[str, ...], columns: Mapping[str, Column]
    ) -> None:
        self.embedding_model = embedding_model
        self.ids = ids
        self.texts = texts
        self.columns = columns
        self.size = 0
        """The bytes that they take, if they came in a request. What is in files is the host's own."""


class EmbeddedStorage:
    """Records that do not change, with their vectors and the engine that made them."""

    __slots__ = ("__weakref__", "_engine", "_origin", "_vectors", "records")

    def __init__(self, records: EmbeddedRecords, vectors: Vectors, engine: EmbeddingEngine) -> None:
        self.records = records
        self._vectors = vectors
        self._engine = engine
        self._origin: EmbeddedStorage | None = None

    def lent(self) -> EmbeddedStorage:
        """The same as a storage of somebody's own. As long as they have it, this one is there, too."""
        made = EmbeddedStorage(self.records, self._vectors, self._engine)
        made._origin = self
        return made

    @property
    def size(self) -> int:
        """The bytes that it takes: its records, if they came in a request, and their vectors."""
        return self.records.size and self.records.size + int(self._vectors.matrix.nbytes)

    @property
    def record_count(self) -> int:
        return len(self.records.ids)

    @property
    def dimensions(self) -> int:
        return self._vectors.dimensions

    def compile_filter(self, text: str) -> Predicate | None:
        """The predicate of a filter on these records.

        Raises:
            FilterError: it is none.
        """
        return compile_filter(text, self.records.columns)

    def field(self, name: str, index: int) -> Any:
        """What one record holds of a field."""
        column = self.records.columns.get(name)
        return column.values[index] if column is not None else None

    async def search(self, query: str, count: int, predicate: Predicate | None = None) -> list[FoundRecord]:
        """The nearest records that fit, nearest first.

        Raises:
            ProviderError: the query could not be embedded, or to nothing that can be compared.
        """
        mask = None
        if predicate is not None and self.record_count <= _QUICK:
            mask = predicate(self.record_count)
        elif predicate is not None:
            mask = await asyncio.to_thread(predicate, self.record_count)
        vector = checked(self._engine, await self._engine.embed([query]), 1)[0]
        records = self.records
        found = await self._vectors.nearest(vector, count, mask)
        return [FoundRecord(at, records.ids[at], records.texts[at], distance) for at, distance in found]


async def build(
    name: str,
    records: EmbeddedRecords,
    engine: EmbeddingEngine,
    store: VectorStore,
    progress: Progress | None = None,
    *,
    max_numbers: int | None = None,
) -> EmbeddedStorage:
    """The storage of these records. `name` is what errors call it, `max_numbers` how many its vectors may have.

    Raises:
        EmbeddingError: they are too many, or cannot be embedded.
    """
    if max_numbers is not None and len(records.ids) * engine.dimensions > max_numbers:
        most = max_numbers // engine.dimensions
        raise _wrong(name, f"at most {most} strings of `{records.embedding_model}` fit; more can be in a file")
    try:
        vectors = await store.get(engine, records.texts, progress)
    except ProviderError as error:
        raise _wrong(name, f"`{records.embedding_model}` failed: {str(error).removesuffix('.')}") from None
    return EmbeddedStorage(records, vectors, engine)


def inline(name: str, texts: Sequence[str], embedding_model: str) -> EmbeddedRecords:
    """Records of plain texts.

    Raises:
        EmbeddingError: there is nothing to embed, or nothing to do it with.
    """
    if not texts:
        raise _wrong(name, "there are no strings")
    if not embedding_model:
        raise _wrong(name, "strings need an `embedding_model`")
    return _weighed(EmbeddedRecords(embedding_model, tuple(map(str, range(len(texts)))), tuple(texts), {}))


def inline_records(name: str, text: str, embedding_model: str) -> EmbeddedRecords:
    """Records of a JSON object with `records` and, if they have any, `fields`. Those without an `id` are numbered.

    Raises:
        EmbeddingError: they are none, or too many, or there is nothing to embed them with.
    """
    if not embedding_model:
        raise _wrong(name, "records need an `embedding_model`")
    given = _json(text.encode(errors="surrogatepass"), name, "records_json")
    if not isinstance(given, dict) or not given.keys() <= {"records", "fields"}:
        raise _wrong(name, "its records are not in an object with `records` and `fields`")
    records = given.get("records")
    if isinstance(records, list):
        if len(records) > MAX_INLINE_RECORDS:
            raise _wrong(name, f"at most {MAX_INLINE_RECORDS} records can be sent; more can be in a file")
        records = [{"id": str(at), **each} if isinstance(each, dict) else each for at, each in enumerate(records)]
    try:
        fields = read_fields(given.get("fields"))
        if isinstance(records, list) and len(records) * len(fields) > MAX_INLINE_VALUES:
            raise _wrong(name, f"more than {MAX_INLINE_VALUES} values in the fields of its records")
        return _weighed(_records(embedding_model, records, fields, name))
    except FieldError as error:
        raise _wrong(name, str(error)) from None


def described(root: str | None, path: str, name: str) -> tuple[str, str]:
    """What a file describes, as `inline_records` takes it: the JSON, and the embedding model.

    Raises:
        Fault: as `read_records`.
    """
    model, records_file, about = _description(root, path, name)
    records = _json(confined.read(root, records_file, EmbeddingError), name, records_file)
    text = jsontext.dumps({"records": records, "fields": about.get("fields") or []}).decode()
    inline_records(name, text, model)
    return text, model


def read_records(root: str | None, path: str, name: str) -> EmbeddedRecords:
    """The records that a file describes. Reads two files.

    Raises:
        OutsideStorage: outside the root.
        StorageMissing: not there.
        EmbeddingError: not what it should be.
    """
    model, records_file, about = _description(root, path, name)
    try:
        fields = read_fields(about.get("fields"))
        given = _json(confined.read(root, records_file, EmbeddingError), name, records_file)
        return _records(model, given, fields, name)
    except FieldError as error:
        raise _wrong(name, str(error)) from None


def state(root: str | None, path: str, name: str) -> tuple[object, ...] | None:
    """What changes when one of the files that a description consists of does. Reads the first of them.

    Raises:
        Fault: as `read_records`.
    """
    about = confined.state(root, path)
    records = confined.state(root, _description(root, path, name)[1])
    return (about, records) if about is not None and records is not None else None


def _description(root: str | None, path: str, name: str) -> tuple[str, str, Mapping[str, Any]]:
    """The model and the file of records that a file names, and all that it says."""
    about = _json(confined.read(root, path, EmbeddingError), name, path)
    if not isinstance(about, dict):
        raise _wrong(name, f"`{path}` is not an object")
    if about.get("version", VERSION) != VERSION:
        raise _wrong(name, f"the version of `{path}` is not {VERSION}")
    model, records_file = (_text(about, key, name, path) for key in ("embedding_model", "records_file"))
    beside = os.path.dirname(path.replace("\\", "/"))
    if about.get("index_file") is not None:
        confined.resolve(root, os.path.join(beside, _text(about, "index_file", name, path)))
    return model, os.path.join(beside, records_file), about


def _records(model: str, given: Any, fields: Mapping[str, Any], name: str) -> EmbeddedRecords:
    if not isinstance(given, list) or not given:
        raise _wrong(name, "the records must be an array with at least one item")
    if len(given) > MAX_RECORDS:
        raise _wrong(name, f"there are more than {MAX_RECORDS} records")
    for number, record in enumerate(given):
        if not isinstance(record, dict) or not all(isinstance(record.get(key), str) for key in ("id", "text")):
            raise _wrong(name, f"record {number} has no `id` and `text`")
        if not isinstance(record.get("metadata", {}), dict):
            raise _wrong(name, f"the `metadata` of record {number} is not an object")
    ids = tuple(record["id"] for record in given)
    texts = tuple(record["text"] for record in given)
    return EmbeddedRecords(model, ids, texts, columns(fields, [record.get("metadata", {}) for record in given]))


def _weighed(records: EmbeddedRecords) -> EmbeddedRecords:
    records.size = weight((records.ids, records.texts, records.columns))
    return records


def _json(data: bytes, name: str, path: str) -> Any:
    try:
        return jsontext.loads(data)
    except ValueError as error:
        raise _wrong(name, f"`{path}` is not JSON: {error}") from None


def _text(described: Mapping[str, Any], key: str, name: str, path: str) -> str:
    value = described.get(key)
    if not isinstance(value, str) or not value:
        raise _wrong(name, f"`{path}` needs `{key}`")
    return value


def _wrong(name: str, problem: str) -> EmbeddingError:
    return EmbeddingError(f"The embedded storage `{name}`: {problem}.")
