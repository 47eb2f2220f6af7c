"""Every turn that has ended gets its row: as it ends, or afterwards from the log, and never twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_world import CommandedAgent, Life, World
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.core.turns import State
from trunkline.exchange.forking import fork
from trunkline.exchange.turn_rows import TurnQuery, TurnRow, TurnRows
from trunkline.store.database import Transaction


async def rows(life: Life) -> list[TurnRow]:
    return list(reversed(await life.switchboard.turns.find(TurnQuery(), 100)))


async def indexed(life: Life, *but: str) -> None:
    """Wait until every log is seen to, but these."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while [each.session for each in await life.switchboard.turns.unindexed(10)] != list(but):
            continue


async def test_a_turn_has_its_row_once_it_is_written_down(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "say one; say two")
        await life.rest(live)
        await life.say(live, "say three; crash")
        await life.rest(live)
        await life.say(live, "say four; wait")
        await until(lambda: live.session.status is State.RUNNING)
        live.session.stop("ben")
        await life.rest(live)
        found = await rows(life)
    assert [(row.turn, row.message, row.answer, row.outcome) for row in found] == [
        (1, "say one; say two", "onetwo", "success"),
        (2, "say three; crash", "three", "error"),
        (3, "say four; wait", "four", "cancelled"),
    ]
    assert [row.cause for row in found[1:]] == ["RuntimeError: told to (crashed)", "ben stopped it."]
    assert {row.by_person for row in found} == {"ana"}


async def test_a_passing_session_has_no_rows(tmp_path: Path) -> None:
    async with World(tmp_path, agent=CommandedAgent()).living() as life:
        live = await life.switchboard.open("agent", "s1", by="ana", passing=True)
        await life.say(live, "say one")
        await life.rest(live)
        assert await rows(life) == []
        assert await life.switchboard.turns.unindexed(10) == []


async def test_sessions_from_before_there_were_rows_get_them_after_a_start_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        for id in ("s1", "s2"):
            live = await life.open(id)
            for number in range(3):
                await life.say(live, f"say {id} {number}")
                await life.rest(live)
        before = await rows(life)
        await life.database.write(_forgotten)
        assert await rows(life) == []
    async with world.living() as life:
        await indexed(life)
        assert await rows(life) == before
    added: list[Any] = []
    monkeypatch.setattr(TurnRows, "add", lambda self, found: added.append(found))
    async with world.living() as life:
        await indexed(life)
    assert added == []


def _forgotten(tx: Transaction) -> None:
    tx.execute("DELETE FROM turn")
    tx.execute("UPDATE session SET unindexed = 1")


async def test_a_fork_has_the_turns_that_it_begins_with(tmp_path: Path) -> None:
    async with World(tmp_path, agent=CommandedAgent()).living() as life:
        live = await life.open()
        await life.say(live, "say one")
        await life.rest(live)
        await life.say(live, "say two; tool t1")
        await life.pending()
        made = await fork(life.switchboard, "s1", None, "carla")
        await indexed(life)
        own = [row for row in await rows(life) if row.session == made.id]
    assert [(row.turn, row.outcome) for row in own] == [(1, "success"), (2, "cancelled")]
    assert own[1].cause == "carla forked the session here."


async def test_a_turn_that_outlives_its_process_has_the_whole_of_it_in_its_row(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        await life.say(await life.open(), "say before; tool t1; say after")
        await until(lambda: world.asked)
    async with world.living() as life:
        live = await life.open()
        (pending,) = await life.switchboard.approvals.found("pending")
        await live.decide(pending, Approve(), "ana")
        await life.rest(live)
        await indexed(life)
        (row,) = await rows(life)
    assert (row.answer, row.outcome) == ("beforeafter", "success")


async def test_a_killed_process_leaves_no_turn_without_a_row(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    database = world.simulate()
    async with world.living() as life:
        live = await life.open()
        await life.say(live, "say one")
        await life.rest(live)
        await life.say(live, "say two; wait")
        await until(lambda: live.session.status is State.RUNNING)
        await live.written()
        database.crash()
        world.agents["agent"].gate.set()  # type: ignore[attr-defined]
        await live.session.at_rest()
    async with world.living() as life:
        await indexed(life)
        assert [row.turn for row in await rows(life)] == [1, 2]


async def test_a_log_that_cannot_be_read_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, agent=CommandedAgent())
    async with world.living() as life:
        for id in ("s1", "s2"):
            live = await life.open(id)
            await life.say(live, "say one")
            await life.rest(live)
        await life.database.write(_forgotten)
    (path,) = world.sessions.glob("s2*.log")
    path.write_bytes(b"nonsense")
    async with world.living() as life:
        await indexed(life, "s2")
        assert [row.session for row in await rows(life)] == ["s1"]
