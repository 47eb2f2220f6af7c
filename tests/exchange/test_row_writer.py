"""Rows that are written in order, also while the database does not always answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_world import CommandedAgent, World
from tests.support.loop import until
from trunkline.core.turns import State
from trunkline.exchange.row_writer import RowWriter
from trunkline.store.database import DatabaseGone


class Rows:
    """Where rows go, unless the database is gone."""

    def __init__(self) -> None:
        self.is_gone = False
        self.tries = 0
        self.kept: list[int] = []

    async def keep(self, row: int) -> None:
        self.tries += 1
        await asyncio.sleep(0)
        if self.is_gone:
            raise DatabaseGone("it is locked")
        if row < 0:
            raise ValueError("no such row")
        self.kept.append(row)


@pytest.mark.virtual_time
async def test_rows_are_tried_again_in_order_until_the_database_answers() -> None:
    rows, writer = Rows(), RowWriter("s")
    rows.is_gone = True
    for number in (1, 2, -1, 3):
        writer.write(lambda number=number: rows.keep(number))  # type: ignore[misc]
    for _ in range(3):
        with pytest.raises(DatabaseGone, match="it is locked"):
            await writer.written()
    await asyncio.sleep(60)
    assert rows.tries < 30
    assert writer.is_busy
    rows.is_gone = False
    await writer.written()
    assert rows.kept == [1, 2, 3]
    await writer.written()
    assert not writer.is_busy


async def test_a_row_without_haste_keeps_its_place_and_goes_with_the_next_or_with_who_waits() -> None:
    done: list[str] = []

    async def row(name: str) -> None:
        done.append(name)

    rows = RowWriter("s1")
    for wait in (rows.written, rows.end):
        rows.write_later(lambda: row("first"))
        assert rows.is_busy
        rows.write_later(lambda: row("second"))
        await asyncio.sleep(0)
        assert done == []
        await wait()
        assert (done, rows.is_busy) == (["first", "second"], False)
        done.clear()
    rows = RowWriter("s1")
    rows.write_later(lambda: row("first"))
    rows.write(lambda: row("second"))
    await until(lambda: not rows.is_busy)
    rows.write_later(lambda: row("by itself"))
    await until(lambda: not rows.is_busy)
    assert done == ["first", "second", "by itself"]


async def test_the_end_tries_each_row_once_and_waits_for_no_database() -> None:
    rows, writer = Rows(), RowWriter("s")
    rows.is_gone = True
    for number in range(5):
        writer.write(lambda number=number: rows.keep(number))  # type: ignore[misc]
    await writer.end()
    assert (rows.kept, writer.is_busy, rows.tries <= 6) == ([], False, True)


@pytest.mark.virtual_time
async def test_a_question_that_was_asked_while_the_database_was_gone_is_seen_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        approvals = life.switchboard.approvals
        asked = approvals.asked

        async def gone(*args: Any) -> Any:
            raise DatabaseGone("it is locked")

        monkeypatch.setattr(approvals, "asked", gone)
        await life.say(live, "tool t1")
        await until(lambda: live.session.status is State.AWAITING_APPROVAL)
        with pytest.raises(DatabaseGone):
            await live.written()
        monkeypatch.setattr(approvals, "asked", asked)
        await live.written()
        (approval,) = await approvals.found("pending")
        assert approval.call_id == "t1"
