"""A configuration in two: what may be written to a file, and what may not.

Secret is what is named so, and besides whatever holds one of the secret values: an address with a short key in it, or
a prompt that a key was pasted into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.runner import config_parts
from trunkline.runner.config import RunnerConfig, merged
from trunkline.runner.secrets import Secrets

Path = tuple[str, ...]


class Parted(Value):
    """Both parts; merged they are the whole."""

    public: Mapping[str, Any]
    secret: Mapping[str, Any]


def parted(config: RunnerConfig) -> Parted:
    """The parts of a configuration as it was written."""
    public, hidden = _apart(config.without_secrets(), Secrets(config.secrets()))
    return Parted(public, merged(config.secret_parts(), hidden))


def paths(members: Mapping[str, Any]) -> Iterator[Path]:
    """Where its values are."""
    for name, member in members.items():
        if isinstance(member, Mapping):
            yield from ((name, *rest) for rest in paths(member))
        elif member is not None:
            yield (name,)


def missing(members: Mapping[str, Any], needed: tuple[Path, ...]) -> list[str]:
    """Those of the places that nothing is in, as people write them."""
    return [".".join(path) for path in needed if config_parts.at(members, *path) is None]


def is_only_secrets(given: Mapping[str, Any]) -> bool:
    """Whether it says nothing but whose secrets it brings: values, or references to the environment."""
    return all(path == ("agentId",) or path[-1] == "env" for path in paths(config_parts.public(given)))


def _apart(members: Mapping[str, Any], known: Secrets) -> tuple[dict[str, Any], dict[str, Any]]:
    clean: dict[str, Any] = {}
    hidden: dict[str, Any] = {}
    for name, member in members.items():
        if isinstance(member, Mapping):
            clean[name], inner = _apart(member, known)
            if inner:
                hidden[name] = inner
        elif known.within(member):
            hidden[name] = member
        else:
            clean[name] = member
    return clean, hidden
