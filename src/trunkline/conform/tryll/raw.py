"""Payloads put together by hand, byte by byte: nothing here is trunkline's codec, and nothing keeps them right.

A `Sketch` remembers where its parts lie, so that a check can bend one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import calcsize, pack
from typing import TypeAlias

from trunkline.base.values import Value

#: The longest payload.
MAX_FRAME = 1 << 20

#: Where the root's table lies: behind the offset that leads to it, and its vtable.
ROOT = 12
#: The root's two fields: the offset of the body, and its tag.
BODY_AT = ROOT + 4
TAG_AT = ROOT + 8

# The tags of the messages that are made by hand, as the schema numbers them.
CONFIGURE, CREATE_AGENT, SEND, STRINGS = 2, 4, 6, 19
#: What only a server sends: SessionReady, AnswerText, TurnComplete, Ack, ErrorResponse, NodeEvent.
SERVER_ONLY = (1, 7, 8, 10, 25, 26)
#: Beyond every tag that the schema has, and may have soon.
UNKNOWN_TAGS = (200, 255)

#: What a field holds: a number with its `struct` code, a string, or a vector of strings.
Field: TypeAlias = "tuple[str, int] | bytes | list[bytes]"


class Sketch(Value):
    """A payload, and where the parts of its body lie. Fields are known by their position in the schema."""

    data: bytes
    vtable: int
    table: int
    places: Mapping[int, int]
    """Where the field itself stands."""
    targets: Mapping[int, int]
    """Where its string or vector begins: with the length."""

    def but(self, at: int, code: str, value: int) -> bytes:
        """The payload with other bytes at a place."""
        put = pack(f"<{code}", value)
        return self.data[:at] + put + self.data[at + len(put) :]

    def slot(self, position: int) -> int:
        """Where the vtable has the offset of a field."""
        return self.vtable + 4 + 2 * position


def frame(payload: bytes) -> bytes:
    """The payload behind its length."""
    return pack("<I", len(payload)) + payload


def sketch(tag: int, fields: Mapping[int, Field], *, positions: int = 0) -> Sketch:
    """A message. `positions`: how many its vtable has at least, as that of a newer schema would."""
    count = max([*(position + 1 for position in fields), positions], default=0)
    vtable, size = TAG_AT + 4, 4 + 2 * count
    # Numbers of eight bytes come first, and lie on a multiple of eight.
    table = vtable + size
    table += (4 - table) % 8
    order = sorted(fields, key=lambda position: -_width(fields[position]))
    places, end = {}, table + 4
    for position in order:
        places[position] = end
        end += _width(fields[position])
    out = bytearray(pack("<IHHHHiIB3x", ROOT, 8, 12, 8, 4, 8, table - BODY_AT, tag))
    out += pack("<HH", size, end - table)
    out += b"".join(pack("<H", places[at] - table if at in places else 0) for at in range(count))
    out += bytes(table - len(out)) + pack("<i", table - vtable) + bytes(end - table - 4)
    out += bytes(-len(out) % 4)
    targets = {position: _fill(out, places[position], fields[position]) for position in sorted(fields)}
    return Sketch(bytes(out), vtable, table, places, targets)


def _width(field: Field) -> int:
    return calcsize(f"<{field[0]}") if isinstance(field, tuple) else 4


def _fill(out: bytearray, place: int, field: Field) -> int:
    """Write what a field holds, and lead to it; gives where it lies."""
    if isinstance(field, tuple):
        put = pack(f"<{field[0]}", field[1])
        out[place : place + len(put)] = put
        return place
    target = len(out)
    out[place : place + 4] = pack("<I", target - place)
    if isinstance(field, bytes):
        out += _string(field)
        return target
    out += pack("<I", len(field)) + bytes(4 * len(field))
    for number, item in enumerate(field):
        at = target + 4 + 4 * number
        out[at : at + 4] = pack("<I", len(out) - at)
        out += _string(item)
    return target


def _string(data: bytes) -> bytes:
    return pack("<I", len(data)) + data + bytes(4 - len(data) % 4)


def send(request_id: int, agent_id: int, text: bytes, *, positions: int = 0) -> Sketch:
    """A `SendMessageRequest`."""
    return sketch(SEND, {0: ("Q", request_id), 1: ("Q", agent_id), 2: text}, positions=positions)


def strings(request_id: int, name: bytes, items: Sequence[bytes]) -> Sketch:
    """A `CreateStringStorageRequest` with its first three fields, as an old client writes it."""
    return sketch(STRINGS, {0: ("Q", request_id), 1: name, 2: list(items)})


def send_of_size(request_id: int, agent_id: int, size: int) -> bytes:
    """A `SendMessageRequest` whose payload has exactly `size` bytes, a multiple of four."""
    bare = len(send(request_id, agent_id, b"").data)
    return send(request_id, agent_id, b"x" * (size - bare + 3)).data


def aliased(request_id: int, count: int, size: int) -> bytes:
    """A storage of `count` strings that are all the same one, of `size` bytes."""
    made = strings(request_id, b"alias", [b"x" * size])
    vector = made.targets[2]
    # The one string moves behind a longer vector, and every offset leads to it.
    text = vector + 4 + 4 * count
    offsets = b"".join(pack("<I", text - (vector + 4 + 4 * number)) for number in range(count))
    return made.data[:vector] + pack("<I", count) + offsets + _string(b"x" * size)
