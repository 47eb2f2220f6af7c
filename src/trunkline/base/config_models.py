"""The section `[models."NAME"]`: how a model of this machine is loaded, and the variables that say it of all models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.config_schema import ANY, LOADING, TEXTS, Schema
from trunkline.base.config_settled import ConfigVariableError

#: What is read of the files for it.
SCHEMA: Schema = {"trust": TEXTS, "models": {ANY: LOADING}}

#: How much of a wrong value is repeated.
SHOWN_CHARS = 80


def variable_of(key: str) -> str:
    """The variable that says it of all models."""
    return f"TRUNKLINE_MODELS_{key.upper()}"


def of_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    """What variables say of all models.

    Raises:
        ConfigVariableError: one holds what cannot be used.
    """
    said: dict[str, Any] = {}
    for key, kind in LOADING.items():
        text = environ.get(variable_of(key), "").strip()
        if not text:
            continue
        value = text if key == "kv_cache_type" else _numbered(text)
        if (problem := kind.problem(value)) is not None:
            raise ConfigVariableError(variable_of(key), f"{problem}, not `{text[:SHOWN_CHARS]}`")
        said[key] = value
    return said


def _numbered(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text
