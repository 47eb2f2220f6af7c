"""What is configured for the coding agent, key by key, and who says so: for people, not for the agent.

Which provider is used in the end, and with which key, depends on more than one key at a time: `resolve` decides it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.agents.coder.settings_flags import flags
from trunkline.base.config import Config
from trunkline.base.config_schema import OTHERS, SCHEMA, Keys, Kind, kind_at
from trunkline.base.config_settled import DEFAULT, ValueSource, in_file
from trunkline.base.vocabulary import DEFAULT_ALLOW
from trunkline.models.providers import PROVIDERS

#: What holds where nobody says anything, and it is one value.
DEFAULTS: Mapping[Keys, Any] = {
    ("default", "mode"): "default",
    ("tools", "auto_approve"): False,
    ("tools", "allow_list"): list(DEFAULT_ALLOW),
    ("tools", "allow_outside"): False,
    ("session", "enabled"): True,
    ("compact", "enabled"): True,
}
#: Variables of the command line that stand for a key besides those of the model.
_MORE_VARIABLES = ("mode", "system_prompt")


def shown(config: Config, environ: Mapping[str, str]) -> dict[Keys, tuple[Any, ValueSource]]:
    """Every key that somebody says something of, or that has a default; in the schema's order.

    Raises:
        ConfigError: a variable holds no number where one is wanted.
    """
    found = {path: (value, DEFAULT) for path, value in DEFAULTS.items()}
    for path, value in _leaves(config.table):
        if path[0] not in OTHERS and (origin := config.origin(*path)) is not None:
            found[path] = (value, in_file(origin))
    for path, (value, _) in tuple(found.items()):
        if (narrowing := config.narrowed_by(value, *path)) is not None:
            found[path] = (config.narrowed(value, *path), in_file(narrowing))
    found |= dict(_variables(environ))
    order = {section: number for number, section in enumerate(SCHEMA)}
    return dict(sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][:-1])))


def _leaves(table: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    for key, value in table.items():
        here = (*path, key)
        if isinstance(value, Mapping) and not isinstance(kind_at(here), Kind):
            yield from _leaves(value, here)
        else:
            yield here, value


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[Keys, tuple[Any, ValueSource]]]:
    """What variables say: those of providers, and those that stand for flags."""
    for name, provider in PROVIDERS.items():
        for option, variable in provider.variables.items():
            if value := environ.get(variable):
                yield ("providers", name, option), (value, ValueSource("variable", variable))
    said = flags({}, environ)
    said |= {key: value for key in _MORE_VARIABLES if (value := environ.get(f"TRUNKLINE_{key.upper()}"))}
    for key in said:
        # The others are no keys of a file; what comes of them is seen in what is used.
        if kind_at(("default", key)) is not None:
            yield ("default", key), (said[key], ValueSource("variable", f"TRUNKLINE_{key.upper()}"))
