"""Values that fit a schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from trunkline.models.mock_values import MAX_ITEMS, fitting, fitting_arguments


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


@pytest.mark.parametrize("schema", [None, [], "x", {"type": 5}, {"$ref": "#/no/where"}, {"type": []}])
def test_what_is_no_schema_gives_something(schema: Any) -> None:
    fitting(schema, "x")
    assert fitting_arguments(schema, "x") == {}
