"""What is configured, for `trunkline config show`: every value, who says it, and no secret."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.agents.coder.settings import load_config, resolve
from trunkline.agents.coder.settings_shown import shown
from trunkline.agents.coder.settings_values import all_secrets
from trunkline.base import jsontext
from trunkline.base.config import Config, Origin
from trunkline.base.config_file import dotted
from trunkline.base.config_schema import SERVICES, Keys
from trunkline.base.config_services import settings_of
from trunkline.base.config_settled import DEFAULT, EffectiveConfig, ValueSource, in_file
from trunkline.base.environ_secrets import environment_secrets, names_a_secret
from trunkline.base.printable import printable_line
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.runner.config_parts import SECRET_GROUPS

HIDDEN = "[redacted]"


class ConfigRow(Value):
    """One value."""

    path: Keys
    value: Any
    """None: nobody says anything."""
    source: ValueSource
    otherwise: str = ""
    """What holds then, in words."""


class Shown(Value):
    """Everything that is configured."""

    rows: tuple[ConfigRow, ...]
    in_use: Mapping[str, Any]
    """What the coding agent would work with, or the `problem` that keeps it from doing so."""
    warnings: tuple[str, ...]
    not_followed: tuple[Origin, ...]
    """What a workspace that nobody trusts says in vain."""
    advice: str
    """What to do about that."""


def gather(workspace: str, environ: Mapping[str, str]) -> Shown:
    """All that holds in a workspace, with secrets hidden.

    Raises:
        ConfigError: a file or a variable cannot be used.
    """
    config = load_config(workspace, environ)
    # The bridge has a workspace of its own, if the user says so.
    bridged = settled("bridge", None, environ, None)["workspace"]
    places = {"bridge": os.path.expanduser(bridged)} if bridged else {}
    services = [settled(service, None, environ, places.get(service, workspace)) for service in SERVICES]
    redactor = _redactor(config, environ)
    rows = [ConfigRow(path, value, source) for path, (value, source) in shown(config, environ).items()]
    for service in services:
        rows += _of_service(service)
    configs = (config, *(one.config for one in services))
    warnings = dict.fromkeys(each for one in configs for each in one.all_warnings())
    in_use = _in_use(workspace, environ, config)
    return Shown(
        tuple(row.replace(value=_hidden(row.path, row.value, redactor)) for row in rows),
        redactor.data(in_use),
        tuple(redactor.text(warning) for warning in warnings),
        tuple(dict.fromkeys(each for one in configs for each in one.not_followed())),
        config.advice,
    )


def _of_service(found: EffectiveConfig) -> Iterator[ConfigRow]:
    about = settings_of(found.service)
    for path, value, source in found.items():
        unsaid = source == DEFAULT and value in (None, [])
        yield ConfigRow(path, None if unsaid else value, source, about[path[1]].otherwise)
    for key, table in found.config.get(found.service, default={}).items():
        if isinstance(table, Mapping):
            for name, value in table.items():
                path = (found.service, key, name)
                origin = found.config.origin(*path)
                yield ConfigRow(path, value, in_file(origin) if origin else DEFAULT)


def _in_use(workspace: str, environ: Mapping[str, str], config: Config) -> dict[str, Any]:
    try:
        found = resolve({}, workspace, environ, config)
    except ConfigError as error:
        return {"problem": error.message, "hint": error.hint}
    model = found.model
    return {
        "provider": model.provider,
        "model": model.model,
        "base_url": model.base_url,
        "key": model.key_name,
        "profile": environ.get("TRUNKLINE_PROFILE") or None,
        "why": found.why,
    }


def _redactor(config: Config, environ: Mapping[str, str]) -> Redactor:
    secrets = environment_secrets(environ)
    for layer in (*config.layers, *config.projects):
        secrets |= all_secrets(layer.file.table, environ)
    return Redactor(secrets)


def _hidden(path: Keys, value: Any, redactor: Redactor) -> Any:
    """A value without what is secret in it. What only refers to a variable is none."""
    if path[-1] in SECRET_GROUPS:
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: _hidden((*path, str(key)), inner, redactor) for key, inner in value.items()}
    if isinstance(value, str) and names_a_secret(path[-1]) and path[-1] != "credentials" and "${" not in value:
        return HIDDEN
    return redactor.data(value)


# As text


def text(found: Shown, *, with_origin: bool) -> Iterator[str]:
    """It as TOML, with the origins as comments."""
    used = found.in_use
    if "problem" in used:
        yield f"# {printable_line(str(used['problem']))}"
    else:
        yield f"# {printable_line(str(used['why']))} The model is `{printable_line(str(used['model']))}`."
    table: Keys | None = None
    for row in found.rows:
        if row.path[:-1] != table:
            table = row.path[:-1]
            yield ""
            if table:
                yield f"[{dotted(table)}]"
        comment = f"  # {printable_line(str(row.source))}" if with_origin else ""
        if row.value is None:
            yield f"# {row.path[-1]}: {row.otherwise or 'not set'}{comment}"
        else:
            yield f"{dotted(row.path[-1:])} = {_toml(row.value)}{comment}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{dotted((str(key),))} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return printable_line(jsontext.dumps(str(value)).decode())
    return str(value).lower() if isinstance(value, bool) else str(value)


# As JSON


def record(found: Shown) -> dict[str, Any]:
    """It for programs."""
    return {
        "settings": [
            {"key": dotted(row.path), "value": _plain(row.value), "origin": _origin(row.source)} for row in found.rows
        ],
        "in_use": dict(found.in_use),
        "warnings": list(found.warnings),
    }


def _origin(source: ValueSource) -> dict[str, Any]:
    members = {"kind": source.kind, "name": source.name or None, "line": source.line, "column": source.column}
    return {name: value for name, value in members.items() if value is not None}


def _plain(value: Any) -> Any:
    """TOML has dates and times, which JSON has not."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
