"""A short cut for reading the frames of a turn: `SendMessageRequest`, `AnswerText`, `TurnComplete` and `NodeEvent`.

A builder puts the same bytes in front of the body's fields each time: the root, the vtables, the tag. Whoever has
verified them once knows them again, byte for byte, and has only to verify what follows: the body's own fields. A frame
whose front is not known goes the long way, and is learned from if it has that arrangement.

What comes of a frame, message or fault, is the same either way. Its writing has a short cut, too: `codec_templates`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from struct import Struct
from struct import error as struct_error
from typing import Any

from trunkline.wires.tryll.codec_errors import BAD_STRING, BAD_TEXT, Malformed
from trunkline.wires.tryll.codec_reader import Reader
from trunkline.wires.tryll.codec_shapes import WIDTHS, shape_of
from trunkline.wires.tryll.messages import (
    AnswerText,
    Message,
    NodeEvent,
    NodeEventKeyValue,
    SendMessageRequest,
    TurnComplete,
)

#: As many bytes as tell where the body begins, in the arrangements that builders make.
SHORTEST_HEAD = 24
#: The fronts that are remembered: four kinds, each with its few choices of absent fields, from a few builders. A peer
#: that makes up more of them than this makes everybody go the long way for a moment, no more.
MAX_PREFIXES = 128

#: The longest front that is remembered. Builders need less than half of it.
MAX_FRONT = 128

#: Events with more pairs than this go the long way.
MOST_PAIRS = 16
#: The vtables of a pair with both its texts.
_PAIR_VTABLES = (Struct("<HHHH").pack(8, 12, 4, 8), Struct("<HHHH").pack(8, 12, 8, 4))

_u32 = Struct("<I").unpack_from
_pair = Struct("<iII").unpack_from

Read = Callable[[bytes], Message]

#: Where the body's fields begin, by the first bytes of a frame; and who reads them, by all bytes up to there.
HEADS: dict[bytes, int] = {}
PREFIXES: dict[bytes, Read] = {}


def _text(data: bytes, at: int, offset: int | None) -> str:
    """The string that an offset at `at` leads to."""
    if offset is None:
        return ""
    start = at + offset
    try:
        end = start + 4 + _u32(data, start)[0]
        if data[end] or start & 3 or not offset:
            raise Malformed(BAD_STRING)
        return data[start + 4 : end].decode()
    except (IndexError, struct_error):
        raise Malformed(BAD_STRING) from None
    except UnicodeDecodeError:
        raise Malformed(BAD_TEXT) from None


def _pairs(data: bytes, at: int, offset: int) -> tuple[NodeEventKeyValue, ...]:
    """The pairs that an offset at `at` leads to: the short way if they are few, and arranged as builders do it."""
    length = len(data)
    start = at + offset
    count = _u32(data, start)[0] if not start & 3 and offset and start + 4 <= length else MOST_PAIRS + 1
    if count > MOST_PAIRS or start + 4 + 4 * count > length:
        return _pairs_the_long_way(data, at, offset)
    found = []
    seen: int | None = None
    characters = 0
    for slot in range(start + 4, start + 4 + 4 * count, 4):
        table = slot + _u32(data, slot)[0]
        if table & 3 or table + 12 > length or table == slot:
            return _pairs_the_long_way(data, at, offset)
        soffset, first, second = _pair(data, table)
        vtable = table - soffset
        if vtable != seen:
            if vtable < 4 or vtable & 1 or data[vtable : vtable + 8] not in _PAIR_VTABLES:
                return _pairs_the_long_way(data, at, offset)
            seen = vtable
        if data[vtable + 4] == 4:
            key, value = _text(data, table + 4, first), _text(data, table + 8, second)
        else:
            key, value = _text(data, table + 8, second), _text(data, table + 4, first)
        characters += len(key) + len(value)
        if characters > length:
            # Some are the same, which has its price there.
            return _pairs_the_long_way(data, at, offset)
        found.append(NodeEventKeyValue(key, value))
    return tuple(found)


def _pairs_the_long_way(data: bytes, at: int, offset: int) -> tuple[NodeEventKeyValue, ...]:
    found: tuple[NodeEventKeyValue, ...] = Reader(data).tables(at, offset, "NodeEventKeyValue")
    return found


def learn(data: bytes, message: Message) -> None:
    """Remember the front of a frame that was found to be good, if it is one of a turn."""
    kind = type(message)
    if kind not in _READERS:
        return
    reader = Reader(data)
    _, body = reader.locate()
    root = _u32(data)[0]
    front = body + 4
    vtables = [table - int.from_bytes(data[table : table + 4], "little", signed=True) for table in (root, body)]
    # Everything that was verified lies in front of the fields, and what tells where they are in front of that.
    lengths = [int.from_bytes(data[at : at + 2], "little") for at in vtables]
    if front > MAX_FRONT or any(at + length > front for at, length in zip(vtables, lengths, strict=True)):
        return
    if root + reader.vtable(root, 2)[1] > front:
        return
    if len(PREFIXES) >= MAX_PREFIXES:
        PREFIXES.clear()
        HEADS.clear()
    HEADS[data[:SHORTEST_HEAD]] = front
    entries, size = reader.vtable(body, shape_of(kind).positions)
    PREFIXES[data[:front]] = _READERS[kind](kind, body, entries, size)


def _arrangement(
    kind: type[Message], entries: tuple[int, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any], dict[str, int]]:
    """How to unpack the fields behind the front, what to add for those that are absent, and how to sort both."""
    present = sorted(
        (entries[field.position], field.code, field.name)
        for field in shape_of(kind).fields
        if field.position < len(entries) and entries[field.position]
    )
    form, end = "<4x", 4
    for offset, code, _ in present:
        form += f"{offset - end}x{code}"
        end = offset + WIDTHS[code]
    names = [name for _, _, name in present]
    absent = [field for field in shape_of(kind).fields if field.name not in names]
    names += [field.name for field in absent]
    tail = tuple([field.default if field.kind == "scalar" else None for field in absent])
    order = itemgetter(*(names.index(field.name) for field in shape_of(kind).fields))
    return Struct(form).unpack_from, tail, order, {name: offset for offset, _, name in present}


def _read_send_message(kind: type[Message], body: int, entries: tuple[int, ...], size: int) -> Read:
    unpack, tail, order, offsets = _arrangement(kind, entries)
    end, text_at = body + size, body + offsets.get("text", 0)

    def read(data: bytes) -> Message:
        if len(data) < end:
            raise Malformed("a table does not fit into the frame")
        request_id, agent_id, text = order(unpack(data, body) + tail)
        return SendMessageRequest(request_id, agent_id, _text(data, text_at, text))

    return read


def _read_answer_text(kind: type[Message], body: int, entries: tuple[int, ...], size: int) -> Read:
    unpack, tail, order, offsets = _arrangement(kind, entries)
    end, text_at = body + size, body + offsets.get("text", 0)

    def read(data: bytes) -> Message:
        if len(data) < end:
            raise Malformed("a table does not fit into the frame")
        request_id, agent_id, text, is_delta, is_final = order(unpack(data, body) + tail)
        return AnswerText(request_id, agent_id, _text(data, text_at, text), is_delta, is_final)

    return read


def _read_turn_complete(kind: type[Message], body: int, entries: tuple[int, ...], size: int) -> Read:
    unpack, tail, order, offsets = _arrangement(kind, entries)
    end, info_at = body + size, body + offsets.get("debug_info", 0)

    def read(data: bytes) -> Message:
        if len(data) < end:
            raise Malformed("a table does not fit into the frame")
        request_id, agent_id, status, info, generated, prompt, cached = order(unpack(data, body) + tail)
        return TurnComplete(request_id, agent_id, status, _text(data, info_at, info), generated, prompt, cached)

    return read


def _read_node_event(kind: type[Message], body: int, entries: tuple[int, ...], size: int) -> Read:
    unpack, tail, order, offsets = _arrangement(kind, entries)
    end, pairs_at = body + size, body + offsets.get("kv_pairs", 0)
    node_at, type_at = body + offsets.get("node_name", 0), body + offsets.get("event_type", 0)

    def read(data: bytes) -> Message:
        if len(data) < end:
            raise Malformed("a table does not fit into the frame")
        agent_id, node, event, pairs = order(unpack(data, body) + tail)
        return NodeEvent(
            agent_id,
            _text(data, node_at, node),
            _text(data, type_at, event),
            () if pairs is None else _pairs(data, pairs_at, pairs),
        )

    return read


_READERS: dict[type[Message], Callable[[type[Message], int, tuple[int, ...], int], Read]] = {
    SendMessageRequest: _read_send_message,
    AnswerText: _read_answer_text,
    TurnComplete: _read_turn_complete,
    NodeEvent: _read_node_event,
}
