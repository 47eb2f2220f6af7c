"""Has a network tell what it computes on its way: how long each phoneme of a Piper voice lasts.

A voice computes the length of each phoneme, rounds it up, and keeps it to itself. An ONNX file is a Protocol Buffer, in
which a message that comes twice is one with the fields of both: behind the file, its graph is said to have one more
output.
"""

from __future__ import annotations

from collections.abc import Iterator

# From `onnx.proto`: the numbers of fields.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_OUTPUT = 1, 12
_NODE_OUTPUT, _NODE_TYPE = 2, 4
_VALUE_NAME = 1

_BYTES = 2
#: How many bytes a field of the other kinds has: 8, 4, or as many as say so.
_FIXED = {1: 8, 5: 4}
#: What rounds.
_ROUNDING = b"Ceil"


def with_durations(model: bytes) -> bytes:
    """A voice that tells, as its second output, how long each phoneme lasts; or the same voice, if it rounds nothing,
    or more than one thing, or tells already."""
    try:
        view = memoryview(model)
        graphs = [body for field, body in _fields(view) if field == _MODEL_GRAPH]
        rounded = {name for graph in graphs for name in _rounded(graph)}
        told = {
            bytes(name)
            for graph in graphs
            for field, value in _fields(graph)
            if field == _GRAPH_OUTPUT
            for number, name in _fields(value)
            if number == _VALUE_NAME
        }
    except (ValueError, IndexError):
        return model
    if len(rounded) != 1 or rounded <= told:
        return model
    output = _field(_GRAPH_OUTPUT, _field(_VALUE_NAME, next(iter(rounded))))
    return model + _field(_MODEL_GRAPH, output)


def _rounded(graph: memoryview) -> Iterator[bytes]:
    """The names of what the nodes of a graph give that round up."""
    for field, node in _fields(graph):
        if field != _GRAPH_NODE:
            continue
        parts = [(number, bytes(body)) for number, body in _fields(node) if number in (_NODE_OUTPUT, _NODE_TYPE)]
        if (_NODE_TYPE, _ROUNDING) in parts:
            yield from (body for number, body in parts if number == _NODE_OUTPUT)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message that are bytes, with their numbers.

    Raises:
        ValueError, IndexError: it is no message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _BYTES:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a field is cut off")
            yield key >> 3, message[at : at + length]
            at += length
        elif kind in _FIXED:
            at += _FIXED[kind]
        elif kind == 0:
            _, at = _varint(message, at)
        else:
            raise ValueError("a field of an unknown kind")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _field(number: int, body: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(body)) + body


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
