"""Messages as rows: kept until their turn has begun, and known again by their ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.exchange_world import NOON
from trunkline.core.events import UserMessage
from trunkline.exchange import messages as messages_module
from trunkline.exchange.messages import FORGOTTEN_AT_ONCE, KEEP_MS, Messages, storable
from trunkline.exchange.schema import FORM
from trunkline.exchange.session_rows import SessionQuery, SessionRow, SessionRows
from trunkline.store.database import Conflict, Database
from trunkline.store.database.opening import open_database


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(f"sqlite:///{tmp_path / 'exchange.db'}", FORM)
    for id in ("s1", "s2"):
        await SessionRows(database).insert(SessionRow(id, "a", "/", "ana", NOON, NOON))
    try:
        yield database
    finally:
        await database.close()


async def test_those_that_wait_are_given_back_whole_and_in_order_until_they_have_begun(database: Database) -> None:
    messages = Messages(database, lambda: NOON)
    said = [UserMessage(f"text {number}", ("a.txt",), f"m{number}", "ana") for number in range(3)]
    taken = [await messages.take("s1", message, 7) for message in said]
    assert [each.message for each in await messages.waiting("s1")] == said
    assert {each.seq for each in taken} == {7}
    await messages.placed(taken[0].number, 1)
    await messages.began("s1", 1, said[0])
    assert [each.message.id for each in await messages.waiting("s1")] == ["m1", "m2"]
    assert await messages.sessions_waiting() == ["s1"]
    for turn, message in enumerate(said[1:], 2):
        await messages.began("s1", turn, message)
    assert await messages.sessions_waiting() == []


async def test_an_id_is_a_sessions_own_and_taken_once(database: Database) -> None:
    messages = Messages(database, lambda: NOON)
    await messages.take("s1", UserMessage("one", id="m"), 0)
    with pytest.raises(Conflict):
        await messages.take("s1", UserMessage("two", id="m"), 0)
    await messages.take("s2", UserMessage("three", id="m"), 0)
    with pytest.raises(Conflict):
        await messages.take("gone", UserMessage("four", id="m"), 0)


async def test_a_message_that_is_taken_notes_that_its_session_was_used(database: Database) -> None:
    await Messages(database, lambda: NOON + 5).take("s1", UserMessage("one"), 0)
    found = await SessionRows(database).find(SessionQuery(), 10, None)
    rows = {each.id: each.updated_at for each in found}
    assert rows == {"s1": NOON + 5, "s2": NOON}


async def test_one_that_was_refused_after_all_can_be_sent_again(database: Database) -> None:
    messages = Messages(database, lambda: NOON)
    taken = await messages.take("s1", UserMessage("one", id="m"), 0)
    await messages.forget(taken.number)
    assert await messages.find("s1", "m") is None
    await messages.take("s1", UserMessage("one", id="m"), 0)


async def test_what_a_message_said_is_known_after_its_text_is_only_in_the_log(database: Database) -> None:
    messages = Messages(database, lambda: NOON)
    said = UserMessage("a secret", ("a.txt",), "m")
    await messages.take("s1", said, 0)
    await messages.began("s1", 1, said)
    known = await messages.find("s1", "m")
    assert known is not None
    assert (known.turn, known.message.text) == (1, "")
    assert known.says(said.replace(sender="ben"))
    assert not known.says(said.replace(text="another"))
    assert not known.says(said.replace(files=()))


async def test_ids_are_forgotten_after_a_week_but_not_those_of_messages_that_wait(database: Database) -> None:
    now = NOON
    messages = Messages(database, lambda: now)
    for id in ("begun", "waits"):
        await messages.take("s1", UserMessage(id, id=id), 0)
    await messages.began("s1", 1, UserMessage("begun", id="begun"))
    now += KEEP_MS + 1
    await messages.take("s1", UserMessage("later", id="later"), 0)
    assert await messages.find("s1", "begun") is None
    assert await messages.find("s1", "waits") is not None


async def test_old_ones_of_every_session_are_forgotten_a_few_at_a_time_and_without_a_look_at_the_others(
    database: Database,
) -> None:
    now = NOON
    messages = Messages(database, lambda: now)
    for number in range(FORGOTTEN_AT_ONCE + 1):
        message = UserMessage("old", id=f"m{number}")
        await messages.take("s1", message, 0)
        await messages.began("s1", number, message)
    now += KEEP_MS + 1
    await messages.take("s2", UserMessage("later", id="later"), 0)
    left = await database.read(lambda tx: tx.all("SELECT msg_id FROM message WHERE session = 's1'"))
    assert len(left) == 1
    plan = await database.read(lambda tx: tx.all(f"EXPLAIN QUERY PLAN {messages_module._FORGET}", (now, 1)))
    assert any("message_begun" in str(row["detail"]) for row in plan)
    assert not any(str(row["detail"]).startswith("SCAN") for row in plan)


def test_what_cannot_be_kept_is_replaced() -> None:
    assert storable(UserMessage("a\ud800b", ("\udfff",), "\ud800")) == UserMessage("a?b", ("?",), "?")
