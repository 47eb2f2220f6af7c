"""A model's arguments checked against a tool's schema, and put right where no doubt is possible.

Models write `"5"` for 5, `"true"` for true and `null` for what they leave out; refusing that costs a whole round. A
number is never taken for a text: as a path it would be another one than was written. Only the outermost members are
looked at: what is inside of them is the tool's own business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ToolInputError(ValueError):
    """A tool cannot do what it was asked for; the text says why and what to do, and is for the model."""


class BadArguments(ToolInputError):
    """The arguments do not do; the text is for the model."""


def renamed(args: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """The arguments under their right names, where another one was used for a name that is not there."""
    return {aliases[key] if key in aliases and aliases[key] not in args else key: args[key] for key in args}


def checked(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the schema knows, each of a type that it names. Others are left out if it lists its own.

    Raises:
        BadArguments: one is missing or of another type.
    """
    properties = _mapping(schema.get("properties"))
    required = schema.get("required")
    found: dict[str, Any] = {}
    for name, value in args.items():
        if name not in properties:
            # A schema without a list, or one that says so, takes everything.
            if not properties or schema.get("additionalProperties"):
                found[name] = value
            continue
        about = _mapping(properties[name])
        if value is None and not _takes_null(about):
            continue
        found[name] = _fitting(name, value, about)
    for name in required if isinstance(required, list | tuple) else ():
        if name not in found:
            raise BadArguments(f"Missing required parameter: {name}")
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _types(about: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that are allowed; none if the schema does not say it in the plain way."""
    named = about.get("type")
    if isinstance(named, str):
        return (named,)
    return tuple(named) if isinstance(named, list) else ()


def _takes_null(about: Mapping[str, Any]) -> bool:
    types = _types(about)
    return "null" in types or not types


def _fitting(name: str, value: Any, about: Mapping[str, Any]) -> Any:
    types = _types(about)
    if types and not any(_is(value, kind) for kind in types):
        value = _converted(value, types)
        if value is None:
            raise BadArguments(f"Parameter `{name}` must be {' or '.join(map(_article, types))}.")
    least = about.get("minimum")
    if isinstance(least, int) and isinstance(value, int | float) and value < least:
        raise BadArguments(f"Parameter `{name}` must be at least {least}.")
    return value


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case "null":
            return value is None
        case _:
            # A type that nobody knows: whoever wrote it will look.
            return True


def _converted(value: Any, types: tuple[str, ...]) -> Any:
    """The same in one of the types; `None` if that would be a guess."""
    for kind in types:
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind in ("integer", "number") and isinstance(value, str):
            number = _number(value.strip(), kind)
            if number is not None:
                return number
        if kind == "boolean" and isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return value.strip().lower() == "true"
    return None


#: Longer ones are no counts, and Python refuses to read very long ones.
_LONGEST_NUMBER = 20


def _number(text: str, kind: str) -> int | float | None:
    # Digits only: Python would take underscores, spaces and infinities as well.
    if len(text) > _LONGEST_NUMBER or not text.isascii():
        return None
    sign, digits = (text[:1], text[1:]) if text[:1] in ("-", "+") else ("", text)
    if digits.isdigit():
        return int(sign + digits)
    whole, point, part = digits.partition(".")
    if not point or not (whole + part).isdigit():
        return None
    value = float(sign + digits)
    if kind == "number":
        return value
    return int(value) if value.is_integer() else None


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
