"""What was used, as rows: by agent, day, person or model, and by two of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from trunkline.store.database import Transaction

#: What usage can be grouped by.
UsageBy = Literal["agent", "day", "person", "model"]
BY: tuple[UsageBy, ...] = get_args(UsageBy)

#: What is added up.
SUMS = ("turns", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "micro_usd")

#: Micro-units per unit.
MICRO = 1_000_000

#: Tokens that nobody knows the price of: a row has one model, and what costs nothing has no known price.
_UNPRICED = "SUM(CASE WHEN micro_usd = 0 THEN input_tokens + output_tokens ELSE 0 END) AS unpriced_tokens"


def used(
    tx: Transaction,
    by: UsageBy,
    split: UsageBy | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[dict[str, Any]]:
    """What was used, with a row for each value of `by`, or for each pair with `split`; in their order.

    `since` and `until` are the first day and the last one.
    """
    groups = ", ".join(BY[BY.index(each)] for each in (by, split) if each is not None)
    sums = ", ".join(f"SUM({name}) AS {name}" for name in SUMS)
    bounds = {"day >= ?": since, "day <= ?": until}
    where = " AND ".join(bound for bound, day in bounds.items() if day is not None)
    sql = (
        f"SELECT {groups}, {sums}, {_UNPRICED} FROM usage {f'WHERE {where}' if where else ''} "
        f"GROUP BY {groups} ORDER BY {groups}"
    )
    return [_members(row, by, split) for row in tx.all(sql, [day for day in bounds.values() if day is not None])]


def _members(row: Mapping[str, Any], by: UsageBy, split: UsageBy | None) -> dict[str, Any]:
    counts = {name: int(row[name]) for name in (*SUMS, "unpriced_tokens")}
    usd = counts.pop("micro_usd") / MICRO
    return {each: row[each] for each in (by, split) if each is not None} | counts | {"usd": usd}
