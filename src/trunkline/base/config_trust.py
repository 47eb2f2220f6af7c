"""What a file in the workspace may say.

It comes with a repository that somebody else may have written. It may narrow what the user has set, where the schema
says how a key does that (`Kind.narrows`). All else is not for it: where requests go and whose key they carry, what is
run, what needs no approval, which model answers. Unless the user's own file trusts the directory:

    trust = ["~/code/mine"]

That holds for everything below it, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.config_schema import ANY, OTHERS, SCHEMA, Keys, Kind, Schema
from trunkline.base.paths import is_within


def restrict(table: Mapping[str, Any], schema: Schema = SCHEMA) -> tuple[dict[str, Any], tuple[Keys, ...]]:
    """A checked table without what is not for projects, and the paths of that."""
    refused: list[Keys] = []
    # What is said of services is for them to heed or to refuse; an exchange is told by a file that its user names.
    mine = {key: value for key, value in table.items() if key not in OTHERS or schema is not SCHEMA}
    return _walk(mine, schema, (), refused), tuple(refused)


def _walk(table: Mapping[str, Any], schema: Schema, path: Keys, refused: list[Keys]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in table.items():
        rule: Kind | Schema | None = schema.get(key, schema.get(ANY))
        if isinstance(rule, Mapping) and isinstance(value, Mapping):
            kept[key] = _walk(value, rule, (*path, key), refused)
        elif isinstance(rule, Kind) and rule.narrows is not None:
            kept[key] = value
        else:
            refused.append((*path, key))
    return kept


def is_trusted(workspace: str, trusted: Iterable[str]) -> bool:
    """Whether a directory, or one above it, is among those that the user trusts."""
    here = os.path.realpath(workspace)
    for entry in trusted:
        place = os.path.expanduser(entry)
        # A relative entry would mean another directory each time.
        if os.path.isabs(place) and is_within(here, os.path.realpath(place)):
            return True
    return False


def leaves(path: str, workspace: str) -> bool:
    """Whether a file of a workspace is a link to something that does not lie in it."""
    return not is_within(os.path.realpath(path), os.path.realpath(workspace))
