"""Tool calls as models write them: four formats, told to the model, written, held to by a grammar, and read back.

    chatml   <tool_call>{"name": "open", "arguments": {"door": "left"}}</tool_call>, one after the other
    llama3   {"name": "open", "parameters": {"door": "left"}}, one per line
    mistral  [TOOL_CALLS][{"name": "open", "arguments": {"door": "left"}}]
    generic  {"tool": "open", "args": {"door": "left"}}, one per line

Reading is liberal: what has no marks around it, or other words for the arguments, is still a call. A text that is none
is no error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trunkline.base.values import Value
from trunkline.core.graph.description import ToolDefinition, ToolParamDefinition
from trunkline.models.grammar import to_json
from trunkline.models.grammar import value as value_grammar

#: When neither the node nor the model's catalog entry says which.
DEFAULT_FORMAT = "chatml"

#: What a model says under a grammar when no tool fits.
NO_TOOL = "NO_TOOL"

#: Calls in one answer that are read.
MAX_CALLS = 128
#: Characters of a text argument: what is longer is a model that repeats itself.
MAX_ARGUMENT = 200
#: Characters of the arguments of a call as an event tells them. They are one text of one frame, and half of a JSON
#: object is no use to anybody: so it is the values that are cut, to the first of these lengths, or else to the next.
MAX_ARGUMENTS = 128 * 1024
_CUTS = (4000, 400, 40)
#: Places in an answer where a call is looked for. Each try may read on to the end.
_MAX_TRIES = 256


class Call(Value):
    """One call: the tool's name as the model wrote it, and its arguments."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def arguments_json(self) -> str:
        """One flat JSON object of texts: every other value is spelled as JSON in a text.

        Of what is longer than `MAX_ARGUMENTS`, long texts are cut and end with an ellipsis, other long values are null,
        and of very many members the last are left out.
        """
        written = _flat(self.arguments, MAX_ARGUMENTS)
        for most in _CUTS:
            if len(written) <= MAX_ARGUMENTS:
                return written
            written = _flat(self.arguments, most)
        members = list(self.arguments.items())
        while len(written) > MAX_ARGUMENTS:
            members = members[: len(members) // 2]
            written = _flat(dict(members), _CUTS[-1])
        return written


class _Format(Value):
    name_key: str
    arguments_key: str
    begin: str
    """Before all calls."""
    before: str
    """Before each call."""
    after: str
    between: str
    end: str


FORMATS: dict[str, _Format] = {
    "chatml": _Format("name", "arguments", "", "<tool_call>\n", "\n</tool_call>", "\n", ""),
    "llama3": _Format("name", "parameters", "", "", "", "\n", ""),
    "mistral": _Format("name", "arguments", "[TOOL_CALLS][", "", "", ", ", "]"),
    "generic": _Format("tool", "args", "", "", "", "\n", ""),
}

_ARGUMENT_KEYS = ("arguments", "parameters", "args")

_MARKED = {
    "chatml": re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL),
    "mistral": re.compile(r"\[TOOL_CALLS\](.*)", re.DOTALL),
}


def write_calls(calls: Sequence[Call], form: str) -> str:
    """The calls as a model of that format writes them."""
    of = FORMATS[form]
    written = (
        f"{of.before}{to_json({of.name_key: call.name, of.arguments_key: dict(call.arguments)})}{of.after}"
        for call in calls
    )
    return f"{of.begin}{of.between.join(written)}{of.end}"


def described(tools: Sequence[ToolDefinition], form: str, *, may_answer: bool) -> str:
    """What the system message tells the model about its tools."""
    lines = ["You can call these tools:"]
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}" if tool.description else f"- {tool.name}")
        lines += [f"    {_parameter(parameter)}" for parameter in tool.parameters]
    example = write_calls([Call("tool name", {"parameter": "value"})], form)
    lines += [
        "",
        "When the user's message asks for one of them, answer with a call and nothing else, like this:",
        example,
    ]
    if not may_answer:
        lines.append(f"When no tool fits, answer with {NO_TOOL}.")
    return "\n".join(lines)


def _parameter(parameter: ToolParamDefinition) -> str:
    kind = f" ({parameter.type})" if parameter.type else ""
    return f"{parameter.name}{kind}: {parameter.description}" if parameter.description else f"{parameter.name}{kind}"


def read_calls(text: str, form: str) -> list[Call]:
    """The calls in an answer: those in marks, or else every JSON object that names a tool.

    The very same call once more is a model that repeats itself, and is left out.
    """
    of = FORMATS[form]
    marked = _MARKED.get(form)
    inside = [match[1] for match in marked.finditer(text)] if marked else []
    calls = [call for part in inside for call in _objects(part, of)]
    calls = calls or list(_objects(text, of))
    return [call for at, call in enumerate(calls) if at == 0 or call != calls[at - 1]][:MAX_CALLS]


def _objects(text: str, of: _Format) -> Iterator[Call]:
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_TRIES):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        call = _call(found, of)
        # What is no call itself may hold one.
        position = end if call is not None else position + 1
        if call is not None:
            yield call


def _call(found: Any, of: _Format) -> Call | None:
    name = found.get(of.name_key)
    if not isinstance(name, str) or not name:
        return None
    for key in (of.arguments_key, *_ARGUMENT_KEYS):
        if key in found:
            return Call(name, _arguments(found[key]))
    return Call(name, {})


def _arguments(found: Any) -> dict[str, Any]:
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}


def _flat(arguments: Mapping[str, Any], most: int) -> str:
    return _compact({key: _spelled(value, most) for key, value in arguments.items()})


def _spelled(value: Any, most: int) -> str:
    if isinstance(value, str):
        return value if len(value) <= most else value[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    spelled = _compact(value)
    return spelled if len(spelled) <= most else "null"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# The grammar.

_RULES = rf"""char ::= [^"\\\x00-\x1f\x7f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{{4}})
text ::= "\"" char{{0,{MAX_ARGUMENT}}} "\""
integer ::= "-"? ("0" | [1-9] [0-9]{{0,14}})
number ::= integer ("." [0-9]{{1,14}})?
boolean ::= "true" | "false"
"""

#: The names of those that schemas have, too.
_SHARED = frozenset(("char", "integer", "number", "boolean"))

_KINDS = {
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
}


def grammar(tools: Sequence[ToolDefinition], form: str, *, may_answer: bool, most: int = 1, schema: Any = None) -> str:
    """The grammar (GBNF) of an answer: up to `most` calls of these tools with all their parameters, or none.

    A small model goes on as long as it may, with the same call again. With `may_answer` a model that calls nothing may
    say whatever does not begin like a call; with a `schema`, a JSON value that fits it.
    """
    of = FORMATS[form]
    rules = []
    for number, tool in enumerate(tools):
        members = ' ", " '.join(
            f"{_literal(to_json(parameter.name) + ': ')} {_KINDS.get(parameter.type.lower(), 'text')}"
            for parameter in tool.parameters
        )
        head = f"{{{to_json(of.name_key)}: {to_json(tool.name)}, {to_json(of.arguments_key)}: {{"
        rules.append(f"call{number} ::= {_literal(of.before + head)} {members} {_literal('}}' + of.after)}")
    each = " | ".join(f"call{number}" for number in range(len(tools)))
    several = f"({_literal(of.between)} call){{0,{most - 1}}}" if most > 1 else ""
    calls = f"{_literal(of.begin)} call {several} {_literal(of.end)}"
    mark = (of.begin or of.before or "{")[0]
    otherwise = rf"[^{'[' if mark == '[' else mark}\x00-\x20] [^\x00]*" if may_answer else _literal(NO_TOOL)
    root = f"root ::= {calls} | {otherwise if schema is None else 'json'}\ncall ::= {each}\n"
    return root + "\n".join(rules) + f"\n{_RULES}" + ("" if schema is None else _json(schema))


def _json(schema: Any) -> str:
    """The rules of a value that fits a schema, which is called `json`. Some are there already."""
    named = (line.partition(" ::= ") for line in value_grammar(schema).removesuffix("\n").split("\n"))
    lines = ((("json" if name == "root" else name), body) for name, _, body in named)
    return "".join(f"{name} ::= {body}\n" for name, body in lines if name not in _SHARED)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
