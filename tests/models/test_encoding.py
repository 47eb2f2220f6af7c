from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.core.faults import ConfigError
from trunkline.models.encoding import Compat, identifier, sanitized, to_bytes, tool
from trunkline.models.model import ToolSpec


def test_half_characters_do_not_reach_a_provider_and_whole_ones_do() -> None:
    assert to_bytes({"a": "\ud800x"}) == '{"a":"\ufffdx"}'.encode()
    assert to_bytes("\ud83d\ude00") == '"😀"'.encode()
    assert to_bytes("é😀") == '"é😀"'.encode()


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert json.loads(to_bytes({"a": float("nan")})) == {"a": None}


def test_names_are_written_in_letters_that_all_providers_allow() -> None:
    assert identifier("functions.Read:0", "x") == "functions_Read_0"
    assert identifier("", "call") == "call"


SPEC = ToolSpec("Read", "reads", {"type": "object"})


def test_a_tool_is_described_in_either_shape() -> None:
    assert tool(SPEC, "anthropic_input_schema", sanitize=False) == {
        "name": "Read", "description": "reads", "input_schema": {"type": "object"},
    }  # fmt: skip
    function = {"name": "Read", "description": "reads", "parameters": {"type": "object"}}
    assert tool(SPEC, "openai_function", sanitize=False) == {"type": "function", "function": function}


def test_a_sanitized_schema_has_no_keywords_that_strict_services_refuse_and_all_of_its_properties() -> None:
    schema = {
        "$schema": "x",
        "title": "T",
        "type": "object",
        "additionalProperties": False,
        "properties": {"title": {"type": "string", "default": "d"}, "all": {"type": "array", "items": {"title": "x"}}},
        "anyOf": [{"title": "y", "type": "null"}],
    }
    assert sanitized(schema) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "all": {"type": "array", "items": {}}},
        "anyOf": [{"type": "null"}],
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("emit_tools", "yes"),
        ("max_tool_count", "many"),
        ("max_tool_count", 0),
        ("max_tool_count", True),
        ("api_path", 5),
        ("strip_patterns", "x"),
        ("strip_patterns", [1]),
        ("tool_wire_shape", "round"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(key: str, value: Any) -> None:
    profile = Compat({key: value})
    with pytest.raises(ConfigError, match=f"`compat.{key}` must be"):
        _read_all(profile)


def _read_all(profile: Compat) -> None:
    profile.flag("emit_tools", True)
    profile.number("max_tool_count")
    profile.text("api_path")
    profile.texts("strip_patterns")
    profile.shape("openai_function")
