"""The models that somebody has pulled from a hub or an address: one small file each, beside the models themselves.

It says what was pulled, from where, and the hash of each of its files; whether these are here is seen by looking. One
that cannot be read is as good as none: then the model is pulled again.
"""

from __future__ import annotations

import os
from contextlib import suppress

from trunkline.base import jsontext, paths, shapes
from trunkline.base.values import Value
from trunkline.models.catalog_entry import LLAMA, LLM, CatalogEntry, ModelFile

#: In the folder of the models.
FOLDER = "pulled"
#: The longest that is read.
MAX_BYTES = 1 << 20


class _Pulled(Value):
    """One file of a record."""

    name: str
    sha256: str
    size: int


class _Record(Value):
    """What is kept of a model."""

    source: str
    files: tuple[_Pulled, ...]
    revision: str = ""
    kind: str = LLM
    engine: str = LLAMA
    licence: str = ""
    description: str = ""
    context: int = 0
    kv_bytes: int = 0


def entries(models: str) -> list[CatalogEntry]:
    """All of them, by name. `models`: the folder of the models."""
    folder = os.path.join(models, FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = [_read(os.path.join(folder, name)) for name in names if name.endswith(".json")]
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)


def read(models: str, origin: str) -> CatalogEntry | None:
    """What was pulled from there; None if nothing was."""
    return _read(_path(models, origin))


def write(models: str, entry: CatalogEntry) -> None:
    """List a model whose files are known."""
    record = _Record(
        source=entry.source,
        files=tuple(_Pulled(file.name, file.sha256, file.size) for file in entry.files),
        revision=entry.revision,
        kind=entry.kind,
        engine=entry.engine,
        licence=entry.licence,
        description=entry.description,
        context=entry.context or 0,
        kv_bytes=entry.kv_bytes,
    )
    path = _path(models, entry.origin)
    paths.ensure_dir(os.path.dirname(path))
    with open(f"{path}.new", "wb") as file:
        file.write(jsontext.dumps(shapes.encode(record)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def remove(models: str, origin: str) -> None:
    """List a model no longer. Idempotent."""
    with suppress(FileNotFoundError):
        os.remove(_path(models, origin))


def _path(models: str, origin: str) -> str:
    from hashlib import sha256

    return os.path.join(models, FOLDER, f"{sha256(origin.encode('utf-8', 'replace')).hexdigest()[:32]}.json")


def _read(path: str) -> CatalogEntry | None:
    try:
        with open(path, "rb") as file:
            record = shapes.decode(_Record, jsontext.loads(file.read(MAX_BYTES)))
    except (OSError, ValueError):
        return None
    files = tuple(ModelFile(file.name, file.sha256, length=file.size) for file in record.files)
    if not files or not all(file.sha256 for file in files):
        return None
    entry = CatalogEntry(
        "",
        record.kind,
        record.description,
        record.licence,
        files,
        record.context or None,
        record.engine,
        source=record.source,
        revision=record.revision,
        kv_bytes=record.kv_bytes,
    )
    return entry.replace(name=entry.origin)
