"""Where the secrets of an exchange's file are: in variables (`KEY_env`) and in the system's keyring (`KEY_keyring`).

What the exchange has read there, its agents need not have: `variables` are those that their programs must not inherit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base import keyring
from trunkline.base.chat_platforms import PLATFORMS
from trunkline.base.config_services import SECTIONS, Setting
from trunkline.core.faults import ConfigError
from trunkline.exchange.settings import WireSettings

#: How a key ends that names where a secret is.
ENV, KEYRING = "_env", "_keyring"
#: Members of a runner's configuration whose secrets are keys of models, which agents find in the environment as well.
_OF_MODELS = frozenset(("brain", "llm"))

Table = Mapping[str, Any]


def from_keyring(name: str) -> str:
    """An entry of the system's keyring.

    Raises:
        ConfigError: there is none.
    """
    try:
        found = keyring.entry(name)
    except TimeoutError:
        raise ConfigError("The keyring did not answer.", hint="Unlock it, and try again.") from None
    if found is None:
        hint = f"Put it there: `python -m keyring set {keyring.ENTRIES} {name}`."
        raise ConfigError(f"There is no entry `{name}` of `{keyring.ENTRIES}` in a keyring here.", hint=hint)
    return found


def usual(wire: str) -> dict[str, str]:
    """The keys of a wire that are secrets, each with the variable that holds it unless the file names another."""
    if wire in PLATFORMS:
        return dict(PLATFORMS[wire].secrets)
    settings = {key: kind for key, kind in SECTIONS[wire].items() if isinstance(kind, Setting) and kind.secret}
    return {key: kind.variable or "" for key, kind in settings.items()}


def named(wire: WireSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets of a wire that its file names, by their keys."""
    found = {key.removesuffix(ENV): environ.get(name, "") for key, name in wire.keys.items() if key.endswith(ENV)}
    return {**found, **wire.kept}


def variables(exchange: Table, wires: Mapping[str, Table], people: Mapping[str, Table]) -> Iterator[str]:
    """All that hold a secret of the file."""
    for table in (exchange, *wires.values(), *people.values()):
        yield from (name for key, name in table.items() if key.endswith(ENV))
    for wire, table in wires.items():
        yield from usual(wire).values()
        if isinstance(agents := table.get("agents"), Mapping):
            for agent in agents.values():
                yield from _of_runner(agent)


def _of_runner(agent: Table) -> Iterator[str]:
    from trunkline.runner import config_parts

    for keys, member in config_parts.places(agent):
        variable = config_parts.variable_of(member)
        if variable is not None and keys[0] not in _OF_MODELS:
            yield variable
