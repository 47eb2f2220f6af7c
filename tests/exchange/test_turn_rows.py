"""Rows of turns, in both databases: written once, found by their words, and gone with their session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support import postgres
from trunkline.exchange.schema import FORM
from trunkline.exchange.session_rows import SessionQuery, SessionRow, SessionRows
from trunkline.exchange.turn_rows import MOST_TURNS, TurnQuery, TurnRow, TurnRows, mark
from trunkline.store.database import Database, Transaction
from trunkline.store.database.opening import open_database

AT = 1_771_400_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    require("PostgreSQL", postgres.available(), "on Debian: apt-get install postgresql")
    with postgres.shared_server() as found:
        yield found


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    if request.param == "sqlite":
        found = await open_database(f"sqlite:///{tmp_path}/exchange.db", FORM)
        yield found
        await found.close()
        return
    with request.getfixturevalue("server").database() as url:
        found = await open_database(url, FORM)
        yield found
        await found.close()


def row(turn: int = 1, session: str = "s1", at: int = AT, **more: Any) -> TurnRow:
    given = {
        "number": at * 1000, "session": session, "turn": turn, "seq": turn * 10, "agent": "helper", "by_person": "ana",
        "began_at": at, "ended_at": at + 5, "outcome": "success", "cause": "", "message": f"message {turn}",
        "answer": f"answer {turn}", **more,
    }  # fmt: skip
    return TurnRow(**given)


async def begun(database: Database, *sessions: str, **more: Any) -> None:
    for number, id in enumerate(sessions):
        given = {"agent": "helper", "by_person": "ana", **more}
        made = SessionRow(id, given["agent"], "/w", given["by_person"], AT + number, AT + number)
        await SessionRows(database).insert(made)


async def found(database: Database, words: str = "", limit: int = 50, **more: Any) -> list[int]:
    return [each.turn for each in await TurnRows(database).find(TurnQuery(words, **more), limit)]


async def test_turns_are_found_by_the_beginnings_of_all_words_newest_first(database: Database) -> None:
    await begun(database, "s1")
    turns = TurnRows(database)
    await turns.add(
        [
            row(1, message="Deploy the gateway", answer="It is up, with three replicas.", at=AT),
            row(2, message="And the crème brûlée?", answer="東京へ", at=AT + 1),
            row(3, message="Deploy it again", answer="Gateways are up.", at=AT + 2),
        ]
    )
    assert await found(database) == [3, 2, 1]
    assert await found(database, "deploy") == [3, 1]
    assert await found(database, "GATE up") == [3, 1]
    assert await found(database, "replic gateway") == [1]
    assert await found(database, "creme") == [2]
    assert await found(database, "京") == [2]
    assert await found(database, "three-replicas") == [1]
    assert await found(database, "eploy") == []


async def test_filters_and_pages_hold_for_lists_and_for_searches(database: Database) -> None:
    await begun(database, "s1")
    turns = TurnRows(database)
    await turns.add(
        [
            row(n, at=AT + n, agent="ab"[n % 2], by_person="xyz"[n % 3], outcome=("success", "error")[n % 2])
            for n in range(12)
        ]
    )
    for words in ("", "message"):
        assert await found(database, words, agent="a") == [10, 8, 6, 4, 2, 0]
        assert await found(database, words, outcome="error", person="y") == [7, 1]
        assert await found(database, words, person="nobody") == []
        pages, before = [], None
        while page := await turns.find(TurnQuery(words, agent="b", before=before), 4):
            pages.append([each.turn for each in page])
            before = page[-1].number
        assert pages == [[11, 9, 7, 5], [3, 1]]
    assert await turns.exists(AT * 1000)
    assert not await turns.exists(5)


@pytest.mark.parametrize(
    "words",
    [
        *('"', "'", "*", "(", "%", "''", "\0", "a\0b", "😀", "\ud800", "- - -", "a:b", "a AND", "a* OR b", "words : a"),
        *("NEAR(a, 2)", "a && !b", "x" * 10_000),
    ],
)
async def test_no_query_is_an_error(database: Database, words: str) -> None:
    await begun(database, "s1")
    await TurnRows(database).add([row()])
    await found(database, words)
    await found(database, words, agent=words, person=words)
    await SessionRows(database).find(SessionQuery(words, words, words), 10, None)


async def test_a_turn_that_is_written_again_replaces_its_row_and_its_words(database: Database) -> None:
    await begun(database, "s1")
    turns = TurnRows(database)
    await turns.add([row(message="old words")])
    await turns.add([row(message="new words", at=AT + 7, outcome="error")])
    (only,) = await turns.find(TurnQuery(), 10)
    assert (only.message, only.outcome, only.number) == ("new words", "error", AT * 1000)
    assert await found(database, "old") == []
    assert await found(database, "new") == [1]


async def test_turns_of_one_moment_are_told_apart(database: Database) -> None:
    await begun(database, "s1", "s2")
    turns = TurnRows(database)
    await turns.add([row(1), row(1, "s2"), row(2)])
    listed = await turns.find(TurnQuery(), 10)
    assert len({each.number for each in listed}) == 3
    assert [each.number for each in await turns.find(TurnQuery(before=listed[0].number), 10)] == [
        each.number for each in listed[1:]
    ]
    # More than there are numbers in a millisecond: a session that was forked very often.
    await turns.add([row(number, "s2") for number in range(1, 1200)])
    assert len(await turns.known("s2")) == 1199


async def test_what_has_no_word_in_it_is_found_nowhere(database: Database) -> None:
    await begun(database, "s1")
    await TurnRows(database).add([row()])
    assert await found(database, "***") == []
    assert await found(database, "  ") == [1]


async def test_rows_go_with_their_session_and_none_is_written_without_one(database: Database) -> None:
    await begun(database, "s1", "s2")
    turns = TurnRows(database)
    await turns.add([row(1, message="unusual"), row(1, "s2", at=AT + 1, message="unusual"), row(1, "s3", at=AT + 2)])
    await SessionRows(database).delete("s1")
    assert [each.session for each in await turns.find(TurnQuery("unusual"), 10)] == ["s2"]
    assert [each.session for each in await turns.find(TurnQuery(), 10)] == ["s2"]


async def test_a_failed_turn_is_told_until_its_session_is_used_again(database: Database) -> None:
    await begun(database, "s1", "s2", "s3")
    turns = TurnRows(database)
    await turns.add(
        [row(1, outcome="error"), row(1, "s2", outcome="unknown", at=AT + 1), row(1, "s3", outcome="cancelled")]
    )
    assert [each.session for each in await turns.failed(AT, 10)] == ["s2", "s1"]
    await turns.add([row(2, at=AT + 2)])
    assert [each.session for each in await turns.failed(AT, 10)] == ["s2"]
    assert await turns.failed(AT + 10, 10) == []


async def test_a_session_that_is_noted_again_meanwhile_is_not_done(database: Database) -> None:
    await begun(database, "s1")
    turns = TurnRows(database)
    assert await turns.unindexed(10) == []

    def note(tx: Transaction) -> None:
        mark(tx, "s1")

    await database.write(note)
    (first,) = await turns.unindexed(10)
    await database.write(note)
    await turns.indexed(first)
    (second,) = await turns.unindexed(10)
    await turns.indexed(second)
    assert await turns.unindexed(10) == []


async def test_sessions_are_found_by_their_turns_with_title_and_last_outcome(database: Database) -> None:
    await begun(database, "s1", "s2", "s3")
    await TurnRows(database).add(
        [
            row(1, "s1", message="First words"),
            row(2, "s1", message="then these", outcome="error", at=AT + 1),
            row(1, "s2", message="Others " * 100, at=AT + 2),
        ]
    )
    rows = SessionRows(database)
    listed = await rows.find(SessionQuery(), 10, None)
    assert [(each.id, each.title[:11], each.last_outcome) for each in listed] == [
        ("s3", "", None),
        ("s2", "Others Othe", "success"),
        ("s1", "First words", "error"),
    ]
    assert len(listed[1].title) == 200
    assert [each.id for each in await rows.find(SessionQuery("words"), 10, None)] == ["s1"]
    assert [each.id for each in await rows.find(SessionQuery("first these"), 10, None)] == []
    assert [each.id for each in await rows.find(SessionQuery(outcome="success"), 10, None)] == ["s2"]
    assert [each.id for each in await rows.find(SessionQuery(agent="helper", person="ana"), 10, "s2")] == ["s1"]
    assert await rows.find(SessionQuery(person="nobody"), 10, None) == []


@pytest.mark.parametrize("words", ["", "message"])
@pytest.mark.parametrize(
    "given", [{}, {"agent": "a"}, {"outcome": "error"}, {"person": "x"}, {"agent": "a", "before": 5}]
)
async def test_a_list_is_read_from_an_index_no_further_than_is_wanted(tmp_path: Path, words: str, given: Any) -> None:
    database = await open_database(f"sqlite:///{tmp_path}/exchange.db", FORM)
    asked: list[tuple[str, Any]] = []

    class Seen:
        dialect = "sqlite"

        def all(self, sql: str, parameters: Any = ()) -> list[Any]:
            asked.append((sql, parameters))
            return []

    class SeenDatabase:
        async def read(self, work: Any) -> Any:
            return work(Seen())

    await TurnRows(SeenDatabase()).find(TurnQuery(words, **given), 10_000)  # type: ignore[arg-type]
    ((sql, parameters),) = asked
    assert parameters[-1] == MOST_TURNS
    plan = [each["detail"] for each in await database.read(lambda tx: tx.all(f"EXPLAIN QUERY PLAN {sql}", parameters))]
    assert not [step for step in plan if "TEMP B-TREE" in step], plan
    await database.close()
