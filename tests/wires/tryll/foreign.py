"""Frames as other people's clients write and read them: with the generated code and its runtime."""

from __future__ import annotations

import importlib
from typing import Any

from tests.support import flatc
from trunkline.base.values import Value
from trunkline.wires.tryll.codec.shapes import UNIONS, Field, shape_named, shape_of, tag_of
from trunkline.wires.tryll.messages import BODIES, Message

# By name: the runtime has no annotations.
flatbuffers: Any = importlib.import_module("flatbuffers")
generated = flatc.generated()


def camel(name: str) -> str:
    """The name that generated code has for a field."""
    return "".join(word.capitalize() for word in name.split("_"))


def build(message: Message) -> bytes:
    """The payload of a message. What is None or empty is left out; so are numbers that equal their default."""
    builder = flatbuffers.Builder(64)
    builder.Finish(_root(builder, message))
    return bytes(builder.Output())


def build_with_prefix(message: Message) -> bytes:
    """The frame of a message, by a builder that counts its own length prefix when it aligns."""
    builder = flatbuffers.Builder(64)
    builder.FinishSizePrefixed(_root(builder, message))
    return bytes(builder.Output())


def _root(builder: Any, message: Message) -> int:
    body = _table(builder, message)
    generated.MessageStart(builder)
    generated.MessageAddBodyType(builder, tag_of("MessageBody", message))
    generated.MessageAddBody(builder, body)
    root: int = generated.MessageEnd(builder)
    return root


def _table(builder: Any, table: Value) -> int:
    name = type(table).__name__
    given = [(field, getattr(table, field.name)) for field in shape_of(type(table)).fields]
    added: list[tuple[str, Any]] = []
    for field, value in given:
        if value is None or value == () or value == b"":
            continue
        if field.kind == "union":
            added.append((f"{field.name}_type", tag_of(field.of, value)))
        added.append((field.name, value if field.kind == "scalar" else _child(builder, name, field, value)))
    getattr(generated, f"{name}Start")(builder)
    for field_name, value in added:
        getattr(generated, f"{name}Add{camel(field_name)}")(builder, value)
    end: int = getattr(generated, f"{name}End")(builder)
    return end


def _child(builder: Any, table: str, field: Field, value: Any) -> int:
    found: int
    if field.kind == "string":
        found = builder.CreateString(value)
    elif field.kind in ("table", "union"):
        found = _table(builder, value)
    elif field.kind == "samples":
        getattr(generated, f"{table}Start{camel(field.name)}Vector")(builder, len(value) // 2)
        for at in range(len(value) - 2, -2, -2):
            builder.PrependInt16(int.from_bytes(value[at : at + 2], "little", signed=True))
        found = builder.EndVector()
    else:
        items = [builder.CreateString(each) if isinstance(each, str) else _table(builder, each) for each in value]
        getattr(generated, f"{table}Start{camel(field.name)}Vector")(builder, len(items))
        for item in reversed(items):
            builder.PrependUOffsetTRelative(item)
        found = builder.EndVector()
    return found


def read(payload: bytes) -> Any:
    """The message, read by generated code."""
    root = generated.Message.GetRootAs(payload, 0)
    return _read_union(BODIES, root.BodyType(), root.Body())


def _read_union(members: tuple[type[Value], ...], tag: int, at: Any) -> Any:
    if not tag:
        return None
    kind = members[tag - 1]
    table = getattr(generated, kind.__name__)()
    table.Init(at.Bytes, at.Pos)
    return _read(kind, table)


def _read(kind: type[Value], table: Any) -> Any:
    return kind(*(_read_field(field, table) for field in shape_of(kind).fields))


def _read_field(field: Field, table: Any) -> Any:
    name = camel(field.name)
    get = getattr(table, name)
    if field.kind == "scalar":
        return get()
    if field.kind == "string":
        found = get()
        return field.default if found is None else found.decode()
    if field.kind == "table":
        found = get()
        return None if found is None else _read(shape_named(field.of).type, found)
    if field.kind == "union":
        return _read_union(UNIONS[field.of], getattr(table, f"{name}Type")(), get())
    items = [get(number) for number in range(getattr(table, f"{name}Length")())]
    if field.kind == "strings":
        return tuple(item.decode() for item in items)
    if field.kind == "samples":
        return b"".join(int(item).to_bytes(2, "little", signed=True) for item in items)
    return tuple(_read(shape_named(field.of).type, item) for item in items)
