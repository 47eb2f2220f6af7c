"""The configuration files of aionrs, in our keys.

Most of it is the same: its sections were the model for ours. What differs is moved; what is left over has no effect
here, which is said once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What lies in the workspace, often written there by a host for as long as a conversation lasts.
PROJECT_FILE = ".aionrs.toml"

#: The user's own file; the launcher that `trunkline shim` writes sets this. Otherwise that file is aionrs' alone.
FILE_VARIABLE = "TRUNKLINE_AIONRS_CONFIG"

#: Its key -> ours.
MOVED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("bedrock", "region"): ("providers", "bedrock", "region"),
    ("bedrock", "access_key_id"): ("providers", "bedrock", "access_key_id"),
    ("bedrock", "secret_access_key"): ("providers", "bedrock", "secret_access_key"),
    ("bedrock", "session_token"): ("providers", "bedrock", "session_token"),
    ("bedrock", "profile"): ("providers", "bedrock", "profile"),
    ("vertex", "project_id"): ("providers", "vertex", "project"),
    ("vertex", "region"): ("providers", "vertex", "region"),
    ("vertex", "credentials_file"): ("providers", "vertex", "credentials"),
    ("compact", "autocompact_threshold_pct"): ("compact", "threshold_pct"),
}


def translate(table: Mapping[str, Any]) -> dict[str, Any]:
    """An aionrs file's table in our keys. What is not known here is left where it is."""
    ours = _copy(table)
    for name in _names(ours.get("providers")):
        caching = _take(ours, ("providers", name, "prompt_caching"))
        if caching is not None:
            _put(ours, ("providers", name, "compat", "prompt_caching"), caching)
    for theirs, place in MOVED.items():
        value = _take(ours, theirs)
        if value is not None:
            _put(ours, place, value)
    return ours


def _names(tables: Any) -> tuple[str, ...]:
    return tuple(tables) if isinstance(tables, dict) else ()


def _copy(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in table.items()}


def _take(table: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Remove a value; and the table that held it, if it held nothing else."""
    key, *rest = path
    if not rest:
        return table.pop(key, None)
    inner = table.get(key)
    if not isinstance(inner, dict):
        return None
    value = _take(inner, tuple(rest))
    if not inner:
        del table[key]
    return value


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value where there is none yet."""
    key, *rest = path
    if not rest:
        table.setdefault(key, value)
        return
    inner = table.setdefault(key, {})
    if isinstance(inner, dict):
        _put(inner, tuple(rest), value)
