"""Grammars: what they allow is checked by the engine that obeys them, in `test_local`; here is how they are built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from trunkline.models import grammar
from trunkline.models.model import ToolSpec

RULE = re.compile(r"^([a-zA-Z][a-zA-Z0-9-]*) ::= (.*)$")
#: What stands in a grammar beside names of rules: literals, classes of characters, counts and signs.
NOT_A_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d*,?\d*\}|[|()*?+]')


def rules(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        match = RULE.match(line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = match[2]
    return found


def check(text: str) -> dict[str, str]:
    """Every rule that is used exists, and none goes round in a circle without writing anything."""
    found = rules(text)
    used = {name: NOT_A_NAME.sub(" ", body).split() for name, body in found.items()}
    assert {name for names in used.values() for name in names} <= set(found)
    assert "root" in found
    for name in found:
        assert name not in leftmost(name, found)
    return found


def leftmost(name: str, found: Mapping[str, str]) -> set[str]:
    """The rules that a rule may begin with."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        for choice in re.split(r' \| (?![^"]*"[^"]*$)', found[todo.pop()]):
            first = choice.split(" ", 1)[0].strip("(?)*")
            if first in found and first not in seen:
                seen.add(first)
                todo.append(first)
    return seen


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


READ = ToolSpec("Read", "Read a file.", object_of(file_path={"type": "string"}))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        None,
        True,
        [],
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "required": ["x"]},
        {"type": "array"},
        {"type": "array", "items": {"type": "array", "items": {}}, "minItems": 2, "maxItems": 2},
        {"type": "array", "maxItems": 0, "items": {}},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        {"type": ["string", "null"], "maxLength": 3},
        {"type": "strange"},
        {"type": 3},
        {"enum": ["a", 'b"\\c', 1, None, {"x": [1]}, "\ud800", "\n"]},
        {"enum": []},
        {"const": "x"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"allOf": [{"type": "string"}]},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
        {"$ref": "https://elsewhere.example/schema"},
        {"$ref": "#/nowhere/0"},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"$ref": "#/$defs/n", "$defs": {"n": object_of(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]})}},
        object_of(**{'a"b\\c': {"type": "string"}, "\u00e9\ud800\n": {}}),
        {"type": "string", "minLength": 10**9, "maxLength": -1},
        {"type": "string", "minLength": "3", "maxLength": 2.5},
        {"type": "integer", "minimum": "x"},
        {"type": "object", "properties": 3, "required": 4},
        {"type": "object", "properties": {"a": 3}, "required": [None, {}]},
    ],
    ids=repr,
)
def test_any_schema_becomes_a_sound_grammar(schema: Any) -> None:
    check(grammar.value(schema))
    check(grammar.answer([ToolSpec("X", "", schema if isinstance(schema, Mapping) else {})]))


def test_a_schema_of_any_depth_becomes_a_grammar_of_bounded_size() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    assert len(check(grammar.value(schema))) < 200


def test_members_come_in_their_order_and_only_the_needed_ones_must() -> None:
    found = check(
        grammar.value({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["b"]})
    )

    def sentences(body: str) -> set[str]:
        """All that a rule without repetition can write."""
        texts = set()
        for choice in body.split(" | "):
            partial = {""}
            for word in (
                choice.split(" ") if " " not in choice.strip('"') else re.findall(r'"(?:[^"\\]|\\.)*"|\S+', choice)
            ):
                ends = {word[1:-1].replace('\\"', '"')} if word.startswith('"') else sentences(found[word])
                partial = {begin + end for begin in partial for end in ends}
            texts |= partial
        return texts

    assert sentences(found["root"]) == {
        '{"b": 2}',
        '{"a": 1, "b": 2}',
        '{"b": 2, "c": 3}',
        '{"a": 1, "b": 2, "c": 3}',
    }


def test_an_answer_is_free_text_until_the_mark() -> None:
    found = check(grammar.answer([READ]))
    assert found["text0"] == '"" | "<" text1 | [^<] text0'
    assert found["text1"] == '"" | "<" text1 | "t" text2 | [^<t] text0'
    assert found["text10"] == '"" | "<" text1 | ">" marked | [^<>] text0'


def test_an_answer_that_must_be_a_call_begins_with_the_mark() -> None:
    found = check(grammar.answer([READ], must_call=True))
    assert found["root"] == r'"<tool_call>\n" call "\n</tool_call>"'
    assert "text0" not in found


def test_the_ways_in_which_a_call_may_begin_without_a_mark_are_told() -> None:
    assert grammar.unmarked_beginnings([READ]) == [
        '{"name": "Read", "arguments": ',
        '```json\n{"name": "Read", "arguments": ',
        '```json\n{\n  "name": "Read",\n  "arguments": ',
    ]


def test_json_is_written_with_spaces_and_lone_surrogates_are_escaped() -> None:
    assert grammar.to_json({"a": [1, "é"]}) == '{"a": [1, "é"]}'
    assert grammar.to_json("\ud800") == '"\\ud800"'
