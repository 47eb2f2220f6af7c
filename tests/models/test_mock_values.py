"""Values that fit a schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from trunkline.models.mock_values import MAX_ITEMS, MAX_LETTERS, MAX_VALUES, fitting, fitting_arguments


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 2},
        {"type": "integer", "minimum": 7},
        {"type": ["null", "string"]},
        {"enum": ["a", "b"]},
        {"const": 5},
        {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        {"type": "array", "items": {"type": "number"}, "minItems": 3},
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"], "$defs": {"x": {"type": "integer"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
    ],
)
def test_the_value_fits(schema: dict[str, Any]) -> None:
    jsonschema.validate(fitting(schema, "some words"), schema)


def test_a_schema_that_refers_to_itself_or_asks_for_too_much_has_an_end() -> None:
    fitting({"$ref": "#"}, "x")
    fitting({"type": "object", "properties": {"a": {"$ref": "#"}}}, "x")
    assert len(fitting({"type": "array", "items": {"type": "string"}, "minItems": 10**9}, "x")) == MAX_ITEMS


def values(made: Any) -> int:
    """How many there are in it."""
    return 1 + sum(map(values, made.values() if isinstance(made, dict) else made if isinstance(made, list) else ()))


def doubling(members: int, levels: int) -> dict[str, Any]:
    """A schema in which each level has so many members, and each of them is the level below."""
    below = {
        f"l{level}": {"properties": {f"m{member}": {"$ref": f"#/$defs/l{level + 1}"} for member in range(members)}}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": below}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(12, 6),
        {"type": "object", "properties": {str(number): {"$ref": "#"} for number in range(40)}},
        {"$defs": {"x": {"type": "array", "items": {"type": "array", "minItems": 64, "items": {"$ref": "#"}}}}}
        | {"type": "array", "minItems": 64, "items": {"$ref": "#/$defs/x"}},
    ],
)
def test_a_short_schema_makes_no_long_answer(schema: dict[str, Any]) -> None:
    assert values(fitting(schema, "x")) <= MAX_VALUES + MAX_ITEMS * 16


@pytest.mark.parametrize("long", ["text", "const", "enum", "name"])
def test_what_is_long_is_not_repeated_for_ever(long: str) -> None:
    word = "x" * 8000
    kinds = {
        "text": {"type": "string"},
        "const": {"const": word},
        "enum": {"enum": [word]},
        "name": {"properties": {word: {}}},
    }
    schema = {"$defs": {"w": kinds[long]}, "properties": {str(at): {"$ref": "#/$defs/w"} for at in range(5000)}}
    assert len(json.dumps(fitting(schema, word))) < 2 * MAX_LETTERS


def test_a_reference_that_is_open_is_not_followed_again() -> None:
    made = fitting({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}}, "x")
    assert made == {"a": [None]}
    twice = {"$defs": {"x": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}}
    assert fitting(twice, "x") == {"a": 1, "b": 1}


@pytest.mark.parametrize("schema", [None, [], "x", {"type": 5}, {"$ref": "#/no/where"}, {"type": []}])
def test_what_is_no_schema_gives_something(schema: Any) -> None:
    fitting(schema, "x")
    assert fitting_arguments(schema, "x") == {}
