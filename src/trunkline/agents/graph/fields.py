"""The fields of an embedded storage's records: their types, and the values of each as a column.

    {"name": "level", "type": "int", "default": 1, "filterable": true}

A field has a default or is `optional`, never both and never neither. What records hold beside the fields is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.agents.graph.errors import GraphTextError
from trunkline.base.values import Value

#: What a field can be.
TYPES = ("int", "float", "string", "bool", "set<string>")
#: Fields of one storage.
MAX_FIELDS = 64

_INT64 = range(-(1 << 63), 1 << 63)
_KEYS = frozenset(("name", "type", "default", "optional", "filterable"))


class FieldError(GraphTextError):
    """The fields, or a record, are not what they should be."""


class StorageField(Value):
    """One field. `default` is None for an optional one."""

    name: str
    type: str
    default: Any
    filterable: bool = True


class Column(Value):
    """The values of one field, in the order of the records; None where an optional one is missing."""

    field: StorageField
    values: Sequence[Any]


def read_fields(given: Any) -> dict[str, StorageField]:
    """The fields that a description lists.

    Raises:
        FieldError: they are not fields.
    """
    if given is None:
        return {}
    if not isinstance(given, list) or len(given) > MAX_FIELDS:
        raise FieldError(f"`fields` must be a list of at most {MAX_FIELDS}")
    fields: dict[str, StorageField] = {}
    for number, each in enumerate(given):
        field = _field(each, f"fields[{number}]")
        if field.name in fields:
            raise FieldError(f"the field `{field.name}` is there twice")
        fields[field.name] = field
    return fields


def _field(given: Any, place: str) -> StorageField:
    if not isinstance(given, dict):
        raise FieldError(f"`{place}` must be an object")
    if unknown := given.keys() - _KEYS:
        raise FieldError(f"`{place}` has no member `{min(unknown)}`")
    name, kind = given.get("name"), given.get("type")
    optional, filterable = given.get("optional", False), given.get("filterable", True)
    if not isinstance(name, str) or not name:
        raise FieldError(f"`{place}` needs a `name`")
    if kind not in TYPES:
        raise FieldError(f"the `type` of the field `{name}` must be one of {', '.join(TYPES)}")
    if not isinstance(optional, bool) or not isinstance(filterable, bool):
        raise FieldError(f"`optional` and `filterable` of the field `{name}` are true or false")
    if optional == ("default" in given):
        raise FieldError(f"the field `{name}` needs a `default`, or `optional: true`, and not both")
    default = None if optional else typed(given["default"], kind)
    if not optional and default is None:
        raise FieldError(f"the `default` of the field `{name}` is not of the type `{kind}`")
    return StorageField(name, kind, default, filterable)


def columns(fields: Mapping[str, StorageField], metadata: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """What all records hold of each field.

    Raises:
        FieldError: one holds something of another type. The text says which.
    """
    return {
        name: Column(field, [_value(field, each, at) for at, each in enumerate(metadata)])
        for name, field in fields.items()
    }


def _value(field: StorageField, metadata: Mapping[str, Any], number: int) -> Any:
    given = metadata.get(field.name)
    if given is None:
        return field.default
    value = typed(given, field.type)
    if value is None:
        raise FieldError(f"`{field.name}` of record {number} is not of the type `{field.type}`")
    return value


def typed(value: Any, kind: str) -> Any:
    """The value as one of that type; None if it is of another."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "set<string>":
        whole = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return frozenset(value) if whole else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "float":
        return float(value) if not isinstance(value, int) or value in _INT64 else None
    return value if isinstance(value, int) and value in _INT64 else None
