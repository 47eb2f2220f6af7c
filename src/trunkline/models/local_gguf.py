"""The little that must be known of a GGUF file before it is loaded. Only its first bytes are read."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO

from trunkline.base.values import Value

MAGIC = b"GGUF"

#: How far into a file we look. What we want comes first; a vocabulary of megabytes comes after.
MAX_HEADER_BYTES = 256 * 1024
#: Longer keys and strings than that come later, or the file is damaged.
MAX_STRING_BYTES = 64 * 1024
#: Longer lists than the tags and languages of a model are its vocabulary.
MAX_LIST = 1000

_STRING, _ARRAY = 8, 9
#: The type of a file that is an adapter.
_ADAPTER = b"adapter"
#: Formats of the other types, by their numbers.
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class GgufFacts(Value):
    """What the beginning of a file says of its model. None: it does not say so there."""

    context: int | None = None
    """The tokens that it was made for."""
    layers: int | None = None
    kv_bytes: int | None = None
    """What each token of its window takes in memory, with 16 bits a number."""
    adapter: bool = False
    """Whether it is an adapter of a model, and none by itself."""


def context_length(path: str) -> int | None:
    """The tokens that the model in a file was made for; None when the file does not say so near its beginning.

    Raises:
        ValueError: it is no GGUF file.
        OSError: it cannot be read.
    """
    return facts(path).context


def is_adapter(path: str) -> bool:
    """Whether a file is an adapter of a model, and none by itself. One that cannot be read is not."""
    try:
        return facts(path).adapter
    except (ValueError, OSError):
        return False


def facts(path: str) -> GgufFacts:
    """What the beginning of a file says of its model.

    Raises:
        ValueError: it is no GGUF file.
        OSError: it cannot be read.
    """
    found: dict[bytes, int] = {}
    with open(path, "rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not begin like a GGUF file")
        try:
            _version, _tensors, count = struct.unpack("<IQQ", file.read(20))
            _numbers(file, count, found)
        except struct.error:
            # A model whose beginning was cut off behind what we look for is for its engine to refuse.
            if not found:
                raise ValueError("it ends too soon") from None
        except _Enough:
            pass
    return GgufFacts(
        found.get(b"context_length"), found.get(b"block_count"), _kv_bytes(found), adapter=_ADAPTER in found
    )


class _Enough(Exception):
    """What comes now is not worth reading."""


def _numbers(file: BinaryIO, count: int, found: dict[bytes, int]) -> None:
    """The whole numbers that the file has, by their names without what the model is built like."""
    for _ in range(count):
        if file.tell() > MAX_HEADER_BYTES:
            break
        key = _string(file)
        value = _value(file, *struct.unpack("<I", file.read(4)))
        if key == b"general.type" and value == _ADAPTER:
            found[_ADAPTER] = 1
        _, _, name = key.partition(b".")
        if name and type(value) is int and value > 0:
            found.setdefault(name, value)


def _kv_bytes(found: Mapping[bytes, int]) -> int | None:
    """For each head of each layer a key and a value, of two bytes a number."""
    layers, heads = found.get(b"block_count"), found.get(b"attention.head_count")
    width = found.get(b"embedding_length", 0)
    if not layers or not heads or not width:
        return None
    size = found.get(b"attention.key_length", width // heads)
    return 2 * 2 * layers * found.get(b"attention.head_count_kv", heads) * size


def _value(file: BinaryIO, kind: int) -> bytes | int | float:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner == _ARRAY or count > MAX_LIST:
            raise _Enough
        for _ in range(count):
            _value(file, inner)
        return b""
    if kind not in _SCALARS:
        raise _Enough
    form = _SCALARS[kind]
    (value,) = struct.unpack(form, file.read(struct.calcsize(form)))
    return value  # type: ignore[no-any-return]  # one of those types, by the format


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > MAX_STRING_BYTES:
        raise _Enough
    return file.read(length)
