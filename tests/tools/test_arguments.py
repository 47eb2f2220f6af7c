"""A model's arguments, put right where no doubt is possible."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.tools.arguments import BadArguments, checked, renamed

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "map": {"type": "object"},
        "either": {"type": ["integer", "string"]},
        "maybe": {"type": ["string", "null"]},
        "anything": {},
        "strange": {"type": "tuple"},
        "odd": True,
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"count": "5"}, {"count": 5}),
        ({"count": 5.0}, {"count": 5}),
        ({"count": "5.0"}, {"count": 5}),
        ({"count": " +5 "}, {"count": 5}),
        ({"ratio": "1.5"}, {"ratio": 1.5}),
        ({"ratio": "-2"}, {"ratio": -2}),
        ({"ratio": 3}, {"ratio": 3}),
        ({"flag": "true"}, {"flag": True}),
        ({"flag": "False"}, {"flag": False}),
        ({"either": "5"}, {"either": "5"}),
        ({"maybe": None}, {"maybe": None}),
        ({"count": None}, {}),
        ({"anything": None}, {"anything": None}),
        ({"anything": [1]}, {"anything": [1]}),
        ({"strange": 1, "odd": 2}, {"strange": 1, "odd": 2}),
        ({"list": [1], "map": {"a": 1}}, {"list": [1], "map": {"a": 1}}),
        ({"unknown": 1}, {}),
    ],
)
def test_what_is_meant_is_taken(given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert checked({"text": "x"} | given, SCHEMA) == {"text": "x"} | taken


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "Missing required parameter: text"),
        ({"text": None}, "Missing required parameter: text"),
        ({"text": ["x"]}, "Parameter `text` must be a string."),
        ({"text": True}, "Parameter `text` must be a string."),
        ({"text": 5}, "Parameter `text` must be a string."),
        ({"text": 5.5}, "Parameter `text` must be a string."),
        ({"text": "x", "count": "five"}, "Parameter `count` must be an integer."),
        ({"text": "x", "count": True}, "Parameter `count` must be an integer."),
        ({"text": "x", "count": 1.5}, "Parameter `count` must be an integer."),
        ({"text": "x", "count": "1_0"}, "Parameter `count` must be an integer."),
        ({"text": "x", "count": "9" * 5000}, "Parameter `count` must be an integer."),
        ({"text": "x", "count": 0}, "Parameter `count` must be at least 1."),
        ({"text": "x", "ratio": "nan"}, "Parameter `ratio` must be a number."),
        ({"text": "x", "flag": 1}, "Parameter `flag` must be a boolean."),
        ({"text": "x", "flag": "yes"}, "Parameter `flag` must be a boolean."),
        ({"text": "x", "list": "a,b"}, "Parameter `list` must be an array."),
        ({"text": "x", "map": []}, "Parameter `map` must be an object."),
        ({"text": "x", "either": []}, "Parameter `either` must be an integer or a string."),
    ],
)
def test_what_is_not_clear_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadArguments) as caught:
        checked(given, SCHEMA)
    assert str(caught.value) == problem


def test_a_schema_that_takes_everything_gets_everything() -> None:
    assert checked({"a": 1}, {}) == {"a": 1}
    assert checked({"a": 1}, {"properties": {"b": {}}, "additionalProperties": True}) == {"a": 1}
    assert checked({"a": 1}, {"properties": {"b": {}}}) == {}


@pytest.mark.parametrize(
    "schema", [{"properties": [], "required": "x"}, {"required": None}, {"required": 5}, {"properties": {"a": 1}}]
)
def test_a_schema_that_is_nonsense_does_no_harm(schema: dict[str, Any]) -> None:
    assert checked({"a": 1}, schema) == {"a": 1}


def test_other_names_stand_for_the_right_ones_only_where_those_are_missing() -> None:
    aliases = {"cmd": "command"}
    assert renamed({"cmd": "a", "x": 1}, aliases) == {"command": "a", "x": 1}
    assert renamed({"cmd": "a", "command": "b"}, aliases) == {"cmd": "a", "command": "b"}
