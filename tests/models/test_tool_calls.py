"""Calls as models write them, well or badly."""

from __future__ import annotations

import json

import pytest

from trunkline.models.tool_calls import (
    FORMATS,
    MAX_ARGUMENTS,
    MAX_CALLS,
    Call,
    described,
    grammar,
    read_calls,
    write_calls,
)
from trunkline.wires.tryll.messages import ToolDefinition, ToolParamDefinition

CALLS = [Call("open", {"door": 'left {or} "right"', "n": 2, "deep": {"a": [1]}}), Call("wait", {})]


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_written_is_read_back(form: str) -> None:
    assert read_calls(write_calls(CALLS, form), form) == CALLS
    assert read_calls("Sure! " + write_calls(CALLS[:1], form) + " Done.", form) == CALLS[:1]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", ["", "NO_TOOL", "I open the door.", "{", '{"a": 1}', "<tool_call>", "[TOOL_CALLS]["])
def test_what_is_no_call_is_none(form: str, text: str) -> None:
    assert read_calls(text, form) == []


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("chatml", '<tool_call>{"name": "open", "arguments": {"a": 1}}', [Call("open", {"a": 1})]),
        ("chatml", '```json\n{"name": "open", "parameters": {"a": 1}}\n```', [Call("open", {"a": 1})]),
        ("chatml", '{"name": "open", "arguments": "{\\"a\\": 1}"}', [Call("open", {"a": 1})]),
        ("chatml", '{"call": {"name": "open"}}', [Call("open", {})]),
        ("llama3", '{"name": "open", "parameters": 7}', [Call("open", {})]),
        ("generic", '{"tool": "open", "args": {}}\n' * 3, [Call("open", {})]),
        ("generic", '{"name": "open", "args": {}}', []),
        ("mistral", '[TOOL_CALLS][{"name": "a"}, {"name": "b"}]', [Call("a", {}), Call("b", {})]),
    ],
)
def test_careless_models_are_understood(form: str, text: str, expected: list[Call]) -> None:
    assert read_calls(text, form) == expected


def test_hostile_answers_are_read_in_bounds() -> None:
    assert read_calls('{"a":' * 20_000, "chatml") == []
    assert read_calls("[" * 100_000 + "{", "llama3") == []
    many = "".join(f'{{"name": "t{number}"}}' for number in range(200))
    assert len(read_calls(many, "chatml")) == MAX_CALLS


def test_arguments_are_a_flat_object_of_texts() -> None:
    call = Call("x", {"s": "é", "b": True, "n": 1.5, "z": None, "o": {"a": [1]}})
    assert json.loads(call.arguments_json) == {"s": "é", "b": "true", "n": "1.5", "z": "null", "o": '{"a":[1]}'}


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"s": "x" * 500_000, "n": 1, "o": {"a": "y" * 500_000}}, {"s": "x" * 3999 + "…", "n": "1", "o": "null"}),
        ({f"{number}": "\x01" * 4000 for number in range(20)}, {f"{n}": "\x01" * 399 + "…" for n in range(20)}),
        ({"k" * 500_000: "x"}, {}),
    ],
    ids=["long texts", "many escapes", "a long name"],
)
def test_arguments_that_are_too_long_for_an_event_are_still_json(
    arguments: dict[str, object], kept: dict[str, str]
) -> None:
    written = Call("x", arguments).arguments_json
    assert len(written) <= MAX_ARGUMENTS
    assert json.loads(written) == kept


@pytest.mark.parametrize("form", FORMATS)
def test_the_model_is_told_of_its_tools_and_held_to_them(form: str) -> None:
    tools = (
        ToolDefinition(
            "open", "Opens.", (ToolParamDefinition("door", "string", "which"), ToolParamDefinition("n", "integer"))
        ),
    )
    told = described(tools, form, may_answer=False)
    assert "- open: Opens." in told
    assert "door (string): which" in told
    assert "NO_TOOL" in told
    assert "NO_TOOL" not in described(tools, form, may_answer=True)
    rules = grammar(tools, form, may_answer=False)
    assert '\\"open\\"' in rules
    assert 'text ", " "\\"n\\": " integer' in rules
    assert '| "NO_TOOL"' in rules
    # One call and the end, unless the node lets it write several.
    (one,) = [line for line in rules.splitlines() if line.startswith("root")]
    assert "{" not in one.replace('"{', "")
    assert "{0,2}" in grammar(tools, form, may_answer=False, most=3)
