"""What a command line says about the coding agent, or a `TRUNKLINE_*` variable in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.core.faults import ConfigError

OPTIONS = (
    "provider",
    "model",
    "max_tokens",
    "max_turns",
    "base_url",
    "api_key",
    "profile",
    "thinking_budget",
    "effort",
    "sandbox",
    "output_style",
)
_NUMBERS = frozenset({"max_tokens", "max_turns", "thinking_budget"})


def flags(options: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """What was said, by flags first.

    Raises:
        ConfigError: a variable holds no number where one is wanted.
    """
    found: dict[str, Any] = {}
    for option in OPTIONS:
        value = options.get(option)
        if value is None:
            variable = f"TRUNKLINE_{option.upper()}"
            value = environ.get(variable) or None
            if value is not None and option in _NUMBERS:
                value = _number(variable, value)
        if value is not None:
            found[option] = value
    return found


def _number(variable: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError(f"{variable}: `{text}` is not a whole number")
    return int(text)
