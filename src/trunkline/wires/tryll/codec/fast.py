"""A short cut for reading the frames of a turn: `SendMessageRequest`, `AnswerText`, `TurnComplete` and `NodeEvent`.

A builder puts the same bytes in front of the body's fields each time: the root, the vtables, the tag. Whoever has
verified them once knows them again, byte for byte, and has only to verify what follows: the body's own fields. A frame
whose front is not known goes the long way, and is learned from if it has that arrangement.

What comes of a frame, message or fault, is the same either way. Its writing has a short cut, too: `templates`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from struct import Struct
from struct import error as struct_error
from typing import Any

from trunkline.wires.tryll.codec.errors import BAD_STRING, BAD_TEXT, Malformed
from trunkline.wires.tryll.codec.reader import TableReader
from trunkline.wires.tryll.codec.shapes import WIDTHS, shape_of
from trunkline.wires.tryll.codec.templates import ORDERS
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

#: The message in a frame; None for one with another front than the one that was learned, or that is not as usual.
Read = Callable[[bytes], Message | None]
Unpack = Callable[[bytes], tuple[Any, ...]]

#: Where the body's fields begin, by the first bytes of a frame; and who reads them, by all bytes up to there.
HEADS: dict[bytes, int] = {}
PREFIXES: dict[bytes, Read] = {}


def _unknown(data: bytes) -> None:
    """Nothing is known yet."""


#: Who has read the last frame: the next one is mostly alike, and to try is quicker than to look.
LAST: list[Read] = [_unknown]


def forget() -> None:
    """Know nothing."""
    HEADS.clear()
    PREFIXES.clear()
    LAST[0] = _unknown


def read_known(data: bytes) -> Message | None:
    """The message in a frame whose front is known; None for one that has to go the long way.

    Raises:
        Malformed: what follows the front is not what it should be.
    """
    at = HEADS.get(data[:SHORTEST_HEAD])
    read = None if at is None else PREFIXES.get(data[:at])
    if read is None:
        return None
    LAST[0] = read
    return read(data)


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
    found: tuple[NodeEventKeyValue, ...] = TableReader(data).tables(at, offset, "NodeEventKeyValue")
    return found


def learn(data: bytes, message: Message) -> None:
    """Remember the front of a frame that was found to be good, if it is one of a turn."""
    kind = type(message)
    if kind not in _READERS:
        return
    reader = TableReader(data)
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
        forget()
    HEADS[data[:SHORTEST_HEAD]] = front
    entries, size = reader.vtable(body, shape_of(kind).positions)
    PREFIXES[data[:front]] = _READERS[kind](_Body(data, kind, body, entries, size))


class _Body:
    """Where the fields of a body are, and its text, if it has one: the first of `ORDERS`.

    `unpack` gives the front, the fields in that order, None or the default for those that are absent, and then the
    length of the text. That stands where the text was in the frame that was learned from, and belongs to it if its
    offset is `usual`.
    """

    __slots__ = ("_at", "_offsets", "front", "start", "unpack", "usual")

    def __init__(self, data: bytes, kind: type[Message], at: int, entries: tuple[int, ...], size: int) -> None:
        self._at = at
        self.front = data[: at + 4]
        order = ORDERS[kind]
        fields = [field for field in shape_of(kind).fields if field.position < len(entries) and entries[field.position]]
        present = sorted((entries[field.position], field.code, field.name) for field in fields)
        self._offsets = {name: offset for offset, _, name in present}
        form, end = f"<{at + 4}s", 4
        for offset, code, _ in present:
            form += f"{offset - end}x{code}"
            end = offset + WIDTHS[code]
        names = ["front", *(name for _, _, name in present)]
        self.usual = self.start = -1
        if order[0] in names:
            offset = _u32(data, self.offset(order[0]))[0]
            start = self.offset(order[0]) + offset
            # Right behind the table, where builders put it.
            if 0 <= start - at - size <= 4:
                form += f"{start - at - end}xI"
                names.append("length")
                self.usual, self.start = offset, start + 4
        if self.usual < 0:
            form += f"{size - end}x"
        self.unpack = _sorted(Struct(form).unpack_from, names, kind)

    def offset(self, name: str) -> int:
        """Where a field is in the frame; anywhere, if it is absent."""
        return self._at + self._offsets.get(name, 0)


def _sorted(unpack: Unpack, names: list[str], kind: type[Message]) -> Unpack:
    """The same in the order of `ORDERS`."""
    order = ["front", *ORDERS[kind], "length"]
    if names == order:
        return unpack
    defaults = {field.name: field.default for field in shape_of(kind).fields if field.kind == "scalar"}
    absent = [name for name in order if name not in names]
    tail = tuple([defaults.get(name) for name in absent])
    sort = itemgetter(*map([*names, *absent].index, order))
    return lambda data: sort(unpack(data) + tail)


# What cannot be unpacked, or is not UTF-8, goes the long way, which knows what is wrong with it.


def _read_send_message(body: _Body) -> Read:
    known, unpack, usual, start, text_at = body.front, body.unpack, body.usual, body.start, body.offset("text")

    def read(data: bytes) -> Message | None:
        try:
            front, offset, request_id, agent_id, length = unpack(data)
            if front != known:
                return None
            if offset == usual and not data[end := start + length]:
                return SendMessageRequest(request_id, agent_id, data[start:end].decode())
        except (IndexError, UnicodeDecodeError, struct_error):
            return None
        return SendMessageRequest(request_id, agent_id, _text(data, text_at, offset))

    return read


def _read_answer_text(body: _Body) -> Read:
    known, unpack, usual, start, text_at = body.front, body.unpack, body.usual, body.start, body.offset("text")

    def read(data: bytes) -> Message | None:
        try:
            front, offset, request_id, agent_id, is_delta, is_final, length = unpack(data)
            if front != known:
                return None
            if offset == usual and not data[end := start + length]:
                return AnswerText(request_id, agent_id, data[start:end].decode(), is_delta, is_final)
        except (IndexError, UnicodeDecodeError, struct_error):
            return None
        return AnswerText(request_id, agent_id, _text(data, text_at, offset), is_delta, is_final)

    return read


def _read_turn_complete(body: _Body) -> Read:
    known, unpack, usual, start, info_at = body.front, body.unpack, body.usual, body.start, body.offset("debug_info")

    def read(data: bytes) -> Message | None:
        try:
            front, offset, request_id, agent_id, generated, prompt, cached, status, length = unpack(data)
            if front != known:
                return None
            if offset == usual and not data[end := start + length]:
                info = data[start:end].decode()
                return TurnComplete(request_id, agent_id, status, info, generated, prompt, cached)
        except (IndexError, UnicodeDecodeError, struct_error):
            return None
        info = _text(data, info_at, offset)
        return TurnComplete(request_id, agent_id, status, info, generated, prompt, cached)

    return read


def _read_node_event(body: _Body) -> Read:
    known, unpack, pairs_at = body.front, body.unpack, body.offset("kv_pairs")
    node_at, type_at = body.offset("node_name"), body.offset("event_type")

    def read(data: bytes) -> Message | None:
        try:
            front, node, event, pairs, agent_id, _ = unpack(data)
            if front != known:
                return None
        except struct_error:
            return None
        return NodeEvent(
            agent_id,
            _text(data, node_at, node),
            _text(data, type_at, event),
            () if pairs is None else _pairs(data, pairs_at, pairs),
        )

    return read


_READERS: dict[type[Message], Callable[[_Body], Read]] = {
    SendMessageRequest: _read_send_message,
    AnswerText: _read_answer_text,
    TurnComplete: _read_turn_complete,
    NodeEvent: _read_node_event,
}
