"""Reads a buffer that nobody has checked. No byte of it is believed before it was seen to be possible.

A FlatBuffer is a web of offsets, and offsets can lie: lead out of the buffer, into the middle of something else, or a
thousand times to the same place. What is checked, of whatever is visited:

- the root, and each table, vector and string, lies inside the buffer and on a multiple of four;
- a table's vtable lies inside the buffer, is even, and long enough for its own header; the fields that it tells of lie
  inside the table, on a multiple of their width (of four, for wider ones: see below), and do not overlap;
- a vector's length fits into what is left of the buffer; a string ends with a zero byte and is UTF-8;
- a union has both its tag and its value, or neither, and the tag is known;
- all that is visited, counted as often as it is visited, is no more than an honest frame holds: see `MAX_TEXT`.

How deep it goes needs no limit of its own: no table of the schema holds itself.

Wide fields need not be on a multiple of eight. A builder that counts its own length prefix shifts everything by four,
and some clients have such a builder.
"""

from __future__ import annotations

from struct import Struct, iter_unpack
from typing import Any

from trunkline.base.values import Value
from trunkline.wires.tryll.codec.errors import BAD_STRING, BAD_TEXT, Malformed, UnknownKind
from trunkline.wires.tryll.codec.shapes import UNIONS, WIDTHS, Shape, shape_named, shape_of
from trunkline.wires.tryll.messages import BODIES, Message

#: All text of a frame, in bytes: four times what fits into one, since a builder may let several fields share a string.
#: In memory, characters can take four times their bytes. A short frame may share more often, and has less to share: so
#: much, and four times its own length.
MAX_TEXT = 4 << 20
SHARED_TEXT = 64 << 10
#: Tables, vectors and strings of a frame. Each needs an offset of four bytes that leads to it, unless somebody shares
#: tables, which is good for a few and no more; and a hundred thousand of them are more than any message needs. The
#: worst frame, with both limits exhausted, takes about 40 MiB and a fifth of a second, and a short one less.
MAX_OBJECTS = 1 << 17
SHARED_OBJECTS = 1024

#: The plans kept for one table: one for each arrangement of fields that peers have sent. Builders make few. A peer that
#: makes many must not fill the memory, so all are dropped then; nor the time, so each counts as so many objects.
MAX_PLANS = 64
PLAN_OBJECTS = 16

#: The root's offset, an empty vtable, an empty table.
SMALLEST = 12

_u32 = Struct("<I").unpack_from
_u16 = Struct("<H").unpack_from
_i32 = Struct("<i").unpack_from
_u64 = Struct("<Q").unpack_from
_f32 = Struct("<f")
_header = Struct("<HH").unpack_from


class _Plan:
    """How a table with one certain vtable is read."""

    __slots__ = ("floats", "objects", "others", "scalars", "size", "strings", "unions", "unpack")

    def __init__(self, shape: Shape, vtable: bytes) -> None:
        self.size: int = _header(vtable)[1]
        if self.size < 4:
            raise Malformed("a table is too short for its own header")
        count = len(vtable) // 2 - 2
        entries = Struct(f"<{count}H").unpack_from(vtable, 4)
        places: list[tuple[int, str, int]] = []  # offset in the table, code, position
        for field in shape.fields:
            if field.kind == "union":
                places.append((_entry(entries, field.position), "B", field.position))
                places.append((_entry(entries, field.position + 1), "I", field.position + 1))
            else:
                places.append((_entry(entries, field.position), field.code, field.position))
        present = sorted(place for place in places if place[0])
        self.unpack = Struct(self._format(present)).unpack_from
        found = {position: index for index, (_, _, position) in enumerate(present)}
        offset_of = {position: offset for offset, _, position in present}
        #: (index of the field, index of what was unpacked)
        self.scalars: list[tuple[int, int]] = []
        self.floats: list[tuple[int, int]] = []
        #: (index of the field, index of what was unpacked, offset in the table)
        self.strings: list[tuple[int, int, int]] = []
        #: The same, kind, and name of a table.
        self.others: list[tuple[int, int, int, str, str]] = []
        #: (index of the field, index of the tag, index of the value or -1, offset of the value, name of the union)
        self.unions: list[tuple[int, int, int, int, str]] = []
        for number, field in enumerate(shape.fields):
            at, position = found.get(field.position, -1), field.position
            if field.kind == "union":
                value = found.get(position + 1, -1)
                if at >= 0:
                    self.unions.append((number, at, value, offset_of.get(position + 1, 0), field.of))
            elif at >= 0 and field.kind == "scalar":
                (self.floats if field.code == "f" else self.scalars).append((number, at))
            elif at >= 0 and field.kind == "string":
                self.strings.append((number, at, offset_of[position]))
            elif at >= 0:
                self.others.append((number, at, offset_of[position], field.kind, field.of))

        #: The table itself, and what it leads to.
        self.objects = 1 + len(self.strings) + len(self.others)

    def _format(self, present: list[tuple[int, str, int]]) -> str:
        parts, end = ["<4x"], 4
        for offset, code, _ in present:
            width = WIDTHS[code]
            if offset < end or offset % min(width, 4) or offset + width > self.size:
                raise Malformed("a field lies outside its table, across another field, or askew")
            parts.append(f"{offset - end}x{code}")
            end = offset + width
        return "".join(parts)


def _entry(entries: tuple[int, ...], position: int) -> int:
    return entries[position] if position < len(entries) else 0


def shortest(value: float) -> float:
    """The number that a peer meant by a float of 32 bits: 0.15 comes as 0.15000000596."""
    short = float(f"{value:.7g}")
    try:
        return short if _f32.pack(short) == _f32.pack(value) else value
    except OverflowError:
        return value


class TableReader:
    """Reads one buffer."""

    __slots__ = ("_data", "_length", "_objects", "_plan", "_shape_seen", "_text", "_vtable_seen")

    _plan: _Plan

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._length = len(data)
        self._objects = min(SHARED_OBJECTS + self._length // 4, MAX_OBJECTS)
        self._text = min(SHARED_TEXT + 4 * self._length, MAX_TEXT)
        self._shape_seen: Shape | None = None
        self._vtable_seen = -1

    def message(self) -> Message:
        """The body of the root.

        Raises:
            Malformed: the buffer is not what it should be.
            UnknownKind: a tag is not known.
        """
        tag, at = self.locate()
        if tag > len(BODIES):
            raise UnknownKind(f"there is no message with the tag {tag}")
        body: Message = self._table(shape_of(BODIES[tag - 1]), at)
        return body

    def locate(self) -> tuple[int, int]:
        """The tag of the body, and where its table is."""
        if self._length < SMALLEST:
            raise Malformed("the frame is empty" if not self._length else "the frame is too short for a message")
        root = self._follow(0, _u32(self._data)[0])
        entries, size = self.vtable(root, 2)
        tag_offset, offset = _entry(entries, 0), _entry(entries, 1)
        if not tag_offset or not offset:
            raise Malformed("the message has no body")
        if not 4 <= tag_offset < size or offset < 4 or offset % 4 or offset + 4 > size or root + size > self._length:
            raise Malformed("the root table is not possible")
        tag = self._data[root + tag_offset]
        if not tag:
            raise Malformed("the message has no body")
        return tag, self._follow(root + offset, _u32(self._data, root + offset)[0])

    def vtable(self, table: int, most: int) -> tuple[tuple[int, ...], int]:
        """The first `most` entries of a table's vtable, and the size of the table that it tells."""
        key = self._vtable(table - _i32(self._data, table)[0], 4 + 2 * most)
        return Struct(f"<{len(key) // 2 - 2}H").unpack_from(key, 4), _header(key)[1]

    def request_id(self, table: int) -> int:
        """The request id of a body, which all requests have as their first field; 0 if there is none.

        Raises:
            Malformed: the table is not possible.
        """
        entries, size = self.vtable(table, 1)
        offset = _entry(entries, 0)
        if not offset:
            return 0
        if offset < 4 or offset + 8 > size or table + size > self._length:
            raise Malformed("the request id lies outside its table")
        found: int = _u64(self._data, table + offset)[0]
        return found

    def _vtable(self, at: int, most: int) -> bytes:
        """The bytes of the vtable at `at`, no more than `most`: what a newer peer has put there is passed over."""
        if at < 0 or at & 1 or at + 4 > self._length:
            raise Malformed("a vtable lies outside the frame")
        length = _u16(self._data, at)[0]
        if length < 4 or length & 1 or at + length > self._length:
            raise Malformed("a vtable's length is not possible")
        return self._data[at : at + min(length, most)]

    def _follow(self, at: int, offset: int) -> int:
        """Where an offset that stands at `at` leads to. There are at least four bytes there."""
        target = at + offset
        if not offset or target & 3 or target + 4 > self._length:
            raise Malformed("an offset points nowhere")
        return target

    def _spend(self, objects: int) -> None:
        self._objects -= objects
        if self._objects < 0:
            raise Malformed("the frame holds the same things too often")

    def _spend_text(self, size: int) -> None:
        self._text -= size
        if self._text < 0:
            raise Malformed("the frame holds the same text too often")

    def _table(self, shape: Shape, at: int) -> Any:
        """The table at `at`, which `_follow` has seen."""
        data, length = self._data, self._length
        vtable = at - _i32(data, at)[0]
        if vtable == self._vtable_seen and shape is self._shape_seen:
            # The tables of a vector mostly share one.
            plan = self._plan
        else:
            plan = self._plan_for(shape, vtable)
            self._vtable_seen, self._shape_seen, self._plan = vtable, shape, plan
        if at + plan.size > length:
            raise Malformed("a table does not fit into the frame")
        self._spend(plan.objects)
        raw = plan.unpack(data, at)
        values = shape.defaults.copy()
        for number, index in plan.scalars:
            values[number] = raw[index]
        for number, index in plan.floats:
            values[number] = shortest(raw[index])
        for number, index, place in plan.strings:
            offset = raw[index]
            start = at + place + offset
            # As `_follow` and `_string` do, at half the cost.
            if not offset or start & 3 or start + 4 > length:
                raise Malformed(BAD_STRING)
            size = _u32(data, start)[0]
            end = start + 4 + size
            if end >= length or data[end]:
                raise Malformed(BAD_STRING)
            self._spend_text(size)
            try:
                values[number] = data[start + 4 : end].decode()
            except UnicodeDecodeError:
                raise Malformed(BAD_TEXT) from None
        if plan.others or plan.unions:
            self._children(plan, at, raw, values)
        return shape.type(*values)

    def _children(self, plan: _Plan, at: int, raw: tuple[Any, ...], values: list[Any]) -> None:
        """Read what a table holds beyond numbers and strings."""
        for number, index, place, kind, name in plan.others:
            target = self._follow(at + place, raw[index])
            if kind == "table":
                values[number] = self._table(shape_named(name), target)
            else:
                values[number] = self._vector(kind, name, target)
        for number, tag, index, place, name in plan.unions:
            values[number] = self._union(raw[tag], raw[index] if index >= 0 else 0, at + place, name)

    def _plan_for(self, shape: Shape, vtable: int) -> _Plan:
        key = self._vtable(vtable, 4 + 2 * shape.positions)
        plan: _Plan | None = shape.plans.get(key)
        if plan is None:
            self._spend(PLAN_OBJECTS)
            plan = _Plan(shape, key)
            if len(shape.plans) >= MAX_PLANS:
                shape.plans.clear()
            shape.plans[key] = plan
        return plan

    def _union(self, tag: int, offset: int, at: int, name: str) -> Value | None:
        if not tag:
            return None
        members = UNIONS[name]
        if tag > len(members):
            raise UnknownKind(f"there is no `{name}` with the tag {tag}")
        if not offset:
            raise Malformed("a union has a tag and no value")
        found: Value = self._table(shape_of(members[tag - 1]), self._follow(at, offset))
        return found

    def _string(self, at: int) -> str:
        """The string at `at`, which `_follow` has seen."""
        data = self._data
        length = _u32(data, at)[0]
        end = at + 4 + length
        if end >= self._length or data[end]:
            raise Malformed(BAD_STRING)
        self._spend_text(length)
        try:
            return data[at + 4 : end].decode()
        except UnicodeDecodeError:
            raise Malformed(BAD_TEXT) from None

    def _strings(self, first: int, size: int) -> tuple[str, ...]:
        """Those of a vector. One that is there several times counts each time, and is the same object."""
        data, string, follow = self._data, self._string, self._follow
        known: dict[int, str] = {}
        found = []
        for index, (offset,) in enumerate(iter_unpack("<I", data[first : first + size])):
            at = follow(first + 4 * index, offset)
            text = known.get(at)
            if text is None:
                text = known[at] = string(at)
            else:
                self._spend_text(_u32(data, at)[0])
            found.append(text)
        return tuple(found)

    def _vector(self, kind: str, name: str, at: int) -> Any:
        count = _u32(self._data, at)[0]
        size = count * (2 if kind == "samples" else 4)
        first = at + 4
        if size > self._length - first:
            raise Malformed("a vector does not fit into the frame")
        if kind == "samples":
            return self._data[first : first + size]
        if kind == "strings":
            self._spend(count)
            return self._strings(first, size)
        follow = self._follow
        offsets = enumerate(iter_unpack("<I", self._data[first : first + size]))
        shape, table = shape_named(name), self._table
        return tuple([table(shape, follow(first + 4 * index, offset)) for index, (offset,) in offsets])

    def tables(self, at: int, offset: int, name: str) -> Any:
        """The vector of tables that an offset at `at` leads to."""
        return self._vector("tables", name, self._follow(at, offset))


def request_id_of(data: bytes) -> int:
    """The request id of a frame that could not be read, as far as it can be had; otherwise 0."""
    reader = TableReader(data)
    try:
        tag, at = reader.locate()
        if tag <= len(BODIES) and BODIES[tag - 1].__fields__[0] != "request_id":
            return 0
        return reader.request_id(at)
    except Malformed:
        return 0
