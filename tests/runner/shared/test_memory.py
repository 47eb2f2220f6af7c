"""What a runner remembers is the same in a file and in rows; rows are kept apart for each agent, and written under a
lease alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from trunkline.core.faults import StoreUnavailable
from trunkline.runner import state as module
from trunkline.runner.holding import LeaseLost
from trunkline.runner.shared.leases import Lease, Leases
from trunkline.runner.shared.memory import SharedMemory
from trunkline.runner.shared.schema import FORM
from trunkline.runner.state import AgentState, RunnerMemory
from trunkline.store.database import Database
from trunkline.store.database.opening import open_database
from trunkline.store.database.postgres_session import PostgresSession

#: Half a character, and what PostgreSQL takes in no text.
ODD = "\ud800 and \0"


@pytest.fixture
async def session(postgres_url: str) -> AsyncIterator[PostgresSession]:
    made = PostgresSession(postgres_url)
    yield made
    made.close()


@pytest.fixture
async def leases(rows: Database) -> Leases:
    return Leases(rows, "a launcher", lambda agent_id: None)


async def taken(leases: Leases, agent_id: str) -> Lease:
    lease = await leases.take(agent_id)
    assert lease is not None
    return lease


@pytest.fixture(params=["file", pytest.param("rows", marks=pytest.mark.slow)])
def server(request: pytest.FixtureRequest) -> str | None:
    """The URL of a database for the kind that needs one."""
    return None if request.param == "file" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def memory(server: str | None, tmp_path: Path) -> AsyncIterator[RunnerMemory]:
    """One kind after the other."""
    if server is None:
        kept = AgentState(str(tmp_path), "a")
        yield kept
        kept.close()
        return
    rows, session = await open_database(server, FORM), PostgresSession(server)
    yield SharedMemory(session, await taken(Leases(rows, "a launcher", lambda agent_id: None), "a"))
    session.close()
    await rows.close()


def numbers(memory: RunnerMemory) -> list[int]:
    return [kept.data["n"] for kept in memory.oldest_feedback(100)]


async def test_feedback_waits_in_order_up_to_a_limit_until_it_is_told(
    memory: RunnerMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FEEDBACK", 5)
    for number in range(8):
        memory.add_feedback({"n": number, "text": ODD})
    assert numbers(memory) == [3, 4, 5, 6, 7]
    oldest = memory.oldest_feedback(2)
    assert [kept.data for kept in oldest] == [{"n": 3, "text": ODD}, {"n": 4, "text": ODD}]
    memory.remove_feedback(kept.key for kept in oldest)
    memory.remove_feedback(())
    assert numbers(memory) == [5, 6, 7]


async def test_writes_are_open_until_their_fate_is_known(memory: RunnerMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WRITTEN", 2)
    first, second = memory.begin_write({"action": "comment", "body": ODD}), memory.begin_write({"action": "x"})
    opened = memory.open_writes()
    assert [(write.key, write.data["action"]) for write in opened] == [(first, "comment"), (second, "x")]
    assert opened[0].data["body"] == ODD
    assert all(0 <= write.age < 60 for write in opened)
    memory.end_write(first, "c1")
    assert [write.key for write in memory.open_writes()] == [second]
    for id in ("c2", "c2", "c3"):
        memory.end_write(memory.begin_write({}), id)
    memory.end_write(second)
    assert memory.open_writes() == []
    assert [memory.is_written(id) for id in ("c1", "c2", "c3", ODD)] == [False, True, True, False]


async def test_issues_are_known_by_their_report_and_by_how_far_they_are(memory: RunnerMemory) -> None:
    assert memory.issue("thread:1") is None
    memory.set_issue("thread:1", "making", {"n": 1})
    memory.set_issue(ODD, "making", {"n": 2})
    memory.set_issue("thread:1", "made", {"n": 3})
    assert memory.issue("thread:1") == ("made", {"n": 3})
    assert memory.issues("making") == [(ODD, {"n": 2})]
    memory.drop_issue(ODD)
    assert memory.issues("making") == []


async def test_numbers_count_up_each_by_its_name(memory: RunnerMemory) -> None:
    assert [memory.next_number(name) for name in ("one", "one", "other", "one")] == [0, 1, 0, 2]


@pytest.mark.slow
async def test_agents_do_not_see_each_others_rows_and_the_next_launcher_sees_all(
    rows: Database, session: PostgresSession, leases: Leases
) -> None:
    for agent, n in (("one", 1), ("other", 2)):
        memory = SharedMemory(session, await taken(leases, agent))
        memory.add_feedback({"n": n})
        memory.set_issue("thread:1", "made", {"n": n})
        memory.begin_write({"n": n})
        memory.end_write(memory.begin_write({}), f"c{n}")
        assert memory.next_number("count") == 0
    await leases.let_go("one")
    next_launcher = Leases(rows, "another launcher", lambda agent_id: None)
    again = SharedMemory(session, await taken(next_launcher, "one"))
    assert numbers(again) == [1]
    assert again.issues("made") == [("thread:1", {"n": 1})]
    assert [write.data for write in again.open_writes()] == [{"n": 1}]
    assert [again.is_written(id) for id in ("c1", "c2")] == [True, False]
    assert again.next_number("count") == 1


@pytest.mark.slow
async def test_whoever_lost_the_lease_writes_nothing_down_any_more(
    rows: Database, session: PostgresSession, leases: Leases
) -> None:
    memory = SharedMemory(session, await taken(leases, "a"))
    key = memory.begin_write({"n": 1})
    await rows.write(lambda tx: tx.execute("UPDATE runner_lease SET expires_at = 0"))
    writing: list[Callable[[], object]] = [
        lambda: memory.add_feedback({}),
        lambda: memory.remove_feedback([1]),
        lambda: memory.begin_write({}),
        lambda: memory.end_write(key, "c1"),
        lambda: memory.set_issue("thread:1", "made", {}),
        lambda: memory.drop_issue("thread:1"),
        lambda: memory.next_number("count"),
    ]
    for write in writing:
        with pytest.raises(LeaseLost):
            write()
    with pytest.raises(LeaseLost):
        async with memory.turn(1):
            raise AssertionError("no cycle begins")
    # For whoever is the next one, it is still open.
    assert [write.key for write in memory.open_writes()] == [key]
    assert not memory.is_written("c1")


@pytest.mark.slow
async def test_a_connection_that_broke_is_replaced_and_a_server_that_is_gone_is_told_of(
    postgres_url: str, session: PostgresSession, leases: Leases
) -> None:
    memory = SharedMemory(session, await taken(leases, "a"))
    memory.add_feedback({"n": 1})
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await asyncio.to_thread(memory.add_feedback, {"n": 2})
    assert numbers(memory) == [1, 2]
    elsewhere = SharedMemory(PostgresSession("postgresql:///nothing?host=/nowhere"), await taken(leases, "b"))
    with pytest.raises(StoreUnavailable, match="database cannot be used now"):
        elsewhere.add_feedback({})
