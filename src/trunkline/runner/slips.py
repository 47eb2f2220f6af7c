"""Names in a configuration that are nearly right: they are refused, since what they were meant to say would not count.

Names that are like none of ours are left alone: pages and programs of others send members that we have no use for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trunkline.base.nearest import VERY_ALIKE, nearest
from trunkline.core.faults import ConfigError


def refuse(members: Mapping[str, Any], known: Iterable[str], where: str = "", otherwise: str | None = None) -> None:
    """Refuse the first name that is not known and nearly so.

    Args:
        where: what the members are members of, with a dot behind it.
        otherwise: what to do about names that are like none of ours; then these are refused, too.

    Raises:
        ConfigError: there is one; the text names what was probably meant.
    """
    by_small = {name.lower(): name for name in known}
    for name in members:
        if name in by_small.values():
            continue
        meant = by_small.get(nearest(name.lower(), by_small, VERY_ALIKE) or "")
        if meant is not None:
            raise ConfigError(f"`{where}{name}` is not known.", hint=f"Did you mean `{where}{meant}`?")
        if otherwise is not None:
            raise ConfigError(f"`{where}{name}` is not known.", hint=otherwise)
