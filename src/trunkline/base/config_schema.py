"""Which keys a configuration file may have, and what may stand there.

`SCHEMA` is the whole of it, as data: a key leads to a `Kind`, or to a further table. The key `ANY` stands for names
that the user chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from trunkline.base.values import Value

ANY = "*"

#: Names closer than this are taken for the same word mistyped.
_ALIKE = 0.6


class Kind(Value):
    """What may stand at a key."""

    wanted: str
    """In words: `must be ...`."""
    fits: Callable[[Any], bool]


Schema: TypeAlias = Mapping[str, "Kind | Schema"]
Keys: TypeAlias = tuple[str, ...]


def one_of(*words: str) -> Kind:
    """One of some words."""
    return Kind("one of " + ", ".join(f'"{word}"' for word in words), lambda value: value in words)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_pairs(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_text(value: Any, *beginnings: str) -> bool:
    return isinstance(value, str) and value.startswith(beginnings)


TEXT = Kind("a text", lambda value: isinstance(value, str))
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
#: From 1 on.
COUNT = Kind("a whole number from 1 on", lambda value: _is_int(value) and value >= 1)
#: 0 stands for no limit.
LIMIT = Kind("a whole number; 0 for no limit", lambda value: _is_int(value) and value >= 0)
PERCENT = Kind("a number between 1 and 100", lambda value: _is_number(value) and 1 <= value <= 100)
PRICE = Kind("a number of dollars, not negative", lambda value: _is_number(value) and 0 <= value < float("inf"))
TEXTS = Kind("a list of texts", _is_texts)
PAIRS = Kind("a table of texts", _is_pairs)
ANYTHING = Kind("anything", lambda value: True)
URL = Kind("a text that begins with http:// or https://", lambda value: _is_text(value, "http://", "https://"))
#: Joined to a host's name, anything else could name another host.
API_PATH = Kind("a text that begins with one `/`", lambda value: _is_text(value, "/") and not value.startswith("//"))

MODE = one_of("default", "auto_edit", "yolo")
EFFORT = one_of("low", "medium", "high")
TRANSPORT = one_of("stdio", "sse", "streamable-http", "streamable_http")

#: What a request to a model may be told.
_ASKING: dict[str, Kind | Schema] = {
    "model": TEXT,
    "max_tokens": COUNT,
    "thinking_budget": LIMIT,
    "effort": EFFORT,
}
#: Where a model is, and whose account it is used with.
_REACHING: dict[str, Kind | Schema] = {
    "api_key": TEXT,
    "api_key_env": TEXT,
    "base_url": URL,
    "region": TEXT,
    "access_key_id": TEXT,
    "secret_access_key": TEXT,
    "session_token": TEXT,
    "profile": TEXT,
    "project": TEXT,
    "credentials": TEXT,
}
#: How a provider differs from the rest of its kind. Which keys there are is known to those who speak to it.
_COMPAT: Schema = {"api_path": API_PATH, ANY: ANYTHING}
#: What an agent is told.
_BEHAVING: dict[str, Kind | Schema] = {
    "provider": TEXT,
    "max_turns": LIMIT,
    "system_prompt": TEXT,
    "mode": MODE,
}

SCHEMA: Schema = {
    "trust": TEXTS,
    "default": {**_BEHAVING, **_ASKING},
    "providers": {ANY: {"provider": TEXT, **_ASKING, **_REACHING, "compat": _COMPAT}},
    "profiles": {ANY: {"extends": TEXT, **_BEHAVING, **_ASKING, **_REACHING, "compat": _COMPAT, "mcp_servers": TEXTS}},
    "tools": {"auto_approve": SWITCH, "allow_list": TEXTS},
    # The chat bridge reads it by itself, and knows its keys.
    "bridge": {ANY: ANYTHING},
    "mcp": {
        "servers": {
            ANY: {
                "transport": TRANSPORT,
                "command": TEXT,
                "args": TEXTS,
                "env": PAIRS,
                "url": TEXT,
                "headers": PAIRS,
                "enabled": SWITCH,
            }
        }
    },
    "compact": {"enabled": SWITCH, "context_window": COUNT, "threshold_pct": PERCENT},
    "prices": {ANY: {"input": PRICE, "output": PRICE, "cache_read": PRICE, "cache_write": PRICE}},
}

#: Tables that are taken from one file whole: half a server of one file and half of another would be a third thing, and
#: so would a profile with one file's key and another's provider.
WHOLE: frozenset[Keys] = frozenset({("profiles", ANY), ("mcp", "servers", ANY), ("prices", ANY)})


class Checked(Value):
    """A table without what cannot be used in it."""

    table: dict[str, Any]
    unknown: tuple[tuple[Keys, Collection[str]], ...]
    """Keys that mean nothing, each with those that would have meant something in its place."""
    wrong: tuple[tuple[Keys, str], ...]
    """Keys whose value is of the wrong kind, each with what it must be."""


def check(table: Mapping[str, Any], schema: Schema = SCHEMA) -> Checked:
    """Sort a file's keys into good, unknown and wrong."""
    unknown: list[tuple[Keys, Collection[str]]] = []
    wrong: list[tuple[Keys, str]] = []
    good = _walk(table, schema, (), unknown, wrong)
    return Checked(good, tuple(unknown), tuple(wrong))


def _walk(
    table: Mapping[str, Any],
    schema: Schema,
    path: Keys,
    unknown: list[tuple[Keys, Collection[str]]],
    wrong: list[tuple[Keys, str]],
) -> dict[str, Any]:
    good: dict[str, Any] = {}
    for key, value in table.items():
        here = (*path, key)
        expected = schema.get(key, schema.get(ANY))
        if expected is None:
            unknown.append((here, tuple(schema)))
        elif isinstance(expected, Kind):
            if expected.fits(value):
                good[key] = value
            else:
                wrong.append((here, f"must be {expected.wanted}"))
        elif isinstance(value, dict):
            good[key] = _walk(value, expected, here, unknown, wrong)
        else:
            wrong.append((here, "must be a table"))
    return good


def generic(path: Keys, schema: Schema = SCHEMA) -> Keys:
    """A path with `ANY` in the place of names that the user chose."""
    found: list[str] = []
    level: Kind | Schema | None = schema
    for key in path:
        if not isinstance(level, Mapping) or (key not in level and ANY not in level):
            return (*found, *path[len(found) :])
        found.append(key if key in level else ANY)
        level = level[found[-1]]
    return tuple(found)


def suggestion(name: str, known: Collection[str]) -> str:
    """` Did you mean ...?` when `name` looks like a known one, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(known), n=1, cutoff=_ALIKE)
    return f" Did you mean `{close[0]}`?" if close else ""


def dotted(path: Keys) -> str:
    """A path as one writes it in TOML."""
    bare = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    return ".".join(key if key and bare.issuperset(key) else f'"{key}"' for key in path)
