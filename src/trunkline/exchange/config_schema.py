"""The keys that the file of an exchange may have. A wire has the same keys as without an exchange.

Secrets are in the environment or in the keyring: where a wire has a key for one, the file has `KEY_env`, the name of a
variable, or `KEY_keyring`, the name of an entry.
"""

from __future__ import annotations

import math
import re
from typing import Any

from trunkline.base.chat_platforms import PLATFORMS, remote
from trunkline.base.config_schema import (
    ANY,
    COUNT,
    EFFORT,
    LIMIT,
    MODE,
    PRICE,
    SANDBOX,
    SCHEMA,
    SWITCH,
    TEXT,
    TEXTS,
    URL,
    Kind,
    Schema,
    one_of,
)
from trunkline.base.config_services import HOSTS, LISTEN, PATH, SECTIONS, Setting
from trunkline.exchange.settings import ROLES

#: Valid names: they appear in URLs, in lists and in file names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_DURATION = re.compile(r"([1-9][0-9]{0,8})([smhd])", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SHA256 = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)

#: The error for a literal secret in the file.
LITERAL = "is a secret, and must not be in the file"


def is_name(name: str) -> bool:
    """Whether this is a valid name for agents and people."""
    return _NAME.fullmatch(name) is not None


def seconds(duration: str) -> float | None:
    """The seconds in a duration such as `30m`; None if it is not one."""
    found = _DURATION.fullmatch(duration)
    return None if found is None else float(int(found[1]) * _UNIT_SECONDS[found[2]])


def _never(key: str) -> Kind:
    """A key that would hold a literal secret."""
    return Kind(
        "in the environment or the keyring",
        lambda value: True,
        slip=lambda value: f"{LITERAL}: name a variable in `{key}`",
    )


def _is_above_zero(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value > 0


SECONDS = Kind("a number of seconds above 0", _is_above_zero)
DURATION = Kind(
    'a duration such as "90s", "30m", "24h" or "7d"',
    lambda value: isinstance(value, str) and seconds(value) is not None,
)
VARIABLE = Kind(
    "the name of an environment variable",
    lambda value: isinstance(value, str) and bool(value) and not {"=", "\0", "$", " "}.intersection(value),
)
ENTRY = Kind(
    "the name of an entry in the keyring", lambda value: isinstance(value, str) and bool(value) and value.isprintable()
)
DIGEST = Kind(
    "the SHA-256 of a token, 64 hexadecimal digits",
    lambda value: isinstance(value, str) and bool(_SHA256.fullmatch(value)),
)

_EXCHANGE: Schema = {
    "listen": LISTEN,
    "home": PATH,
    "hosts": HOSTS,
    "webhook": URL,
    "webhook_env": VARIABLE,
    "webhook_keyring": ENTRY,
    "approvals_expire": DURATION,
    "idle_after": DURATION,
    "metrics_without_token": SWITCH,
}
_BUDGET: Schema = {
    "tokens_per_day": COUNT,
    "usd_per_day": PRICE,
    "turns_per_hour": COUNT,
    "seconds_per_turn": SECONDS,
}
#: The options of `trunkline chat` for agents with a model.
OPTIONS: Schema = {
    "provider": TEXT,
    "model": TEXT,
    "base_url": URL,
    "profile": TEXT,
    "max_tokens": COUNT,
    "max_turns": LIMIT,
    "thinking_budget": LIMIT,
    "effort": EFFORT,
    "sandbox": SANDBOX,
}
_AGENT: Schema = {
    "agent": TEXT,
    "workspace": PATH,
    "mode": MODE,
    "allow": TEXTS,
    "description": TEXT,
    "budget": _BUDGET,
    "nodes": TEXTS,
    "api_key": _never("[providers.NAME] api_key_env"),
    "models_dir": PATH,
    **OPTIONS,
}
_PERSON: Schema = {
    "token_env": VARIABLE,
    "token_keyring": ENTRY,
    "token_sha256": DIGEST,
    "token": _never("token_env"),
    "role": one_of(*ROLES),
}


def _wire(schema: Schema, *without: str, **more: Kind) -> Schema:
    """The keys of a service, with names of variables instead of secrets."""
    found: dict[str, Kind | Schema] = {key: kind for key, kind in schema.items() if key not in without}
    for key, kind in schema.items():
        if isinstance(kind, Setting) and kind.secret:
            found |= _secret(key)
    return {**found, **more}


def _secret(key: str) -> dict[str, Kind | Schema]:
    return {key: _never(f"{key}_env"), f"{key}_env": VARIABLE, f"{key}_keyring": ENTRY}


def _platform(name: str) -> Schema:
    """A chat platform as a wire: who is let in, and how it appears there, as in `[bridge]`."""
    entry = PLATFORMS[name]
    bridge = ("allow", "approvers", "instructions", "verbosity", "rate", "queue", "max_chars")
    found: dict[str, Kind | Schema] = {key: SECTIONS["bridge"][key] for key in bridge}
    found |= entry.keys
    for key in entry.secrets:
        found |= _secret(key)
    return {**found, "agent": TEXT, "agents": TEXTS}


#: Figures are told by the exchange.
_NOT_A_WIRES = ("metrics",)
#: Permissions are set with the exchange's agents, and it keeps the sessions. There is no TLS yet.
_NOT_TRYLL = (
    "workspace", "mode", "allow", "sessions", "log_level", "log_file", "tls_cert", "tls_key", "vectors_dir",
    *_NOT_A_WIRES,
)  # fmt: skip

WIRES: dict[str, Schema] = {
    "tryll": _wire(SECTIONS["tryll"], *_NOT_TRYLL, agents=TEXTS),
    "network": _wire(SECTIONS["network"], *_NOT_A_WIRES),
    "runner": _wire(SECTIONS["runner"], *_NOT_A_WIRES, agent=TEXT),
    **{name: _platform(name) for name in remote()},
}

_CLUSTER: Schema = {
    "nats": TEXT,
    "nats_env": VARIABLE,
    "postgres": TEXT,
    "postgres_env": VARIABLE,
    "node": TEXT,
    "name": TEXT,
}
#: The sections of the exchange.
OWN: Schema = {
    "exchange": _EXCHANGE,
    "cluster": _CLUSTER,
    "agents": {ANY: _AGENT},
    "wires": WIRES,
    "people": {ANY: _PERSON},
}
#: Everything that one of our files may contain.
EVERYTHING: Schema = {**SCHEMA, **SECTIONS, **OWN}
