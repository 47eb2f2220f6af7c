"""Grammars (GBNF, as llama.cpp reads it) that let a model write nothing but text or a valid call of a tool.

    answer ::= text? | text? "<tool_call>" call "</tool_call>" | call | "```json" call "```"

The text is free, except that the mark begins a call wherever it is written, and the name of a tool where a call without
a mark would have it. A call is a JSON object with the tool's name and arguments that fit its schema. A model that
cannot follow a format follows it under such a grammar.

Of JSON Schema these are obeyed: `type` (a list of them, too), `properties`, `required`, `additionalProperties`,
`items`, `prefixItems`, `minItems`, `maxItems`, `enum`, `const`, `anyOf`, `oneOf`, `minLength`, `maxLength`, the
sign that `minimum` asks for, and `$ref` into the same schema, which may be recursive. Everything else, such as
`pattern` or `allOf` of several, is not: there the grammar allows more than the schema does. What is described in no way
that is known here is any JSON.

JSON is written with the spaces that models have seen most: one after each comma and colon, and none elsewhere. Numbers,
lists, free names of members and what refers to itself are bounded, so that a small model that repeats itself comes to
an end; only strings may be of any length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trunkline.models.model import ToolSpec

#: What stands around a call. Most models that were taught to call tools were taught these.
CALL_BEGIN = "<tool_call>"
CALL_END = "</tool_call>"

#: How a call is written: what comes before the tool's name, before the arguments, and after them. The first way is the
#: one between the marks; the others are those of models that forget the marks, at the beginning of an answer.
PLAIN = ('{"name": ', ', "arguments": ', "}")
UNMARKED = (
    PLAIN,
    ('```json\n{"name": ', ', "arguments": ', "}\n```"),
    ('```json\n{\n  "name": ', ',\n  "arguments": ', "\n}\n```"),
)

#: The longest list, where the schema says nothing less.
MAX_ITEMS = 64
#: The longest string that is counted. An engine spells a count out, so that larger ones are not worth it.
MAX_COUNTED = 256
#: The most members of an object, and the longest name of one, where the names are free.
MAX_MEMBERS = 16
MAX_KEY = 32
#: How deep any JSON may be nested.
MAX_DEPTH = 4
#: How deep a schema may be nested; what is deeper is any JSON.
MAX_SCHEMA_DEPTH = 32
#: How many references may lead to one place. A schema that refers to itself would have no end otherwise, and a small
#: model would not find one.
MAX_REFERENCES = 6

#: The rules that all others stand on.
_PRIMITIVES = {
    "char": r'[^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})',
    "string": r'"\"" char* "\""',
    "key": f'"\\"" char{{1,{MAX_KEY}}} "\\""',
    "natural": '"0" | [1-9] [0-9]{0,15}',
    "integer": '"-"? natural',
    "number": 'integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?',
    "positive": 'natural ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
}

_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")


def answer(tools: Sequence[ToolSpec], *, must_call: bool = False, schema: Any = None) -> str:
    """The grammar of an answer: free text, a call of one of these tools, or first the one and then the other.

    With `must_call` it is a call and nothing else; with a `schema`, a call or JSON that fits it.
    """
    rules = GrammarRules()
    arguments = [_Schema(rules, f"t{number}", tool.schema).arguments() for number, tool in enumerate(tools)]
    calls = dict(zip((tool.name for tool in tools), arguments, strict=True))
    rules.add("call", " | ".join(f'{_literal(_begin(name, PLAIN))} {inner} "}}"' for name, inner in calls.items()))
    end = _literal(f"\n{CALL_END}")
    if must_call or schema is not None:
        called = f"{_literal(f'{CALL_BEGIN}{chr(10)}')} call {end}"
        rules.add("root", called if must_call else f"{called} | {_Schema(rules, 'v', schema).rule()}")
        return rules.text()
    rules.add("marked", f'"\\n" call {end}')
    _add_text(rules, CALL_BEGIN, "marked")
    unmarked = {_begin(name, way): f"{inner} {_literal(way[2])}" for way in UNMARKED for name, inner in calls.items()}
    rules.add("root", _add_beginnings(rules, unmarked))
    return rules.text()


def unmarked_beginnings(tools: Sequence[ToolSpec]) -> list[str]:
    """What an answer begins with that is a call of one of these tools without a mark: all up to the arguments."""
    return [_begin(tool.name, way) for way in UNMARKED for tool in tools]


def _begin(name: str, way: tuple[str, str, str]) -> str:
    return f"{way[0]}{to_json(name)}{way[1]}"


def value(schema: Any) -> str:
    """The grammar of a JSON value that fits a schema."""
    rules = GrammarRules()
    rules.add("root", _Schema(rules, "v", schema).rule())
    return rules.text()


def _add_text(rules: GrammarRules, mark: str, then: str) -> None:
    """Add `text0`: text that ends anywhere, or goes on with another rule as soon as it holds the mark.

    One rule for each number of the mark's characters that were just written: the automaton of Knuth, Morris and Pratt.
    It relies on the mark's first character not coming again in it, so that only that one ever starts over.
    """
    for count, char in enumerate(mark):
        onward = f"text{count + 1}" if count + 1 < len(mark) else then
        rules.add(f"text{count}", _text_or(mark[0], {char: onward}))


def _text_or(mark_begin: str, steps: Mapping[str, str]) -> str:
    """Choices: the end, some characters with rules to go on with, or any other one and then text."""
    onward = {mark_begin: "text1", **steps}
    choices = ['""', *(f"{_literal(char)} {rule}" for char, rule in onward.items())]
    return " | ".join((*choices, f"[^{''.join(map(_in_class, onward))}] text0"))


def _add_beginnings(rules: GrammarRules, known: Mapping[str, str]) -> str:
    """Add a rule for an answer that goes on as told if it begins in one of some known ways, and is text otherwise.

    One rule for each beginning of a known way.
    """
    names: dict[str, str] = {}

    def name_of(beginning: str) -> str:
        return names.setdefault(beginning, f"begin{len(names)}")

    steps: dict[str, dict[str, str]] = {}
    for way, then in known.items():
        for end, char in enumerate(way):
            onward = name_of(way[: end + 1]) if end + 1 < len(way) else then
            steps.setdefault(way[:end], {})[char] = onward
    for beginning, onwards in steps.items():
        rules.add(name_of(beginning), _text_or(CALL_BEGIN[0], onwards))
    return name_of("")


class GrammarRules:
    """Rules by name, in the order in which they were needed."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def add(self, name: str, body: str) -> str:
        """Keep a rule; gives its name."""
        self._rules[name] = body
        return name

    def any_json(self, depth: int = MAX_DEPTH, kind: str = "any") -> str:
        """The name of a rule for any JSON (or any `object` or `array`) that is at most so deep."""
        name = f"{kind}{depth}"
        if name in self._rules:
            return name
        self.add(name, "")
        if kind == "any":
            nested = [self.any_json(depth, each) for each in ("object", "array")] if depth else []
            return self.add(name, " | ".join(["string | number | boolean | null", *nested]))
        inner = self.any_json(depth - 1)
        if kind == "array":
            return self.add(name, _list(inner, 0, MAX_ITEMS))
        return self.add(name, _object_of(inner))

    def text(self) -> str:
        """The grammar."""
        return "".join(f"{name} ::= {body}\n" for name, body in (_PRIMITIVES | self._rules).items())


class _Schema:
    """One schema on its way into rules whose names begin with a prefix of its own."""

    def __init__(self, rules: GrammarRules, prefix: str, schema: Any) -> None:
        self._rules = rules
        self._prefix = prefix
        self._schema = schema
        self._count = 0
        # Rules of what `$ref` points at, by pointer and by the number of references that led there.
        self._targets: dict[tuple[str, int], str] = {}

    def rule(self) -> str:
        """The name of the rule for the whole."""
        return self._rule(self._schema, 0, 0)

    def arguments(self) -> str:
        """The same, for a tool's arguments, which are an object whatever the schema says."""
        schema = self._schema if isinstance(self._schema, Mapping) else {}
        return self._rule({"type": "object", **schema}, 0, 0)

    def _new(self, body: str) -> str:
        self._count += 1
        return self._rules.add(f"{self._prefix}-{self._count}", body)

    def _rule(self, schema: Any, depth: int, level: int) -> str:
        """The name of a rule for a schema, so deep in the whole, to which so many references led."""
        if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
            return self._rules.any_json()
        if isinstance(pointer := schema.get("$ref"), str):
            return self._reference(pointer, depth, level)
        if "const" in schema:
            return self._new(_literal(to_json(schema["const"])))
        if isinstance(choices := schema.get("enum"), list) and choices:
            return self._new(" | ".join(_literal(to_json(choice)) for choice in choices))
        if options := _options(schema):
            possible = [option for option in options if not _leads_on(option, level)] or options
            return self._new(" | ".join(self._rule(option, depth + 1, level) for option in possible))
        kinds = _kinds(schema)
        if not kinds:
            return self._rules.any_json()
        return self._new(" | ".join(self._typed(kind, schema, depth + 1, level) for kind in kinds))

    def _reference(self, pointer: str, depth: int, level: int) -> str:
        if level == MAX_REFERENCES:
            return self._rules.any_json(depth=0)
        if (pointer, level) not in self._targets:
            target = _resolve(self._schema, pointer)
            self._targets[pointer, level] = self._rule(target, depth + 1, level + 1)
        return self._targets[pointer, level]

    def _typed(self, kind: str, schema: Mapping[str, Any], depth: int, level: int) -> str:
        if kind == "object":
            return self._object(schema, depth, level)
        if kind == "array":
            return self._array(schema, depth, level)
        if kind == "string":
            return _string(schema)
        if kind in ("integer", "number") and _is_never_negative(schema):
            return "natural" if kind == "integer" else "positive"
        return kind

    def _array(self, schema: Mapping[str, Any], depth: int, level: int) -> str:
        if isinstance(fixed := schema.get("prefixItems"), list) and fixed:
            return '"[" ' + ' ", " '.join(self._rule(item, depth, level) for item in fixed) + ' "]"'
        if "items" not in schema:
            return self._rules.any_json(kind="array")
        least, most = _bounds(schema, "minItems", "maxItems", MAX_ITEMS)
        if _leads_on(schema["items"], level):
            most = least
        return _list(self._rule(schema["items"], depth, level), least, MAX_ITEMS if most is None else most)

    def _object(self, schema: Mapping[str, Any], depth: int, level: int) -> str:
        properties = schema.get("properties")
        known = dict(properties) if isinstance(properties, Mapping) else {}
        required = schema.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        for name in needed:
            known.setdefault(name, None)
        if not known:
            return self._map(schema, depth, level)
        members = [
            (f"{_literal(f'{to_json(name)}: ')} {self._rule(inner, depth, level)}", name in needed)
            for name, inner in known.items()
            if name in needed or not _leads_on(inner, level)
        ]
        return f'"{{" {self._members(members)} "}}"'

    def _map(self, schema: Mapping[str, Any], depth: int, level: int) -> str:
        """An object whose members have no names of their own."""
        more = schema.get("additionalProperties", "properties" not in schema)
        if more is False:
            return '"{}"'
        if isinstance(more, Mapping):
            return _object_of(self._rule(more, depth, level))
        return self._rules.any_json(kind="object")

    def _members(self, members: Sequence[tuple[str, bool]]) -> str:
        """Members in order; those that are not needed may be left out.

        Two chains of rules, from the last member to the first: what may follow when nothing was written yet, and what
        may follow when a comma is due.
        """
        fresh = due = self._new('""')
        for member, is_needed in reversed(members):
            first, next_one = f"{member} {due}", f'", " {member} {due}'
            fresh = self._new(first if is_needed else f"{first} | {fresh}")
            due = self._new(next_one if is_needed else f"{next_one} | {due}")
        return fresh


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names or, where it names none, those that its other words are about."""
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    known = [kind for kind in kinds if kind in _TYPES]
    if not known and "properties" in schema:
        return ["object"]
    if not known and ("items" in schema or "prefixItems" in schema):
        return ["array"]
    return known if len(known) == len(kinds) else []


def _bounds(schema: Mapping[str, Any], least: str, most: str, limit: int) -> tuple[int, int | None]:
    """Two counts of a schema; None for a largest one that is absent or beyond `limit`."""
    low, high = schema.get(least, 0), schema.get(most)
    low = min(low, limit) if isinstance(low, int) and low > 0 else 0
    return low, max(low, high) if isinstance(high, int) and 0 <= high <= limit else None


def _leads_on(schema: Any, level: int) -> bool:
    """Whether a schema refers to more than may be referred to from here."""
    return level == MAX_REFERENCES and isinstance(schema, Mapping) and "$ref" in schema


def _options(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas that a value may fit one of. Beside properties they only say which of those go together."""
    if "properties" in schema:
        return []
    for keyword in ("anyOf", "oneOf", "allOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and options and (keyword != "allOf" or len(options) == 1):
            return options
    return []


def _string(schema: Mapping[str, Any]) -> str:
    least, most = _bounds(schema, "minLength", "maxLength", MAX_COUNTED)
    if not least and most is None:
        return "string"
    return f'"\\"" char{{{least},{"" if most is None else most}}} "\\""'


def _is_never_negative(schema: Mapping[str, Any]) -> bool:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    return isinstance(least, int | float) and least >= 0


def _list(item: str, least: int, most: int) -> str:
    """A JSON list of that many items."""
    if most == 0:
        return '"[]"'
    items = f'{item} (", " {item}){{{max(0, least - 1)},{most - 1}}}'
    return f'"[" {items} "]"' if least else f'"[" ({items})? "]"'


def _object_of(inner: str) -> str:
    """A JSON object of any keys with values of one kind."""
    member = f'key ": " {inner}'
    return f'"{{" ({member} (", " {member}){{0,{MAX_MEMBERS - 1}}})? "}}"'


def _resolve(schema: Any, pointer: str) -> Any:
    """What a pointer such as `#/$defs/Point` points at; None, which stands for any JSON, when it points nowhere."""
    if not pointer.startswith("#"):
        return None
    for step in _steps(pointer):
        if isinstance(schema, Mapping):
            schema = schema.get(step)
        elif isinstance(schema, list) and step.isdecimal() and int(step) < len(schema):
            schema = schema[int(step)]
        else:
            return None
    return schema


def _steps(pointer: str) -> Iterable[str]:
    for step in pointer[1:].split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


def to_json(value: Any) -> str:
    """JSON with the spaces that the grammars demand. Lone surrogates, which UTF-8 cannot carry, are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _in_class(char: str) -> str:
    """A character as it stands in a grammar's class of characters."""
    return _literal(char)[1:-1] if char in '"\\\n' else f"\\{char}" if char in "]^-" else char


def _literal(text: str) -> str:
    """A text as it stands in a grammar."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
