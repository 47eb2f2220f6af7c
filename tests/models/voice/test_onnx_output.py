"""A voice that is made to tell how long its phonemes last: here, networks of a node or two, written by hand."""

from __future__ import annotations

import pytest

from trunkline.models.voice.onnx_output import with_durations


def field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2, len(body)]) + body


def node(kind: bytes, *outputs: bytes) -> bytes:
    return field(1, field(1, b"in") + b"".join(field(2, name) for name in outputs) + field(4, kind))


def model(*nodes: bytes, outputs: tuple[bytes, ...] = (b"sound",)) -> bytes:
    graph = b"".join(nodes) + field(2, b"graph") + b"".join(field(12, field(1, name)) for name in outputs)
    # A number and a field of eight bytes come first, as they may.
    return bytes([1 << 3, 0x88, 1]) + bytes([3 << 3 | 1]) + bytes(8) + field(7, graph)


def test_what_is_rounded_becomes_an_output() -> None:
    plain = model(node(b"Mul", b"length"), node(b"Ceil", b"rounded"))
    assert with_durations(plain) == plain + field(7, field(12, field(1, b"rounded")))


@pytest.mark.parametrize(
    "other",
    [
        model(node(b"Mul", b"length")),
        model(node(b"Ceil", b"one"), node(b"Ceil", b"two")),
        model(node(b"Ceil", b"rounded"), outputs=(b"sound", b"rounded")),
        b"",
        b"no model at all",
        model(node(b"Ceil", b"rounded"))[:-3],
        b"\x3a\xff",
        b"\xff" * 12,
    ],
)
def test_any_other_network_stays_as_it_is(other: bytes) -> None:
    assert with_durations(other) == other
