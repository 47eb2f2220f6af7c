"""How fast the language models of this process answer, as their engine has measured it with the last answer of each."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from trunkline.base.values import Value
from trunkline.models.engines import cost

#: A shorter answer says little: its first token takes as long as all others.
FEWEST_TOKENS = 8

_last: dict[str, ModelSpeed] = {}


class ModelSpeed(Value):
    """What was measured of one answer."""

    tokens_per_second: float
    """Of the answer, from its first token on."""
    read_ms: int
    """For the prompt, before the first token: what the engine had read before is not read again."""
    tokens: int
    """That the answer had."""


def heard(model: str, timings: Any) -> None:
    """An engine has told how long an answer took, as llama.cpp tells it. What makes no sense is left aside."""
    if not isinstance(timings, Mapping):
        return
    tokens, rate = cost(timings.get("predicted_n")), timings.get("predicted_per_second")
    if tokens >= FEWEST_TOKENS and isinstance(rate, int | float) and isfinite(rate) and rate > 0:
        _last[model] = ModelSpeed(round(float(rate), 1), cost(timings.get("prompt_ms")), tokens)


def last(model: str) -> ModelSpeed | None:
    """What was measured last of a model, by the name that it was loaded with; None if nothing was."""
    return _last.get(model)
