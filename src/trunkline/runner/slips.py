"""Names in a configuration that are nearly right: they are refused, since what they were meant to say would not count.

Names that are like none of ours are left alone: pages and programs of others send members that we have no use for. Not
so in tables that only we have, and where a limit that is not understood would be none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.config_file import dotted
from trunkline.base.config_runner import AGENT
from trunkline.base.config_schema import Keys, check
from trunkline.base.nearest import UNKNOWN_KEY, VERY_ALIKE, nearest
from trunkline.core.faults import ConfigError

#: Tables in which every name must be known, and what to do about one that is not; empty: choose another.
_CLOSED: Mapping[Keys, str] = {
    ("brain",): "`brain.kind` says whose model decides; the agent's own settings, such as its `provider`, go into "
    "`brain.options`.",
    ("execution", "caps"): "",
    ("execution", "approval"): "",
}


def refuse(given: Mapping[str, Any]) -> None:
    """Refuse the first name in a configuration that is not known and nearly so.

    Raises:
        ConfigError: there is one; the text names what was probably meant.
    """
    for path, known in check(given, AGENT).unknown:
        told = hint(path, known)
        if told is not None:
            raise ConfigError(f"{UNKNOWN_KEY.capitalize()} `{dotted(path)}`.", hint=told)


def hint(path: Keys, known: Iterable[str]) -> str | None:
    """What to do about a name that is not known; None if it is left alone."""
    by_small = {name.lower(): name for name in known}
    meant = by_small.get(nearest(path[-1].lower(), by_small, VERY_ALIKE) or "")
    if meant is not None:
        return f"Did you mean `{dotted((*path[:-1], meant))}`?"
    if path[:-1] not in _CLOSED:
        return None
    return _CLOSED[path[:-1]] or f"There are {', '.join(f'`{name}`' for name in by_small.values())}."
