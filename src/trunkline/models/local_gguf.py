"""The little that must be known of a GGUF file before it is loaded. Only its first bytes are read."""

from __future__ import annotations

import struct
from typing import BinaryIO

MAGIC = b"GGUF"

#: How far into a file we look. What we want comes first; a vocabulary of megabytes comes after.
MAX_HEADER_BYTES = 256 * 1024
#: Longer keys and strings than that come later, or the file is damaged.
MAX_STRING_BYTES = 64 * 1024
#: Longer lists than the tags and languages of a model are its vocabulary.
MAX_LIST = 1000

_STRING, _ARRAY = 8, 9
#: Formats of the other types, by their numbers.
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def context_length(path: str) -> int | None:
    """The tokens that the model in a file was made for; None when the file does not say so near its beginning.

    Raises:
        ValueError: it is no GGUF file.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not begin like a GGUF file")
        try:
            _version, _tensors, count = struct.unpack("<IQQ", file.read(20))
            return _context_length(file, count)
        except struct.error:
            raise ValueError("it ends too soon") from None
        except _Enough:
            return None


class _Enough(Exception):
    """What comes now is not worth reading."""


def _context_length(file: BinaryIO, count: int) -> int | None:
    for _ in range(count):
        if file.tell() > MAX_HEADER_BYTES:
            break
        key = _string(file)
        value = _value(file, *struct.unpack("<I", file.read(4)))
        if key.endswith(b".context_length") and isinstance(value, int):
            return value
    return None


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
