"""What an administrator may set while the network runs: the longest texts.

What is not set is the default of `texts.TEXT_LIMITS`. Routes ask `text_limits`, which remembers for a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from trunkline.base import jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.network.network import Network
from trunkline.network.texts import TEXT_LIMITS, Limits
from trunkline.store.database import Transaction

#: The name of the setting.
NAME = "SNS_TEXT_LIMITS"
#: What a limit may be at most: beyond it, one text would fill a request.
MAX_LIMIT = 200_000
#: How long limits are remembered. Another process that set them is followed within this time.
REMEMBERED_MS = 15_000

#: Until when the limits of a network hold, and which they are.
_remembered: WeakKeyDictionary[Network, tuple[int, Limits]] = WeakKeyDictionary()


async def text_limits(network: Network) -> Limits:
    """The limits that hold now.

    Raises:
        Refused: 503, what the database holds are no limits.
    """
    now = network.now()
    until, known = _remembered.get(network, (now, TEXT_LIMITS))
    if now < until <= now + REMEMBERED_MS:
        return known
    known = await network.database.read(limits)
    _remembered[network] = (now + REMEMBERED_MS, known)
    return known


def limits(tx: Transaction) -> Limits:
    """The limits that the database holds.

    Raises:
        Refused: 503, what it holds are no limits.
    """
    row = tx.one("SELECT value FROM policy_setting WHERE name = ?", (NAME,))
    if row is None:
        return TEXT_LIMITS
    try:
        return merged(TEXT_LIMITS, jsontext.loads(row["value"].encode()))
    except ValueError:
        raise Refused(503, "Text limit policy is invalid.") from None


def change(tx: Transaction, now: int, changes: Any) -> Limits:
    """Set some limits, and return all of them. What was set before and is not named stays.

    Raises:
        Refused: 400, they are no limits.
    """
    try:
        changed = merged(limits(tx), changes)
    except ValueError as error:
        raise Refused(400, str(error)) from None
    tx.execute(
        "INSERT INTO policy_setting (name, value, updated_at) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (NAME, jsontext.dumps(changed).decode(), now),
    )
    return changed


def forget(network: Network) -> None:
    """Read the limits anew when they are next asked for."""
    _remembered.pop(network, None)


def merged(known: Limits, changes: Any) -> Limits:
    """The limits with some changed.

    Raises:
        ValueError: there is no such limit, or its value is none. The text says which.
    """
    if not isinstance(changes, Mapping):
        raise ValueError("textLimits must be an object of groups")
    result = {group: dict(members) for group, members in known.items()}
    for group, members in changes.items():
        if group not in result or not isinstance(members, Mapping):
            raise ValueError(f"textLimits: `{str(group)[:40]}` is not a group of limits")
        for name, value in members.items():
            if name not in result[group]:
                raise ValueError(f"textLimits: `{group}` has no limit `{str(name)[:40]}`")
            result[group][name] = _limit(group, name, value)
    return result


def _limit(group: str, name: str, value: Any) -> int:
    # `8000.0` is as whole as `8000`: JSON does not tell them apart.
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"textLimits: `{group}.{name}` must be a whole number from 1 to {MAX_LIMIT}")
    return int(value)
