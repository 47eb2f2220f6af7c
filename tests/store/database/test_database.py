"""What both kinds of database promise to the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.store.database import Conflict, Database, DatabaseGone, Row, Transaction
from trunkline.store.database.worker_pool import MAX_WAITING

SET = "INSERT INTO policy_setting (name, value, updated_at) VALUES (?, ?, ?)"


def setting(name: str, value: str = "v", at: int = 1) -> Callable[[Transaction], int]:
    return lambda tx: tx.execute(SET, (name, value, at))


async def names(database: Database) -> list[str]:
    rows = await database.read(lambda tx: tx.all("SELECT name FROM policy_setting ORDER BY name"))
    return [row["name"] for row in rows]


async def test_what_was_written_is_read_at_once_as_rows_by_the_names_of_their_columns(database: Database) -> None:
    assert await database.write(setting("a", "x", 2**60)) == 1
    row = await database.read(lambda tx: tx.one("SELECT * FROM policy_setting WHERE name = ?", ("a",)))
    assert row == {"name": "a", "value": "x", "updated_at": 2**60}
    assert await database.read(lambda tx: tx.one("SELECT 1 FROM policy_setting WHERE name = ?", ("b",))) is None
    assert await database.read(lambda tx: tx.all("SELECT count(*) AS n FROM policy_setting")) == [{"n": 1}]


async def test_a_statement_tells_how_many_rows_it_touched_and_may_return_them(database: Database) -> None:
    def work(tx: Transaction) -> tuple[int, int, Row | None]:
        tx.execute(SET, ("a", "1", 0))
        tx.execute(SET, ("b", "2", 0))
        touched = tx.execute("UPDATE policy_setting SET updated_at = 5 WHERE updated_at = ?", (0,))
        none = tx.execute("UPDATE policy_setting SET updated_at = 6 WHERE name = ?", ("c",))
        return touched, none, tx.one("DELETE FROM policy_setting WHERE name = ? RETURNING value", ("b",))

    assert await database.write(work) == (2, 0, {"value": "2"})
    assert await names(database) == ["a"]


async def test_percent_signs_in_a_statement_mean_what_they_mean_in_sql(database: Database) -> None:
    await database.write(setting("50% of %s"))
    query = "SELECT name FROM policy_setting WHERE name LIKE '%of%' AND name = ?"
    assert await database.read(lambda tx: tx.one(query, ("50% of %s",))) == {"name": "50% of %s"}


async def test_texts_come_back_as_they_went_in(database: Database) -> None:
    text = "ü€😀 ﬁ \u2028 '\"\\ \r\n\t\x01"
    await database.write(setting(text, text))
    assert await names(database) == [text]


async def test_work_that_raises_is_undone_and_the_caller_hears_it(database: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.execute(SET, ("lost", "", 0))
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await database.write(work)
    assert await names(database) == []


async def test_work_in_one_commit_with_others_is_undone_alone(database: Database) -> None:
    held = threading.Event()

    def failing(tx: Transaction) -> None:
        tx.execute(SET, ("lost", "", 0))
        raise LookupError("no")

    def hold(tx: Transaction) -> None:
        assert held.wait(10)

    # While the first work holds the writers, the others gather behind it.
    holding = [asyncio.ensure_future(database.write(hold)) for _ in range(4)]
    works = [database.write(failing if number % 3 == 0 else setting(f"{number:02}")) for number in range(20)]
    waiting = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*holding)
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(answer, LookupError) for answer in answers] == [number % 3 == 0 for number in range(20)]
    assert await names(database) == [f"{number:02}" for number in range(20) if number % 3]


async def test_a_key_that_is_taken_is_a_conflict_and_so_is_one_that_leads_nowhere(database: Database) -> None:
    await database.write(setting("a"))
    with pytest.raises(Conflict):
        await database.write(setting("a"))
    stray = "INSERT INTO registration (agent_id, community_id, created_at) VALUES (?, ?, ?)"
    with pytest.raises(Conflict):
        await database.write(lambda tx: tx.execute(stray, ("nobody", "nowhere", 0)))
    await database.write(setting("b"))
    assert await names(database) == ["a", "b"]


async def test_work_cannot_go_on_after_a_conflict_even_if_it_looks_away(database: Database) -> None:
    await database.write(setting("a"))

    def stubborn(tx: Transaction) -> None:
        tx.execute(SET, ("b", "", 0))
        with pytest.raises(Conflict):
            tx.execute(SET, ("a", "", 0))
        with pytest.raises(Conflict):
            tx.one("SELECT 1")

    with pytest.raises(Conflict):
        await database.write(stubborn)
    assert await names(database) == ["a"]


@pytest.mark.parametrize("value", ["\ud800", 2**70], ids=["lone surrogate", "huge number"])
async def test_what_no_column_can_hold_is_a_value_error(database: Database, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        await database.write(lambda tx: tx.execute(SET, (value, "", value)))
    await database.write(setting("after"))
    assert await names(database) == ["after"]


async def test_reads_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseGone):
        await database.read(setting("a"))
    assert await names(database) == []


async def test_a_read_sees_one_state_however_long_it_takes(database: Database) -> None:
    begun, written = threading.Event(), threading.Event()

    def work(tx: Transaction) -> list[Row | None]:
        first = tx.one("SELECT count(*) AS n FROM policy_setting")
        begun.set()
        assert written.wait(10)
        return [first, tx.one("SELECT count(*) AS n FROM policy_setting")]

    reading = asyncio.ensure_future(database.read(work))
    await asyncio.to_thread(begun.wait, 10)
    await database.write(setting("a"))
    written.set()
    assert await reading == [{"n": 0}, {"n": 0}]


async def test_one_of_many_at_once_uses_up_what_can_be_used_once(database: Database) -> None:
    await database.write(setting("nonce", "new"))

    def use(tx: Transaction) -> int:
        return tx.execute("UPDATE policy_setting SET value = 'used' WHERE name = 'nonce' AND value = 'new'")

    assert sorted(await asyncio.gather(*(database.write(use) for _ in range(64)))) == [0] * 63 + [1]


async def test_a_defect_in_a_statement_reaches_the_caller_and_nobody_else(database: Database) -> None:
    wrong = asyncio.gather(*(database.write(lambda tx: tx.execute("SELEKT")) for _ in range(3)), return_exceptions=True)
    right = asyncio.gather(*(database.write(setting(name)) for name in "abc"))
    assert await right == [1, 1, 1]
    assert {type(error).__name__ for error in await wrong} <= {"OperationalError", "SyntaxError"}
    assert not any(isinstance(error, DatabaseGone) for error in await wrong)


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3), RecursionError("deep")], ids=repr)
async def test_no_exception_of_any_kind_stops_the_threads(database: Database, error: BaseException) -> None:
    def work(tx: Transaction) -> None:
        raise error

    for act in (database.write, database.read):
        # Kept from the loop: an exit that a task raises would end it.
        answer = await asyncio.wait_for(_caught(act(work)), PATIENCE_SECONDS)
        assert type(answer) is (RuntimeError if isinstance(error, StopIteration) else type(error))
    await database.write(setting("after"))
    assert await names(database) == ["after"]


async def _caught(work: object) -> BaseException | None:
    try:
        await work  # type: ignore[misc]
    except BaseException as error:
        return error
    return None


async def test_work_whose_caller_has_left_before_it_began_is_not_done(database: Database) -> None:
    held, busy = threading.Event(), threading.Semaphore(0)

    def hold(tx: Transaction) -> None:
        busy.release()
        assert held.wait(10)

    holding = [asyncio.ensure_future(database.write(hold)) for _ in range(1 if database.dialect == "sqlite" else 4)]
    for _ in holding:
        await asyncio.to_thread(busy.acquire, timeout=10)
    left = asyncio.ensure_future(database.write(setting("left")))
    stayed = asyncio.ensure_future(database.write(setting("stayed")))
    await asyncio.sleep(0)
    left.cancel()
    held.set()
    await asyncio.gather(*holding, stayed)
    assert await names(database) == ["stayed"]


async def test_closing_finishes_what_was_begun_and_takes_nothing_more(database: Database, database_url: str) -> None:
    waiting = [asyncio.ensure_future(database.write(setting(f"{number:02}"))) for number in range(30)]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*waiting) == [1] * 30
    for act in (database.write, database.read):
        with pytest.raises(DatabaseGone, match="closed"):
            await act(setting("late"))
    await database.close()


async def test_too_much_at_once_is_refused_rather_than_kept(sqlite_database: Database) -> None:
    held = threading.Event()
    waiting = [asyncio.ensure_future(sqlite_database.write(lambda tx: held.wait(10)))]
    waiting += [asyncio.ensure_future(sqlite_database.write(lambda tx: True)) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    held.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert answers[:-1] == [True] * MAX_WAITING
    assert isinstance(answers[-1], DatabaseGone)
    assert await sqlite_database.write(lambda tx: "again") == "again"
