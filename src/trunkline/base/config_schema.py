"""Which keys a configuration file may have, and what may stand there.

`SCHEMA` is what the coding agent reads, as data: a key leads to a `Kind`, or to a further table. The key `ANY` stands
for names that the user chooses. A key that a project may use says how it narrows what the user has set
(`config_narrowing`); one that says nothing of it is not for projects.

The sections of the services, which an agent that a host waits for does not need, are in `config_services`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from trunkline.base.config_narrowing import Narrowing, fewer, joined, less, only_off, stricter, unless_said, within
from trunkline.base.values import Value
from trunkline.base.vocabulary import (
    DEFAULT_ALLOW,
    EFFORTS,
    KV_CACHE_TYPES,
    LEAST_WINDOW,
    MODES,
    MOST_GPU_LAYERS,
    MOST_THREADS,
    MOST_WINDOW,
    SANDBOX_MODES,
    STRICTEST_FIRST,
)

ANY = "*"
#: When hooks are run.
HOOKS = (
    "session_start", "session_end", "user_prompt_submit", "pre_tool_use", "post_tool_use", "stop", "pre_compact",
)  # fmt: skip


class Kind(Value):
    """What may stand at a key."""

    wanted: str
    """In words: `must be ...`."""
    fits: Callable[[Any], bool]
    narrows: Narrowing | None = None
    """What a project's value makes of the user's. None: the key is not for projects."""
    slip: Callable[[Any], str | None] | None = None
    """What is wrong with a value of the right kind, if anything."""

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value: `must be ...`, or None."""
        if not self.fits(value):
            return f"must be {self.wanted}"
        return self.slip(value) if self.slip is not None else None

    def narrowing(self, how: Narrowing) -> Kind:
        """The same for a key that projects may use, too."""
        return self.replace(narrows=how)


#: Those that have a section of their own.
SERVICES = ("bridge", "network", "runner", "tryll", "otel")
#: Those that tell an exchange something.
EXCHANGE = ("exchange", "agents", "wires", "people", "cluster")
#: Those that are not the coding agent's.
OTHERS = (*SERVICES, *EXCHANGE)

Schema: TypeAlias = Mapping[str, "Kind | Schema"]
Keys: TypeAlias = tuple[str, ...]


class WholeTable(dict[str, "Kind | Schema"]):
    """A table that is taken from one file whole.

    Half a server of one file and half of another would be a third thing, and so would a profile with one file's key and
    another's provider, or one file's account with another's homeserver.
    """


def one_of(*words: str) -> Kind:
    """One of some words."""
    return Kind("one of " + ", ".join(f'"{word}"' for word in words), lambda value: value in words)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_texts(value: Any) -> bool:
    """Whether a value of a file is a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_pairs(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_text(value: Any, *beginnings: str) -> bool:
    return isinstance(value, str) and value.startswith(beginnings)


def _is_login(value: Any) -> bool:
    kinds: dict[str, type] = {"client_id": str, "client_secret": str, "redirect_uri": str, "scopes": list}
    return isinstance(value, dict) and all(
        key in kinds and isinstance(member, kinds[key]) and (key != "scopes" or is_texts(member))
        for key, member in value.items()
    )


def _redirect_problem(uri: str | None) -> str | None:
    """What is wrong with the address to which browsers come back."""
    if uri is None:
        return None
    # Hardly ever needed, and an agent's start is short.
    from urllib.parse import urlsplit

    from trunkline.base.hosts import is_loopback

    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", 0
    if uri.startswith("http://") and is_loopback(host) and ":" not in host and port != 0 and not set(uri) & set("?#@"):
        return None
    return "must have an address of this machine as `redirect_uri`, such as http://127.0.0.1:8765/callback"


def _goes_down(path: str) -> bool:
    """Whether no server and no client takes a part of a path for the way up."""
    parts = path.lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace("\\", "/").split("/")
    return path.isprintable() and not {"..", "."}.intersection(parts)


def is_usual_path(path: str) -> bool:
    """Whether a path is one that services of this kind have: a version at most, and what is asked for."""
    *version, _ = path.removeprefix("/").replace("chat/completions", "messages").split("/")
    return (
        path.endswith(("/chat/completions", "/messages", "/responses"))
        and all(map(_is_version, version))
        and len(version) < 2
    )


def _is_version(part: str) -> bool:
    return part[:1] == "v" and part[1:].removesuffix("beta").removesuffix("alpha").isdecimal()


def whole_number(least: int, most: int, what: str = "a whole number") -> Kind:
    """A whole number within bounds."""
    return Kind(f"{what} from {least} to {most}", lambda value: _is_int(value) and least <= value <= most)


TEXT = Kind("a string", lambda value: isinstance(value, str))
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
#: From 1 on.
COUNT = Kind("a whole number from 1 on", lambda value: _is_int(value) and value >= 1)
#: 0 stands for no limit.
LIMIT = Kind("a whole number; 0 for no limit", lambda value: _is_int(value) and value >= 0)
PERCENT = Kind("a number between 1 and 100", lambda value: _is_number(value) and 1 <= value <= 100)
PRICE = Kind("a number of dollars, not negative", lambda value: _is_number(value) and 0 <= value < float("inf"))
TEXTS = Kind("a list of strings", is_texts)
TABLES = Kind("a list of tables", _is_tables)
PAIRS = Kind("a table of strings", _is_pairs)
ANYTHING = Kind("anything", lambda value: True)
URL = Kind("a URL that begins with http:// or https://", lambda value: _is_text(value, "http://", "https://"))
#: Joined to a host's name, anything else could name another host, or another path than the one behind the base.
API_PATH = Kind(
    "a path that begins with a single `/` and stays below the base URL",
    lambda value: _is_text(value, "/") and not value.startswith("//") and _goes_down(value),
)

MODE = one_of(*MODES)
SANDBOX = one_of(*SANDBOX_MODES)
EFFORT = one_of(*EFFORTS)
ENGINE = one_of("searxng", "brave", "tavily")
TRANSPORT = one_of("stdio", "sse", "streamable-http", "streamable_http")
#: How somebody logs in to an MCP server.
OAUTH = Kind(
    "true, false, or a table with `client_id`, `client_secret`, `scopes` and `redirect_uri`",
    lambda value: isinstance(value, bool) or _is_login(value),
    slip=lambda value: None if isinstance(value, bool) else _redirect_problem(value.get("redirect_uri")),
)

#: What a request to a model may be told.
_ASKING: dict[str, Kind | Schema] = {
    "model": TEXT,
    "max_tokens": COUNT.narrowing(less),
    "thinking_budget": LIMIT.narrowing(less),
    "effort": EFFORT.narrowing(stricter(EFFORTS)),
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
#: How a provider differs from the rest of its kind. Which keys there are is known to those who speak to it. Hosts made
#: for aionrs write three of them into a workspace; they lead nowhere that the address does not.
_COMPAT: Schema = {
    "api_path": API_PATH.narrowing(unless_said(is_usual_path)),
    "max_tokens_field": ANYTHING.narrowing(unless_said(lambda name: name in ("max_tokens", "max_completion_tokens"))),
    "openai_api_mode": ANYTHING.narrowing(unless_said(lambda mode: mode in ("responses", "chat_completions"))),
    ANY: ANYTHING,
}
#: How a model of this machine is loaded. A workspace knows nothing of the machine: none of it is for projects.
LOADING: dict[str, Kind] = {
    "gpu_layers": whole_number(-1, MOST_GPU_LAYERS, "a whole number of layers, -1 for all,"),
    "threads": whole_number(1, MOST_THREADS),
    "context": whole_number(LEAST_WINDOW, MOST_WINDOW, "a whole number of tokens"),
    "kv_cache_type": one_of(*KV_CACHE_TYPES),
}
#: What an agent is told.
_BEHAVING: dict[str, Kind | Schema] = {
    "provider": TEXT,
    "max_turns": LIMIT.narrowing(fewer),
    # A project's words for the model go into its AGENTS.md.
    "system_prompt": TEXT,
    "mode": MODE.narrowing(stricter(STRICTEST_FIRST, "default")),
    "output_style": TEXT,
}

SCHEMA: Schema = {
    "trust": TEXTS,
    "default": {**_BEHAVING, **_ASKING},
    "providers": {ANY: {"provider": TEXT, **_ASKING, **_REACHING, "compat": _COMPAT}},
    "profiles": {
        ANY: WholeTable(
            {
                "extends": TEXT,
                **_BEHAVING,
                **_ASKING,
                **_REACHING,
                "compat": _COMPAT,
                "mcp_servers": TEXTS.narrowing(within()),
            }
        )
    },
    "tools": {
        "auto_approve": SWITCH.narrowing(only_off),
        "allow_list": TEXTS.narrowing(within(DEFAULT_ALLOW)),
        "allow_outside": SWITCH.narrowing(only_off),
    },
    "mcp": {
        "servers": {
            ANY: WholeTable(
                {
                    "transport": TRANSPORT,
                    "command": TEXT,
                    "args": TEXTS,
                    "env": PAIRS,
                    "url": TEXT,
                    "headers": PAIRS,
                    "enabled": SWITCH.narrowing(only_off),
                    "startup_timeout_ms": COUNT,
                    "deferred": SWITCH,
                    "oauth": OAUTH,
                }
            )
        }
    },
    # Rules of all files join. What a workspace that nobody trusts asks or denies makes nothing possible.
    "permissions": {"allow": TEXTS, "ask": TEXTS.narrowing(joined), "deny": TEXTS.narrowing(joined)},
    "hooks": dict.fromkeys(HOOKS, TABLES),
    "web": {"allow_private": SWITCH, "search": {"engine": ENGINE, "url": URL, "api_key": TEXT, "api_key_env": TEXT}},
    "sandbox": {"mode": SANDBOX.narrowing(stricter(SANDBOX_MODES, "off")), "network": TEXTS.narrowing(within(()))},
    "lsp": {ANY: WholeTable({"command": ANYTHING, "extensions": TEXTS, "root": TEXT, "enabled": SWITCH})},
    "session": {"enabled": SWITCH.narrowing(only_off)},
    "compact": {"enabled": SWITCH, "context_window": COUNT, "threshold_pct": PERCENT},
    "models": {ANY: dict(LOADING)},
    "prices": {ANY: WholeTable(dict.fromkeys(("input", "output", "cache_read", "cache_write"), PRICE))},
    # Each reader of those knows their keys.
    **{section: {ANY: ANYTHING} for section in OTHERS},
}


class CheckedTable(Value):
    """A table without what cannot be used in it."""

    table: dict[str, Any]
    unknown: tuple[tuple[Keys, Collection[str]], ...]
    """Keys that mean nothing, each with those that would have meant something in its place."""
    wrong: tuple[tuple[Keys, str], ...]
    """Keys whose value is of the wrong kind, each with what it must be."""


def check(table: Mapping[str, Any], schema: Schema = SCHEMA) -> CheckedTable:
    """Sort a file's keys into good, unknown and wrong."""
    unknown: list[tuple[Keys, Collection[str]]] = []
    wrong: list[tuple[Keys, str]] = []
    good = _walk(table, schema, (), unknown, wrong)
    return CheckedTable(good, tuple(unknown), tuple(wrong))


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
            problem = expected.problem(value)
            if problem is None:
                good[key] = value
            else:
                wrong.append((here, problem))
        elif isinstance(value, dict):
            good[key] = _walk(value, expected, here, unknown, wrong)
        else:
            wrong.append((here, "must be a table"))
    return good


def is_whole(path: Keys, schema: Schema = SCHEMA) -> bool:
    """Whether the table at a path is taken from one file whole."""
    return isinstance(_at(path, schema), WholeTable)


def kind_at(path: Keys, schema: Schema = SCHEMA) -> Kind | None:
    """What may stand at a path; None where the schema has no key."""
    found = _at(path, schema)
    return found if isinstance(found, Kind) else None


def _at(path: Keys, schema: Schema) -> Kind | Schema | None:
    level: Kind | Schema | None = schema
    for key in path:
        if not isinstance(level, Mapping):
            return None
        level = level.get(key, level.get(ANY))
    return level
