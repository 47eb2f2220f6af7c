"""What was used, grouped as somebody asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trunkline.exchange.schema import FORM
from trunkline.exchange.usage_rows import BY, MICRO, UsageBy, used
from trunkline.store.database import Database, Transaction
from trunkline.store.database.opening import open_database

#: day, agent, person, model, turns, tokens in and out, from and into the cache, micro-dollars.
ROWS = (
    ("2026-11-16", "helper", "ana", "priced", 2, 100, 10, 5, 6, 2 * MICRO),
    ("2026-11-17", "helper", "ben", "priced", 1, 50, 5, 0, 0, MICRO // 2),
    ("2026-11-17", "other", "ana", "free", 3, 7, 3, 0, 0, 0),
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(f"sqlite:///{tmp_path / 'rows.db'}", FORM)

    def write(tx: Transaction) -> None:
        for row in ROWS:
            tx.execute(f"INSERT INTO usage VALUES ({', '.join('?' * len(row))})", row)

    await database.write(write)
    yield database
    await database.close()


async def found(
    database: Database, by: UsageBy, split: UsageBy | None = None, since: str | None = None, until: str | None = None
) -> list[dict[str, Any]]:
    return await database.read(partial(used, by=by, split=split, since=since, until=until))


@pytest.mark.parametrize(
    ("by", "turns"),
    [
        ("agent", {"helper": 3, "other": 3}),
        ("day", {"2026-11-16": 2, "2026-11-17": 4}),
        ("person", {"ana": 5, "ben": 1}),
        ("model", {"free": 3, "priced": 3}),
    ],
)
async def test_it_is_added_up_by_each_of_them_in_order(database: Database, by: UsageBy, turns: dict[str, int]) -> None:
    rows = await found(database, by)
    assert [(row[by], row["turns"]) for row in rows] == list(turns.items())
    assert by in BY


async def test_all_that_is_counted_is_told_and_money_in_dollars(database: Database) -> None:
    helper, other = await found(database, "agent")
    assert helper == {
        "agent": "helper", "turns": 3, "input_tokens": 150, "output_tokens": 15, "cache_read_tokens": 5,
        "cache_write_tokens": 6, "unpriced_tokens": 0, "usd": 2.5,
    }  # fmt: skip
    assert (other["usd"], other["unpriced_tokens"]) == (0.0, 10)


async def test_two_at_once_have_a_row_for_each_pair(database: Database) -> None:
    rows = await found(database, "day", "person")
    assert [(row["day"], row["person"], row["turns"]) for row in rows] == [
        ("2026-11-16", "ana", 2), ("2026-11-17", "ana", 3), ("2026-11-17", "ben", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("days", "turns"),
    [
        ({"since": "2026-11-17"}, [4]),
        ({"until": "2026-11-16"}, [2]),
        ({"since": "2026-11-16", "until": "2026-11-17"}, [2, 4]),
        ({"since": "2026-11-18"}, []),
    ],
)
async def test_the_first_and_the_last_day_count(database: Database, days: dict[str, str], turns: list[int]) -> None:
    assert [row["turns"] for row in await found(database, "day", None, days.get("since"), days.get("until"))] == turns
