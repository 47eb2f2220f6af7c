"""What a file in the workspace may say.

It comes with a repository that somebody else may have written. It may choose among what the user has set up, and tune
it. It may not say where requests go or whose key they carry, not start programs, and not decide what needs no approval,
unless the user's own file trusts the directory:

    trust = ["~/code/mine"]

That holds for everything below it, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trunkline.base.config_schema import ANY

#: What needs no approval anyway. A project may ask for less, never for more.
HARMLESS_TOOLS = frozenset({"Read", "Grep", "Glob"})


def _anything(value: Any) -> bool:
    return True


_asking = {"model": _anything, "max_tokens": _anything, "thinking_budget": _anything, "effort": _anything}
_behaving = {
    "provider": _anything,
    "max_turns": _anything,
    "system_prompt": _anything,
    "mode": lambda mode: mode == "default",
}

#: Like the schema: a key that is not here is refused, and so is a value that its test does not let pass.
ALLOWED: Mapping[str, Any] = {
    "default": {**_behaving, **_asking},
    # Not `provider`: under a name that the user gave a key to, that would send the key to another company.
    "providers": {ANY: {**_asking, "compat": _anything}},
    "profiles": {ANY: {**_behaving, **_asking, "extends": _anything, "compat": _anything, "mcp_servers": _anything}},
    "tools": {"auto_approve": lambda value: not value, "allow_list": lambda names: HARMLESS_TOOLS.issuperset(names)},
    "compact": _anything,
    "prices": _anything,
    # Nothing here heeds it; the chat bridge has a rule of its own for it.
    "bridge": _anything,
}


def restrict(table: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[tuple[str, ...], ...]]:
    """A checked table without what a project may not say, and the paths of that."""
    refused: list[tuple[str, ...]] = []
    return _walk(table, ALLOWED, (), refused), tuple(refused)


def _walk(
    table: Mapping[str, Any],
    allowed: Mapping[str, Any],
    path: tuple[str, ...],
    refused: list[tuple[str, ...]],
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in table.items():
        rule: Mapping[str, Any] | Callable[[Any], bool] | None = allowed.get(key, allowed.get(ANY))
        if isinstance(rule, Mapping):
            kept[key] = _walk(value, rule, (*path, key), refused)
        elif rule is not None and rule(value):
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
        if os.path.isabs(place) and _holds(os.path.realpath(place), here):
            return True
    return False


def _holds(place: str, path: str) -> bool:
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)
