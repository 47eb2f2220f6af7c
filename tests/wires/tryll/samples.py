"""One message of each kind with something in every field, and one with nothing."""

from __future__ import annotations

from typing import Any

from trunkline.base.values import Value
from trunkline.wires.tryll.codec.shapes import UNIONS, Field, shape_named, shape_of
from trunkline.wires.tryll.messages import BODIES, NODE_PARAMS, ChangeAgentParamRequest, Message

#: The greatest value of each scalar, or one that a float can hold.
GREATEST = {"Q": 2**64 - 1, "I": 2**32 - 1, "i": -(2**31), "H": 2**16 - 1, "B": 255, "f": 0.375, "?": True}


def filled(kind: type[Value]) -> Any:
    """A table with something in every field; vectors have two items."""
    return kind(*(_value(field) for field in shape_of(kind).fields))


def _value(field: Field) -> Any:
    if field.kind == "scalar":
        return (not field.default) if field.code == "?" else GREATEST[field.code]
    if field.kind == "string":
        return f"{field.name} \N{LATIN SMALL LETTER O WITH DIAERESIS}\N{GRINNING FACE}"
    if field.kind == "strings":
        return (f"first of {field.name}", "")
    if field.kind == "samples":
        return b"\x01\x00\xff\xff\x00\x80"
    if field.kind == "table":
        return filled(shape_named(field.of).type)
    if field.kind == "tables":
        table = shape_named(field.of).type
        return (filled(table), table())
    return filled(UNIONS[field.of][0])


FULL: tuple[Message, ...] = tuple(filled(kind) for kind in BODIES)
EMPTY: tuple[Message, ...] = tuple(kind() for kind in BODIES)
NODES: tuple[Message, ...] = tuple(
    ChangeAgentParamRequest(1, 2, "node", params) for kind in NODE_PARAMS for params in (filled(kind), kind())
)
ALL = (*FULL, *EMPTY, *NODES)


def named(message: Message) -> str:
    """What a test of it is called."""
    if isinstance(message, ChangeAgentParamRequest) and message.params is not None:
        return f"{type(message.params).__name__}-{message.params == type(message.params)()}"
    return f"{type(message).__name__}-{message == type(message)()}"
