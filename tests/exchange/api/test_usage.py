"""What was used, over HTTP: between days, by two things at once, and for spreadsheets."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.exchange.api_world import World, world
from tests.support.loop import until
from trunkline.core.events import TurnEnded
from trunkline.core.usage import Usage
from trunkline.exchange.api.usage import csv_text
from trunkline.exchange.settings import AgentBudget
from trunkline.store.database import Transaction

ROWS = (
    ("2026-02-16", "fake", "ana", "dear", 2, 1000, 100, 0, 0, 1_500_000),
    ("2026-02-17", "fake", "ben", "dear", 1, 10, 1, 0, 0, 20_000),
    ("2026-02-17", "echo", "ana", "own", 3, 500, 50, 7, 8, 0),
    ("2026-02-18", "echo", "ana", "", 1, 0, 0, 0, 0, 0),
)


async def spend(net: World, *more: tuple[str | int, ...]) -> None:
    """Have something used."""

    def write(tx: Transaction) -> None:
        for row in (*ROWS, *more):
            tx.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    await net.exchange.budgets._database.write(write)


async def test_usage_is_told_as_soon_as_the_turn_has_been_shown_to_end(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session()
        reader = net.read(id)
        await net.say(id, who="talker")
        await until(lambda: net.fake.busy)
        net.fake.say(TurnEnded("success", Usage(3, 4)))
        await until(lambda: "turn_ended" in reader.kinds)
        (row,) = (await net.get("/api/usage")).json()["usage"]
        assert {name: row[name] for name in ("agent", "turns", "input_tokens", "output_tokens")} == {
            "agent": "fake", "turns": 1, "input_tokens": 3, "output_tokens": 4,
        }  # fmt: skip
        (row,) = (await net.get("/api/usage?by=person")).json()["usage"]
        assert (row["person"], row["turns"]) == ("talker", 1)
        (row,) = (await net.get("/api/usage?by=day")).json()["usage"]
        assert row["day"] == "2026-02-18"


@pytest.mark.parametrize("by", ["colour", "agent; DROP TABLE usage", "micro_usd"])
async def test_usage_by_anything_else_is_refused(tmp_path: Path, by: str) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/usage", params={"by": by})).status_code == 400


async def test_days_bound_what_is_told(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await spend(net)
        found = (await net.get("/api/usage?by=day&since=2026-02-17&until=2026-02-17", "observer")).json()["usage"]
        assert found == [
            {
                "day": "2026-02-17", "turns": 4, "input_tokens": 510, "output_tokens": 51, "cache_read_tokens": 7,
                "cache_write_tokens": 8, "unpriced_tokens": 550, "usd": 0.02,
            }
        ]  # fmt: skip
        assert len((await net.get("/api/usage?by=day")).json()["usage"]) == 3


async def test_days_are_split_by_who_or_what_used_it(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await spend(net)
        found = (await net.get("/api/usage?by=day&split=person")).json()["usage"]
        assert [(row["day"], row["person"], row["turns"]) for row in found] == [
            ("2026-02-16", "ana", 2), ("2026-02-17", "ana", 3), ("2026-02-17", "ben", 1), ("2026-02-18", "ana", 1),
        ]  # fmt: skip
        assert not any("budget" in row for row in (await net.get("/api/usage?by=agent&split=model")).json()["usage"])


async def test_budgets_are_told_also_of_agents_that_have_used_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, budget=AgentBudget(tokens_per_day=100)) as net:
        found = (await net.get("/api/usage")).json()
        assert found["usage"] == []
        assert found["budgets"]["echo"] == {"tokens_per_day": {"used": 0, "limit": 100}}


@pytest.mark.parametrize(
    "query",
    [
        "since=yesterday", "since=20260217", "since=2026-02-30", "until=2026-2-1", "since=2026-W07-1",
        "since=2026-02-18&until=2026-02-17", "by=day&split=day", "split=colour", "since=2026-02-17&since=2026-02-18",
    ],
)  # fmt: skip
@pytest.mark.parametrize("route", ["/api/usage", "/api/usage.csv"])
async def test_days_and_divisions_that_make_no_sense_are_refused(tmp_path: Path, route: str, query: str) -> None:
    async with world(tmp_path) as net:
        assert (await net.get(f"{route}?{query}")).status_code == 400


async def test_a_spreadsheet_gets_the_same_and_no_cost_that_nobody_knows(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await spend(net)
        found = await net.get("/api/usage.csv?by=day&split=model&since=2026-02-17", "observer")
        assert found.headers["content-type"].startswith("text/csv")
        assert found.headers["content-disposition"] == 'attachment; filename="usage-day-model-2026-02-17.csv"'
        rows = list(csv.DictReader(io.StringIO(found.text)))
        assert [(row["day"], row["model"], row["usd"]) for row in rows] == [
            ("2026-02-17", "dear", "0.020000"), ("2026-02-17", "own", ""), ("2026-02-18", "", "0.000000"),
        ]  # fmt: skip


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
async def test_a_name_is_no_formula(tmp_path: Path, name: str) -> None:
    async with world(tmp_path) as net:
        await spend(net, ("2026-02-19", name, "ana", 'a,"b"', 1, 1, 1, 0, 0, 0))
        found = (await net.get("/api/usage.csv?by=agent")).text
        assert [row[0] for row in csv.reader(io.StringIO(found, newline=""))][1:].count(f"'{name}") == 1


def test_other_texts_and_numbers_stay_as_they_are() -> None:
    assert csv_text([["a", 1, -2.5, 'with "quotes", and commas']]) == 'a,1,-2.5,"with ""quotes"", and commas"\r\n'
