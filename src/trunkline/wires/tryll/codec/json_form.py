"""Messages as JSON objects, for peers without FlatBuffers: the same messages, with the schema's names.

    encode(Ack(request_id=7))                      # b'{"type":"Ack","request_id":7}'
    decode(b'{"type":"HealthRequest","request_id":1}')

`type` names the message; in a union (`params`), it names the member. Enumerations are written by their names in the
schema, and read as numbers, too. Sound is base64. What is absent or null is the field's default, and what is None is
not written. Wide numbers may come as strings, and whole ones with a fraction of zero: some readers of JSON know no
other numbers.

What is read has the limits of a frame: a message that this gives is one that a frame could have held. Sans-IO.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import cache, partial
from struct import Struct
from struct import error as struct_error
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.printable import printable_line
from trunkline.base.values import Value
from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.tryll.codec.enumerations import FIELDS, NAMES
from trunkline.wires.tryll.codec.errors import FrameError, Malformed, Oversize, UnknownKind
from trunkline.wires.tryll.codec.frames import MAX_FRAME
from trunkline.wires.tryll.codec.reader import MAX_OBJECTS, shortest
from trunkline.wires.tryll.codec.shapes import UNIONS, Field, shape_named, shape_of
from trunkline.wires.tryll.codec.writer import utf8
from trunkline.wires.tryll.messages import Message

#: The deepest message is the tools of a node of a graph, with nine levels.
MAX_DEPTH = 16
#: Members and items of a message: as many objects as a frame may have, each with its name in front.
MAX_VALUES = MAX_OBJECTS
#: How much of a name that nobody knows is repeated.
SHOWN_CHARS = 40

#: What tells what an object is.
TYPE = "type"

#: What is told of a member that a union has not.
_CALLED = {"MessageBody": "message", "NodeParams": "node with"}

#: The least and the greatest number of each width.
_RANGES = {"Q": (0, 2**64 - 1), "I": (0, 2**32 - 1), "i": (-(2**31), 2**31 - 1), "H": (0, 2**16 - 1), "B": (0, 255)}
#: Up to here a double tells every whole number from its neighbours.
_EXACT = 2**53
#: No number of 64 bits has more digits.
_MOST_DIGITS = 20

_f32 = Struct("<f")

#: What an object has of its message.
_Form = Literal["named", "brief", "full"]

Read = Callable[[Any], Any]
Write = Callable[[Any], Any]


class _Unfit(RemoteProtocolError):
    """A value that its field cannot hold. `path` leads to it."""

    def __init__(self, problem: str, *path: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = list(path)

    def __str__(self) -> str:
        where = ".".join(self.path).replace(".[", "[")
        return f"`{where}` {self.problem}" if where else self.problem


def encode(message: Message) -> bytes:
    """The text of a message.

    Raises:
        Oversize: it would be larger than `MAX_FRAME`.
    """
    text = jsontext.dumps(_named(message))
    if len(text) > MAX_FRAME:
        raise Oversize(f"a `{type(message).__name__}` of {len(text)} bytes does not fit into a message")
    return text


def brief(message: Message) -> dict[str, Any]:
    """The object of a message without the fields that have their defaults, and with the numbers of enumerations: what a
    file has that is read by clients of frames, too, whose fields are numbers."""
    return _named(message, "brief")


def full(message: Message) -> dict[str, Any]:
    """The object of a message with all its fields, null where they are None, and with the numbers of enumerations: what
    programs compare that read frames."""
    return _named(message, "full")


def decode(text: bytes) -> Message:
    """The message in a text.

    Raises:
        Malformed: it is not one; nothing of it was believed.
        UnknownKind: it is of a kind that is not in the schema, or holds such a node.
    """
    try:
        value = jsontext.loads(text, MAX_DEPTH, MAX_VALUES, unique=True)
    except ValueError as error:
        raise Malformed(f"the message is not JSON: {printable_line(str(error))}") from None
    if type(value) is not dict:
        raise Malformed("the message is not a JSON object")
    try:
        message: Message = _member("MessageBody", value)
    except _Unfit as unfit:
        raise _about(value, Malformed(str(unfit))) from None
    except FrameError as error:
        raise _about(value, error) from None
    return message


def _about(value: Mapping[str, Any], error: FrameError) -> FrameError:
    """The error with the request id, as far as it can be had."""
    kind = value.get(TYPE)
    known = _members("MessageBody").get(kind) if isinstance(kind, str) else None
    if known is None or "request_id" in known.__fields__:
        try:
            error.request_id = _integer("Q", value.get("request_id", 0))
        except _Unfit:
            error.request_id = 0
    return error


# Reading.


def _member(union: str, value: Any) -> Any:
    """A member of a union, or what the whole message is."""
    if type(value) is not dict:
        raise _Unfit("is not an object")
    kind = value.get(TYPE)
    if type(kind) is not str:
        raise _Unfit(f"has no `{TYPE}`" if kind is None else "is not a text", *([] if kind is None else [TYPE]))
    member = _members(union).get(kind)
    if member is None:
        raise UnknownKind(f"there is no {_CALLED.get(union, union)} `{_shown(kind)}`")
    return _table(member, {name: item for name, item in value.items() if name != TYPE})


def _table(kind: type[Value], value: Any) -> Any:
    if type(value) is not dict:
        raise _Unfit("is not an object")
    readers = _readers(kind)
    values = shape_of(kind).defaults.copy()
    for name, item in value.items():
        known = readers.get(name)
        if known is None:
            raise _Unfit(f"is nothing that a `{kind.__name__}` has", _shown(name))
        if item is None:
            continue
        number, read = known
        try:
            values[number] = read(item)
        except _Unfit as unfit:
            unfit.path.insert(0, name)
            raise
    return kind(*values)


@cache
def _members(union: str) -> dict[str, type[Value]]:
    return {member.__name__: member for member in UNIONS[union]}


@cache
def _readers(kind: type[Value]) -> dict[str, tuple[int, Read]]:
    """Where each field goes, and who reads it."""
    chosen = FIELDS.get(kind, {})
    return {
        field.name: (number, _reader(field, chosen.get(field.name)))
        for number, field in enumerate(shape_of(kind).fields)
    }


def _reader(field: Field, enumeration: str | None) -> Read:
    if enumeration is not None:
        return partial(_choice, enumeration)
    match field.kind:
        case "scalar" if field.code == "?":
            return _flag
        case "scalar" if field.code == "f":
            return _float
        case "scalar":
            return partial(_integer, field.code)
        case "string":
            return _text
        case "samples":
            return _samples
        case "strings":
            return partial(_items, _text)
        case "tables":
            return partial(_items, partial(_table, shape_named(field.of).type))
        case "table":
            return partial(_table, shape_named(field.of).type)
        case "union":
            return partial(_member, field.of)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _Unfit("is neither true nor false")
    return value


def _integer(code: str, value: Any) -> int:
    number = value if type(value) is int else _otherwise_whole(code, value)
    least, most = _RANGES[code]
    if number is None and type(value) is float and _EXACT < value <= most:
        raise _Unfit(
            f"is greater than {_EXACT} and has a point or an exponent: readers of JSON round such numbers. "
            "Write its digits alone, or as a text"
        )
    if number is None or not least <= number <= most:
        raise _Unfit(f"is not a whole number from {least} to {most}")
    return number


def _otherwise_whole(code: str, value: Any) -> int | None:
    """A number from somebody who has no integers, or none that are wide enough; None if it is none."""
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) <= _EXACT else None
    is_wide = type(value) is str and code == "Q" and len(value) <= _MOST_DIGITS
    return int(value) if is_wide and value.isascii() and value.isdecimal() else None


def _choice(enumeration: str, value: Any) -> int:
    if type(value) is not str:
        return _integer("B", value)
    names = NAMES[enumeration]
    if value not in names:
        raise _Unfit(f"is not one of {', '.join(names)}")
    return names.index(value)


def _float(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _Unfit("is not a number")
    try:
        # As a frame would carry it.
        return shortest(_f32.unpack(_f32.pack(value))[0])
    except (OverflowError, struct_error):
        raise _Unfit("is too large for a float of 32 bits") from None


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _Unfit("is not a text")
    # Halves of characters, which JSON can carry and a frame cannot, are replaced there, too.
    return value if value.isascii() else utf8(value).decode()


def _samples(value: Any) -> bytes:
    if type(value) is not str:
        raise _Unfit("is not a text in base64")
    try:
        data = b64decode(value, validate=True)
    except ValueError:
        raise _Unfit("is not a text in base64") from None
    if len(data) % 2:
        raise _Unfit("ends with half a sample")
    return data


def _items(read: Read, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise _Unfit("is not a list")
    found = []
    try:
        for item in value:
            found.append(read(item))
    except _Unfit as unfit:
        unfit.path.insert(0, f"[{len(found)}]")
        raise
    return tuple(found)


def _shown(name: str) -> str:
    return printable_line(name if len(name) <= SHOWN_CHARS else f"{name[:SHOWN_CHARS]}...")


# Writing.


def _named(value: Value, form: _Form = "named") -> dict[str, Any]:
    return {TYPE: type(value).__name__, **_object(value, form)}


def _object(value: Value, form: _Form = "named") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, default, write in _writers(type(value), form):
        item = getattr(value, name)
        if item is None:
            if form == "full":
                found[name] = None
        elif form != "brief" or item != default:
            found[name] = item if write is None else write(item)
    return found


@cache
def _writers(kind: type[Value], form: _Form) -> tuple[tuple[str, Any, Write | None], ...]:
    """Who writes each field; None for what is written as it is."""
    chosen = FIELDS.get(kind, {}) if form == "named" else {}
    return tuple(
        (field.name, field.default, _writer(field, chosen.get(field.name), form)) for field in shape_of(kind).fields
    )


def _writer(field: Field, enumeration: str | None, form: _Form) -> Write | None:
    if enumeration is not None:
        return partial(_name_of, NAMES[enumeration])
    match field.kind:
        case "samples":
            return _base64
        case "strings":
            return list
        case "table":
            return partial(_object, form=form)
        case "tables":
            return partial(_objects, form=form)
        case "union":
            return partial(_named, form=form)
        case _:
            return None


def _name_of(names: tuple[str, ...], number: int) -> str | int:
    """A newer peer may have numbers that have no name here."""
    return names[number] if 0 <= number < len(names) else number


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _objects(values: tuple[Value, ...], form: _Form) -> list[dict[str, Any]]:
    return [_object(value, form) for value in values]
