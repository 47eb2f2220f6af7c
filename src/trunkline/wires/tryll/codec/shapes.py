"""What the codec knows of each table: fields, positions and widths. Compiled from `wire` when first needed."""

from __future__ import annotations

from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.wires.tryll import messages
from trunkline.wires.tryll.messages import (
    BODIES,
    LAYOUTS,
    NODE_PARAMS,
    NodeParams,
    SamplingOverrides,
    SamplingParams,
    Table,
)

Kind = Literal["scalar", "string", "table", "union", "strings", "samples", "tables"]

#: The width of each scalar, and of the offset that leads to anything else.
WIDTHS = {"Q": 8, "I": 4, "i": 4, "f": 4, "H": 2, "B": 1, "?": 1}

UNIONS: dict[str, tuple[type[Value], ...]] = {"NodeParams": NODE_PARAMS, "MessageBody": BODIES}


class Field(Value):
    """One field of a table."""

    name: str
    kind: Kind
    position: int
    """Where its offset stands in a vtable. For a union, that of the tag; the value comes next."""
    code: str
    """The `struct` code of what stands in the table."""
    default: Any
    of: str
    """The table, or the union, that it holds."""


class Shape:
    """One table: its fields, and the plans for reading and writing it that were needed so far."""

    __slots__ = ("defaults", "fields", "plans", "positions", "sparse", "type", "write_plans")

    def __init__(self, kind: type[Value]) -> None:
        self.type = kind
        self.fields, self.positions = _fields(kind)
        self.defaults = [field.default for field in self.fields]
        # Where absence means "inherit", an empty vector is not written either.
        self.sparse = issubclass(kind, NodeParams | SamplingOverrides | SamplingParams)
        self.plans: dict[bytes, Any] = {}
        self.write_plans: dict[int, Any] = {}


def layout_of(kind: type[Value]) -> str:
    """The types of a table's fields, position by position; see `messages_base`."""
    return kind.wire if issubclass(kind, Table) else LAYOUTS[kind]


def _fields(kind: type[Value]) -> tuple[tuple[Field, ...], int]:
    fields: list[Field] = []
    position = 0
    names = iter(kind.__fields__)
    for word in layout_of(kind).split():
        if word != "-":
            name = next(names)
            fields.append(_field(word, name, position, kind.__defaults__[name]))
        position += 2 if word[0] == "|" else 1
    return tuple(fields), position


def _field(word: str, name: str, position: int, default: Any) -> Field:
    if word in WIDTHS:
        return Field(name, "scalar", position, word, default, "")
    if word == "s":
        return Field(name, "string", position, "I", default, "")
    if word == "[s":
        return Field(name, "strings", position, "I", default, "")
    if word == "[h":
        return Field(name, "samples", position, "I", default, "")
    if word[0] == "[":
        return Field(name, "tables", position, "I", default, word[1:])
    if word[0] == "|":
        return Field(name, "union", position, "I", default, word[1:])
    return Field(name, "table", position, "I", default, word)


_SHAPES: dict[type[Value], Shape] = {}


def shape_of(kind: type[Value]) -> Shape:
    """The one shape of a table."""
    shape = _SHAPES.get(kind)
    if shape is None:
        shape = _SHAPES[kind] = Shape(kind)
    return shape


def shape_named(name: str) -> Shape:
    """The shape of a table, by its name in the schema."""
    return shape_of(getattr(messages, name))


def tag_of(union: str, value: Value) -> int:
    """The tag of a member of a union."""
    return UNIONS[union].index(type(value)) + 1
