"""Writes messages as FlatBuffers, parents before children: what an offset leads to always lies behind it.

All scalars are written, also those that equal their default: defaults have changed between versions of the documents,
and a peer that has another one must not guess. What is None is left out, and in the parameters of nodes, where absence
means "inherit", an empty vector, too.
"""

from __future__ import annotations

from struct import Struct, pack_into
from typing import Any

from trunkline.base.values import Value
from trunkline.wires.tryll.codec.shapes import WIDTHS, Field, Shape, shape_of, tag_of
from trunkline.wires.tryll.messages import Message, Table

#: The arrangements that are kept for one table, each for one choice of absent fields.
MAX_PLANS = 256

_u32 = Struct("<I").pack
#: What follows a string: its zero byte, and what it takes to get to a multiple of four.
TAILS = (b"\0\0\0\0", b"\0\0\0", b"\0\0", b"\0")


class _Envelope(Table):
    """The root table, which the schema calls `Message`."""

    wire = "|MessageBody"

    body: Message | None = None


class WritePlan:
    """How a table with one certain choice of fields is arranged: the widest fields first."""

    __slots__ = ("aligned", "offsets", "order", "pack", "size", "vtable")

    def __init__(self, present: list[tuple[int, str]]) -> None:
        """Of (position, code)."""
        self.order = sorted(range(len(present)), key=lambda index: -WIDTHS[present[index][1]])
        entries: dict[int, int] = {}
        form, at = "<i", 4
        for index in self.order:
            position, code = present[index]
            entries[position] = at
            form += code
            at += WIDTHS[code]
        self.size = at + -at % 4
        self.pack = Struct(f"{form}{self.size - at}x").pack
        self.offsets = entries
        positions = 1 + max(entries, default=-1)
        numbers = [4 + 2 * positions, self.size, *(entries.get(position, 0) for position in range(positions))]
        self.vtable = Struct(f"<{len(numbers)}H").pack(*numbers)
        # With the widest fields first, the table itself stands just in front of a multiple of their width.
        self.aligned = 8 if any(code == "Q" for _, code in present) else 4


def write(message: Message) -> bytes:
    """The buffer of a message. Raises what `struct` raises for a number out of its range."""
    out = bytearray(4)
    root = _table(out, shape_of(_Envelope), _Envelope(message))
    pack_into("<I", out, 0, root)
    return bytes(out)


def utf8(text: str) -> bytes:
    """The text as bytes. Halves of characters, which other wires can carry and this one cannot, are replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _table(out: bytearray, shape: Shape, value: Value) -> int:
    """Write a table and all that it holds; where it begins."""
    present, numbers, children, choice = _present(shape, value)
    plan: WritePlan | None = shape.write_plans.get(choice)
    if plan is None:
        if len(shape.write_plans) >= MAX_PLANS:
            shape.write_plans.clear()
        plan = shape.write_plans[choice] = WritePlan(present)
    at = len(out) + len(plan.vtable)
    # Four bytes in front of a multiple of the widest field's width.
    padding = -(at + 4) % plan.aligned
    at += padding
    out += bytes(padding)
    out += plan.vtable
    out += plan.pack(len(plan.vtable), *[numbers[index] for index in plan.order])
    for position, kind, field, child in children:
        _child(out, at + plan.offsets[position], kind, field, child)
    return at


def _present(
    shape: Shape, value: Value
) -> tuple[list[tuple[int, str]], list[Any], list[tuple[int, str, Field, Any]], int]:
    """What is written: positions and codes, what stands there (0 for what is written later), the rest; and which."""
    present: list[tuple[int, str]] = []
    numbers: list[Any] = []
    children: list[tuple[int, str, Field, Any]] = []
    choice = 0
    for field in shape.fields:
        item = getattr(value, field.name)
        if item is None or (shape.sparse and item == ()):
            continue
        position, kind = field.position, field.kind
        choice |= 1 << position
        if kind == "scalar":
            present.append((position, field.code))
            numbers.append(item)
            continue
        if kind == "union":
            present.append((position, "B"))
            numbers.append(tag_of(field.of, item))
            position += 1
        present.append((position, "I"))
        numbers.append(0)
        children.append((position, kind, field, item))
    return present, numbers, children, choice


def _child(out: bytearray, at: int, kind: str, field: Field | None, value: Any) -> None:
    """Write what the offset at `at` leads to, and the offset."""
    if kind == "table" or kind == "union":
        start = _table(out, shape_of(type(value)), value)
    else:
        # Everything but tables ends on a multiple of four.
        out += bytes(-len(out) % 4)
        start = len(out)
        if kind == "string":
            data = utf8(value)
            out += _u32(len(data)) + data + TAILS[len(data) & 3]
        elif kind == "samples":
            if len(value) % 2:
                raise ValueError("half a sample")
            out += _u32(len(value) // 2) + value
        else:
            out += _u32(len(value)) + bytes(4 * len(value))
            inner = "string" if kind == "strings" else "table"
            for number, item in enumerate(value):
                _child(out, start + 4 + 4 * number, inner, None, item)
    pack_into("<I", out, at, start - at)
