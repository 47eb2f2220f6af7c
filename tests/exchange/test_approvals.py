"""Approvals as rows: asked once, answered once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.exchange_world import NOON
from trunkline.core.events import ToolRequested
from trunkline.exchange import approvals
from trunkline.exchange.approvals import ApprovalStore, digest
from trunkline.exchange.schema import FORM
from trunkline.exchange.session_rows import SessionRow, SessionRows
from trunkline.store.database.opening import open_database

CALL = ToolRequested("c1", "Bash", "exec", {"command": "make"}, "make it")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ApprovalStore]:
    database = await open_database(f"sqlite:///{tmp_path / 'exchange.db'}", FORM)
    for id in ("s1", "s2"):
        await SessionRows(database).insert(SessionRow(id, "a", "/", "ana", NOON, NOON))
    try:
        yield ApprovalStore(database, lambda: NOON)
    finally:
        await database.close()


async def test_a_call_that_is_asked_about_again_has_the_same_row(store: ApprovalStore) -> None:
    asked = await asyncio.gather(*(store.asked("s1", "a", 1, CALL) for _ in range(5)))
    assert len({row.id for row in asked}) == 1
    assert (asked[0].tool, asked[0].args, asked[0].state) == ("Bash", {"command": "make"}, "pending")
    assert await store.count_pending() == 1


async def test_the_same_call_id_in_another_turn_or_session_is_another_question(store: ApprovalStore) -> None:
    rows = [
        await store.asked("s1", "a", 1, CALL),
        await store.asked("s1", "a", 2, CALL),
        await store.asked("s2", "a", 1, CALL),
    ]
    assert len({row.id for row in rows}) == 3
    await store.answered("s1", 1, "c1", approved=True, by="ana")
    assert [(row.session, row.turn) for row in await store.found("pending")] == [("s1", 2), ("s2", 1)]
    assert await store.sessions_waiting() == ["s1", "s2"]


@pytest.mark.parametrize("approved", [True, False])
async def test_the_first_answer_stays(store: ApprovalStore, approved: bool) -> None:
    asked = await store.asked("s1", "a", 1, CALL)
    await store.answered("s1", 1, "c1", approved=approved, by="ana")
    await store.answered("s1", 1, "c1", approved=not approved, by="ben")
    await store.ended("s1", 1, None, "The turn ended.")
    row = await store.get(asked.id)
    assert row is not None
    assert (row.state, row.decided_by) == ("approved" if approved else "denied", "ana")
    await store.explained(asked.id, "too risky")
    row = await store.get(asked.id)
    assert row is not None
    assert row.reason == (None if approved else "too risky")


async def test_what_nobody_waits_for_any_more_is_closed_with_the_reason(store: ApprovalStore) -> None:
    for call_id in ("c1", "c2", "c3"):
        await store.asked("s1", "a", 1, CALL.replace(call_id=call_id))
    await store.ended("s1", 1, "c1", "It was stopped.")
    await store.close_all("s1", "The process ended.", but=frozenset({(1, "c3")}))
    rows = {row.call_id: (row.state, row.reason) for row in await store.found(session="s1")}
    assert rows == {
        "c1": ("closed", "It was stopped."),
        "c2": ("closed", "The process ended."),
        "c3": ("pending", None),
    }


def test_an_answer_is_bound_to_the_tool_and_every_argument() -> None:
    others = [CALL.replace(name="Write"), CALL.replace(args={"command": "make it"}), CALL.replace(args={})]
    assert len({digest(call) for call in (CALL, *others)}) == 4
    assert digest(CALL) == digest(CALL.replace(call_id="c2", description="something else"))


async def test_of_more_than_a_list_holds_the_oldest_are_overdue_first(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "MOST_LISTED", 2)
    for call_id in ("c1", "c2", "c3"):
        await store.asked("s1", "a", 1, CALL.replace(call_id=call_id))
    assert [row.call_id for row in await store.overdue(NOON)] == ["c1", "c2"]
    assert await store.overdue(NOON - 1) == []
    await store.answered("s1", 1, "c1", approved=True, by="ana")
    assert [row.call_id for row in await store.overdue(NOON)] == ["c2", "c3"]
