"""The JSON stream as JSON Schema (2020-12), made from the vocabulary in `messages`.

It describes what an agent of ours accepts and sends. A host is more lenient than that with what other agents send
(`codec` fills in what they leave out), and both sides ignore members that are not named here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.wires import line_schema
from trunkline.wires.jsonstream.messages import COMMANDS, EVENTS, PROTOCOL_VERSION, Message, UserMessage
from trunkline.wires.line_schema import Direction, Union

#: A name, not a place: nothing has to be fetched to use the schema.
ID = f"urn:trunkline:schema:jsonstream:{PROTOCOL_VERSION}"

_TITLES: dict[Direction, str] = {
    "events": "JSON stream: what an agent writes to its standard output",
    "commands": "JSON stream: what a host writes to an agent's standard input",
    "both": "JSON stream: every line, in both directions",
}
_VOCABULARIES: Mapping[Union, Mapping[str, type[Message]]] = {"event": EVENTS, "command": COMMANDS}

#: How the docstrings of messages begin: the section of the protocol document, or that they are not in it.
_ORIGIN = re.compile(r"(?P<section>\d+\.\d+|Dialect): (?P<text>.*)")


def document(direction: Direction = "both") -> dict[str, Any]:
    """The schema of one line; see `line_schema`."""
    messages = {
        union: {name: _definition(kind) for name, kind in vocabulary.items()}
        for union, vocabulary in _VOCABULARIES.items()
    }
    return line_schema.document(ID, _TITLES[direction], direction, messages)


def _definition(kind: type[Message]) -> dict[str, Any]:
    found = shapes.schema(kind)
    found["properties"] = {"type": {"const": kind.type}} | found["properties"]
    found["required"] = ["type", *found.get("required", ())]
    _allow_null(kind, found)
    if kind is UserMessage:
        _accept_content(found)
    origin = _ORIGIN.fullmatch(found.pop("description", ""))
    if origin is None:
        raise TypeError(f"the docstring of `{kind.__name__}` does not begin with its section")
    mark = {"x-dialect": True} if origin["section"] == "Dialect" else {"x-section": origin["section"]}
    text = origin["text"][:1].upper() + origin["text"][1:]
    return {"title": kind.type, "description": text, **mark, **found}


def _allow_null(kind: type[Value], found: dict[str, Any]) -> None:
    """`null` for a member that may be absent counts as absent."""
    for field in kind.__defaults__:
        member = found["properties"][field]
        if {"type": "null"} not in member.get("anyOf", ()):
            found["properties"][field] = {"anyOf": [member, {"type": "null"}]}


def _accept_content(found: dict[str, Any]) -> None:
    """`message` has its text in `input`; newer hosts write `content`, which counts when there is no `input`."""
    text = {"type": "string"}
    properties = found["properties"]
    properties["msg_id"] = {"type": "string", "minLength": 1}
    del properties["input"]
    properties["content"] = {"description": "The dialect of newer hosts for `input`."}
    found["required"].remove("input")
    found["anyOf"] = [
        {"properties": {"input": text}, "required": ["input"]},
        {"properties": {"input": {"type": "null"}, "content": text}, "required": ["content"]},
    ]
