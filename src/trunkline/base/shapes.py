"""Values from parsed JSON, and back; and the JSON Schema of a value. One set of rules for every wire and file.

The field types understood are those a wire needs: `str`, `int`, `float`, `bool`, `bytes` (base64), `Any`, `Literal`,
`X | None`, `tuple[X, ...]`, `Mapping[str, X]` and other values.

A `CamelCased` value writes its members as JavaScript does. A `Tagged` one is a family: a member tells which of its
children the object is.

- Members that a value does not declare are ignored: a newer peer may send them.
- `null` for a field that has a default counts as absent.
- A field whose default is `None` is left out when it is `None`; one without a default is always written.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from trunkline.base.values import Value


class CamelCased(Value):
    """A value whose members are written in camel case: `session_id` is `sessionId`. A field `meta` is `_meta`."""


class Tagged(CamelCased):
    """A family of values, told apart by a member. Each child of the family names its own `tag`."""

    tag_member: ClassVar[str] = "type"
    tag: ClassVar[str | None] = None
    """What the member says. None: it says nothing, because this is the family, or the child without that member."""
    otherwise: ClassVar[type[Tagged] | None] = None
    """The child that an object is which says nothing known. None: that is an error. One with a single field `raw` gets
    the whole object in it."""


V = TypeVar("V", bound=Value)
Check = Callable[[Any], Any]


class ShapeError(ValueError):
    """The data does not have the shape that was asked for. `path` names the place, such as `tool.args`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"`{path}` {problem}" if path else problem)
        self.path = path
        self.problem = problem


def decode(kind: type[V], data: Any) -> V:
    """Build a `kind` from a JSON object.

    Raises:
        ShapeError: a required field is missing, or one has the wrong type.
    """
    if not isinstance(data, dict):
        raise ShapeError("", f"must be an object, not {_name_of(data)}")
    if issubclass(kind, Tagged) and (children := _children(kind)):
        return cast("V", _decode_child(kind, children, data))
    found = {}
    for field, name, check, required in _plan(kind):
        value = data.get(name)
        if value is None and not required:
            continue
        if value is None and name not in data:
            raise ShapeError(name, "is missing")
        try:
            found[field] = check(value)
        except ShapeError as error:
            raise ShapeError(f"{name}.{error.path}" if error.path else name, error.problem) from None
    return kind(**found)


def _decode_child(family: type[Tagged], children: Mapping[str, type[Tagged]], data: dict[str, Any]) -> Tagged:
    said = data.get(family.tag_member)
    child = children.get(said) if isinstance(said, str) else None
    if child is not None:
        return decode(child, data)
    if family.otherwise is None:
        try:
            _one_of(tuple(children), said)
        except ShapeError as error:
            problem = error.problem if family.tag_member in data else "is missing"
            raise ShapeError(family.tag_member, problem) from None
        raise AssertionError
    if family.otherwise.__fields__ == ("raw",):
        return cast("Any", family.otherwise)(raw=data)  # type: ignore[no-any-return]  # a child like the others
    return decode(family.otherwise, data)


def encode(value: Value) -> dict[str, Any]:
    """The JSON object of a value: its fields in order, nested values and tuples included."""
    tag, fields = _form(type(value))
    members = dict(tag)
    for field, name, may_lack in fields:
        member = getattr(value, field)
        if member is not None or not may_lack:
            members[name] = _plain(member)
    return members


def schema(kind: type[Value]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a value, without a `$schema` member."""
    hints = _hints(kind)
    names = _names(kind)
    required = [name for field, name in names if field not in kind.__defaults__]
    found: dict[str, Any] = {"type": "object"}
    if kind.__doc__:
        found["description"] = kind.__doc__.split("\n\n")[0].replace("\n", " ").strip()
    found["properties"] = {name: _schema_of(hints[field]) for field, name in names}
    if required:
        found["required"] = required
    return found


def _plain(member: Any) -> Any:
    if isinstance(member, Value):
        return encode(member)
    if isinstance(member, tuple | list):
        return [_plain(item) for item in member]
    if isinstance(member, bytes):
        from base64 import b64encode

        return b64encode(member).decode("ascii")
    return member


@cache
def _hints(kind: type[Value]) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _plan(kind: type[Value]) -> tuple[tuple[str, str, Check, bool], ...]:
    hints = _hints(kind)
    return tuple((field, name, _check_of(hints[field]), field not in kind.__defaults__) for field, name in _names(kind))


@cache
def _form(kind: type[Value]) -> tuple[dict[str, Any], tuple[tuple[str, str, bool], ...]]:
    """What a value of that kind says besides its fields; each field, its member, and whether `None` is left out."""
    tag = {kind.tag_member: kind.tag} if issubclass(kind, Tagged) and kind.tag is not None else {}
    lacking = {field for field, default in kind.__defaults__.items() if default is None}
    return tag, tuple((field, name, field in lacking) for field, name in _names(kind))


@cache
def _names(kind: type[Value]) -> tuple[tuple[str, str], ...]:
    """Each field, and the member that it is."""
    if not issubclass(kind, CamelCased):
        return tuple((field, field) for field in kind.__fields__)
    return tuple((field, "_meta" if field == "meta" else _camel(field)) for field in kind.__fields__)


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def _children(family: type[Tagged]) -> dict[str, type[Tagged]]:
    """The children by their tags; none of a child itself."""
    return {child.tag: child for child in family.__subclasses__() if child.tag is not None}


def _check_of(hint: Any) -> Check:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if hint is bytes:
        return _bytes
    if isinstance(hint, type) and issubclass(hint, Value):
        return lambda value: decode(hint, value)
    if origin is Literal:
        return lambda value: _one_of(arguments, value)
    if origin is types.UnionType or origin is Union:
        inner = [_check_of(option) for option in arguments if option is not types.NoneType]
        if len(inner) != 1:
            raise TypeError(f"only `X | None` unions are understood, not {hint}")
        return lambda value: None if value is None else inner[0](value)
    if origin is tuple:
        item = _check_of(arguments[0])
        return lambda value: tuple(_each(item, value))
    if origin is not None and issubclass(origin, Mapping):
        member = _check_of(arguments[1])
        return lambda value: _members(member, value)
    if hint is float:
        return _float
    name = {str: "a string", int: "an integer", bool: "true or false"}[hint]
    return lambda value: _instance(hint, name, value)


def _instance(kind: type | tuple[type, ...], name: str, value: Any) -> Any:
    # `bool` is an `int` to Python, but never to a peer.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ShapeError("", f"must be {name}, not {_name_of(value)}")
    return value


def _float(value: Any) -> float:
    try:
        return float(_instance((int, float), "a number", value))
    except OverflowError:
        raise ShapeError("", "is too large a number") from None


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return value
    shown = ", ".join(f'"{choice}"' for choice in choices)
    raise ShapeError("", f"must be one of {shown}, not {_shown(value)}")


def _each(item: Check, value: Any) -> list[Any]:
    _instance(list, "a list", value)
    found = []
    for index, member in enumerate(value):
        try:
            found.append(item(member))
        except ShapeError as error:
            raise ShapeError(f"{index}.{error.path}" if error.path else str(index), error.problem) from None
    return found


def _members(check: Check, value: Any) -> dict[str, Any]:
    _instance(dict, "an object", value)
    found = {}
    for key, member in value.items():
        try:
            found[key] = check(member)
        except ShapeError as error:
            shown = str(key)[:_SHOWN_CHARS]
            raise ShapeError(f"{shown}.{error.path}" if error.path else shown, error.problem) from None
    return found


def _bytes(value: Any) -> bytes:
    from base64 import b64decode

    text = _instance(str, "base64 text", value)
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ShapeError("", "must be base64 text") from None


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


# Long enough to recognise what was sent, short enough for an error line.
_SHOWN_CHARS = 40


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:_SHOWN_CHARS]}"'
    return _name_of(value)


def _schema_of(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint is bytes:
        return {"type": "string", "contentEncoding": "base64"}
    if isinstance(hint, type) and issubclass(hint, Value):
        return schema(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is types.UnionType or origin is Union:
        (inner,) = (option for option in arguments if option is not types.NoneType)
        return {"anyOf": [_schema_of(inner), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[cast("type", hint)]}
