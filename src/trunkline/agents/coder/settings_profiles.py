"""Named profiles of the configuration files, and what of them holds with which provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from trunkline.agents.coder.settings_values import names
from trunkline.base.config import Config, user_file
from trunkline.base.nearest import suggestion
from trunkline.core.faults import ConfigError

Table: TypeAlias = Mapping[str, Any]

#: What tells whose account a model is used with, other than key and address, which belong together.
ACCOUNT = ("region", "access_key_id", "secret_access_key", "session_token", "profile", "project", "credentials")
#: What a profile says that holds with any provider.
OF_NO_PROVIDER = frozenset({"max_turns", "system_prompt", "mode", "mcp_servers"})
#: What it says about one provider only.
OF_A_PROVIDER = frozenset({*ACCOUNT, "model", "api_key", "api_key_env", "base_url", "compat"})


def lineage(config: Config, name: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names of a profile and of those that it extends, the nearest first.

    Raises:
        ConfigError: there is none of that name, or it extends itself.
    """
    seen: list[str] = []
    while name is not None:
        if name in seen:
            raise ConfigError(f"The profile `{name}` extends itself: {' -> '.join([*seen, name])}.")
        table = config.get("profiles", name)
        if table is None:
            raise _no_profile(config, name, seen, environ)
        seen.append(name)
        name = table.get("extends")
    return tuple(seen)


def profile(config: Config, names: Sequence[str]) -> Table:
    """What the first of some profiles says, with what it has from the others."""
    merged: dict[str, Any] = {}
    for name in names:
        merged = _extended(merged, config.get("profiles", name))
    return merged


def _extended(upper: dict[str, Any], lower: Table) -> dict[str, Any]:
    inherited = dict(lower)
    if upper.get("provider", lower.get("provider")) != lower.get("provider"):
        inherited = {key: value for key, value in lower.items() if key not in OF_A_PROVIDER}
    merged = {**inherited, **upper}
    if "compat" in inherited and "compat" in upper:
        merged["compat"] = {**inherited["compat"], **upper["compat"]}
    return merged


def _no_profile(config: Config, name: str, seen: list[str], environ: Mapping[str, str]) -> ConfigError:
    known = config.get("profiles", default={})
    where = f", which `{seen[-1]}` extends" if seen else ""
    hint = f"There are {names(known)}." if known else f"Define it as `[profiles.{name}]` in `{user_file(environ)}`."
    if any(name in layer.table.get("profiles", ()) for layer in config.projects):
        own = user_file(environ)
        hint = f"The workspace has one, but only your own `{own}` makes profiles, unless it trusts the directory."
    return ConfigError(f"There is no profile `{name}`{where}.{suggestion(name, known)}", hint=hint)
