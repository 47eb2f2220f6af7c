"""What `sampling` may hold beside numbers: what ends an answer, its form, words more or less likely, and adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import isfinite
from typing import Any

from trunkline.base import jsontext
from trunkline.core.graph.description import SamplingOverrides

#: Each is looked for in every piece of an answer.
MAX_STOPS = 16
MAX_STOP_CHARS = 256
#: A schema becomes a grammar, which is some ten times as long and is read before each answer.
MAX_SCHEMA_BYTES = 16 * 1024
#: What is nested deeper, a grammar lets be any JSON (`models.grammar.MAX_SCHEMA_DEPTH`).
MAX_SCHEMA_DEPTH = 32
#: Each is turned into tokens for each answer.
MAX_BIASES = 256
MAX_BIAS_CHARS = 256
#: A hundred more than the others, or less, leaves a token no rival, or no chance.
MAX_BIAS = 100.0
#: Adapters of one answer: each is computed beside the model.
MAX_LORA = 8
#: Far outside of what an adapter was made for.
MAX_SCALE = 10.0


def out_of_form(sampling: SamplingOverrides) -> Iterator[tuple[str, str]]:
    """Each field that cannot be used, and a sentence about it without its subject."""
    for field, check in _CHECKS.items():
        if (problem := check(getattr(sampling, field))) is not None:
            yield field, problem


def _stop(stops: tuple[str, ...]) -> str | None:
    if len(stops) > MAX_STOPS:
        return f"has {len(stops)} texts, and may have {MAX_STOPS}."
    if any(not 1 <= len(stop) <= MAX_STOP_CHARS for stop in stops):
        return f"has a text that is empty, or longer than {MAX_STOP_CHARS} characters."
    return None


@lru_cache(maxsize=256)
def _json_schema(text: str | None) -> str | None:
    if not text:
        return None
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_SCHEMA_BYTES:
        return f"has {len(data)} bytes, and may have {MAX_SCHEMA_BYTES}."
    try:
        schema: Any = jsontext.loads(data, MAX_SCHEMA_DEPTH)
    except ValueError as error:
        return f"is not a JSON Schema: {error}."
    return None if isinstance(schema, dict) else "is not a JSON Schema: it must be an object."


def _logit_bias(biases: tuple[Any, ...]) -> str | None:
    if len(biases) > MAX_BIASES:
        return f"has {len(biases)} texts, and may have {MAX_BIASES}."
    if len({each.token for each in biases}) < len(biases):
        return "has a text twice."
    for each in biases:
        if not 1 <= len(each.token) <= MAX_BIAS_CHARS:
            return f"has a text that is empty, or longer than {MAX_BIAS_CHARS} characters."
        if not _within(each.bias, MAX_BIAS):
            return f"gives `{each.token}` {each.bias:g}: it goes from {-MAX_BIAS:g} to {MAX_BIAS:g}."
    return None


def _lora(adapters: tuple[Any, ...]) -> str | None:
    if len(adapters) > MAX_LORA:
        return f"has {len(adapters)} adapters, and may have {MAX_LORA}."
    if len({each.name for each in adapters}) < len(adapters):
        return "has an adapter twice."
    for each in adapters:
        if not each.name:
            return "has an adapter without a name."
        if not _within(each.scale, MAX_SCALE):
            return f"gives `{each.name}` {each.scale:g}: it goes from {-MAX_SCALE:g} to {MAX_SCALE:g}."
    return None


def _within(number: float, most: float) -> bool:
    return isfinite(number) and -most <= number <= most


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "stop": _stop,
    "json_schema": _json_schema,
    "logit_bias": _logit_bias,
    "lora": _lora,
}
