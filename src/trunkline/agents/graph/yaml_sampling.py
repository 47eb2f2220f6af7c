"""The parts of `sampling` that people write otherwise than the wire has them.

sampling:
  json_schema: {type: object, properties: {mood: {enum: [calm, angry]}}, required: [mood]}
  logit_bias: {dragon: -100}
  lora: [pirate, {name: grim, scale: 0.5}]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trunkline.base import jsontext
from trunkline.base.document import Part
from trunkline.core.graph.description import LogitBias, LoraAdapter

#: Reads a number; complains about anything else.
Number = Callable[[Part], float]


def schema(part: Part, number: Number) -> Any:
    """A JSON Schema, as text. It may be written as what it is."""
    return jsontext.dumps(part.value).decode() if isinstance(part.value, dict) else part.text()


def biases(part: Part, number: Number) -> tuple[LogitBias, ...]:
    """An object of numbers by text, or a list as the wire has it."""
    if isinstance(part.value, dict):
        return tuple(LogitBias(token, number(member)) for token, member in part.all_members().items())
    return tuple(_pair(item, LogitBias, number) for item in part.items())


def adapters(part: Part, number: Number) -> tuple[LoraAdapter, ...]:
    """A list of names, and of objects with a scale; or an object of scales by name."""
    if isinstance(part.value, dict):
        return tuple(LoraAdapter(name, number(member)) for name, member in part.all_members().items())
    return tuple(
        LoraAdapter(item.text()) if isinstance(item.value, str) else _pair(item, LoraAdapter, number)
        for item in part.items()
    )


def _pair(part: Part, kind: Any, number: Number) -> Any:
    """A text and a number, by the names that the wire has for them."""
    text, value = kind.__fields__
    members = part.members((text, value), (text,))
    return kind(members[text].text(), *([number(members[value])] if value in members else []))


#: By field.
READERS: dict[str, Callable[[Part, Number], Any]] = {
    "json_schema": schema,
    "logit_bias": biases,
    "lora": adapters,
}
