"""Messages that did not arrive, or perhaps did not: who hears of them, and how long they stay."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, ScriptedPlatform, outbox, settled
from trunkline.chat.delivery import rows as rows_module
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.backoff import DISK_SECONDS
from trunkline.chat.delivery.disk import ChatDisk
from trunkline.chat.delivery.losses import LOST
from trunkline.chat.delivery.rows import PRUNE_SECONDS, SENT_DAYS, UNSETTLED_DAYS, Rows
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import DAY_SECONDS, ChatStore
from trunkline.chat.platform import Gone, NotNow, SendFailed, Unclear

pytestmark = pytest.mark.virtual_time


async def test_the_log_tells_of_each_without_its_text(store: ChatStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        platform = ScriptedPlatform()
        platform.script(SendFailed("the bot was blocked"), Unclear("broken pipe"), None)
        box = outbox(platform, store)
        for text in ("secret one", "secret two", "secret three"):
            await box.post("c", text).settled()
        await box.close()
    told = [record.getMessage() for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert told[0].startswith("Message 1 to `c` on scripted is failed: the bot was blocked")
    assert told[1].startswith("Message 2 to `c` on scripted is unknown: broken pipe")
    assert "secret" not in caplog.text


async def test_the_log_tells_of_what_a_crash_left(store: ChatStore, caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows(store)
    row = rows.add("scripted", "c", rows_module.TextBody("secret"))
    rows.save(row.replace(state=MessageState.SENDING, shown=row.body))

    box = outbox(ScriptedPlatform(), store)
    await box.start()
    await box.close()
    assert "Message 1 to `c` on scripted is unknown: The bridge ended while this was being sent." in caplog.text


async def test_the_chat_is_told_once_before_the_next_message_and_no_other_chat_is(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("the bot was blocked"), Unclear("broken pipe"))
    platform.notice_outcomes.append(SendFailed("the bot was blocked"))
    box = outbox(platform, store)
    assert await box.post("c", "one").settled() is MessageState.FAILED
    # The line is refused like the rest; that it was not told is not forgotten.
    assert await box.post("c", "two").settled() is MessageState.UNKNOWN
    await box.post("d", "other").settled()
    await box.post("c", "three").settled()
    await box.post("c", "four").settled()
    assert [(notice.chat, notice.text) for notice in platform.notices] == [("c", LOST), ("c", LOST)]
    assert platform.shown() == ["three", "four"]
    # Nor does a restart repeat it.
    await box.close()
    again = outbox(platform, store)
    await again.start()
    await again.post("c", "five").settled()
    assert len(platform.notices) == 2
    platform.script(SendFailed("blocked again"))
    await again.post("c", "six").settled()
    await again.post("c", "seven").settled()
    assert len(platform.notices) == 3
    await again.close()


async def test_a_chat_that_takes_the_line_later_gets_it_and_the_message_then(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("no"))
    platform.notice_outcomes.append(NotNow("slow down", 40))
    box = outbox(platform, store)
    await box.post("c", "one").settled()
    assert await box.post("c", "two").settled() is MessageState.SENT
    assert [notice.at for notice in platform.notices] == [0, 40]
    assert [call.at for call in platform.of("send")] == [0, 40]
    await box.close()


async def test_a_line_in_doubt_is_not_repeated(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("no"))
    platform.notice_outcomes.append(Unclear("broken pipe"))
    box = outbox(platform, store)
    for text in ("one", "two", "three"):
        await box.post("c", text).settled()
    assert len(platform.notices) == 1
    assert platform.shown() == ["two", "three"]
    await box.close()


async def test_closing_while_the_line_is_sent_leaves_the_message_for_later(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("no"))
    box = outbox(platform, store)
    await box.post("c", "one").settled()
    platform.gate.clear()
    box.post("c", "two")
    await until(lambda: platform.notices)
    closing = asyncio.ensure_future(box.close())
    await asyncio.sleep(0)
    platform.gate.set()
    await closing
    assert platform.shown() == []
    again = outbox(platform, store)
    await again.start()
    assert await again.drained(1)
    assert platform.shown() == ["two"]
    assert len(platform.notices) == 1
    await again.close()


async def test_without_the_disk_nothing_is_told(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("no"))
    box = outbox(platform, store)
    await box.post("c", "one").settled()
    posting = box.post("c", "two")
    store.execute("PRAGMA query_only = ON")
    assert not await box.drained(DISK_SECONDS * 2.5)
    assert platform.notices == []
    store.execute("PRAGMA query_only = OFF")
    assert await posting.settled() is MessageState.SENT
    assert len(platform.notices) == 1
    await box.close()


async def test_one_chat_is_asked_for_alone(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("no"))
    platform.script(SendFailed("no"), chat="d")
    box = outbox(platform, store)
    await box.post("c", "one").settled()
    await box.post("d", "two").settled()
    assert [row.summary for row in box.unsettled("c")] == ["one"]
    assert [row.summary for row in box.unsettled()] == ["one", "two"]
    assert box.unsettled("e") == []
    await box.close()


def test_looking_whether_there_are_any_decodes_none_and_reads_no_others(store: ChatStore) -> None:
    rows = Rows(store)
    assert not rows.has_unsettled("scripted")
    row = rows.add("scripted", "c", rows_module.TextBody("x"))
    rows.save(row.replace(state=MessageState.FAILED))
    # What cannot be read is not read.
    store.execute("UPDATE outbox SET body = ?", b"{")
    assert rows.has_unsettled("scripted")
    assert not rows.has_unsettled("other")
    statements: list[str] = []
    assert isinstance(store.database, ChatDisk)
    store.database.connection.set_trace_callback(statements.append)
    rows.has_unsettled("scripted")
    rows.untold("scripted", "c")
    store.database.connection.set_trace_callback(None)
    for statement in statements:
        plan = store.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert "INDEX outbox_un" in str(plan)


async def test_a_bridge_that_is_left_running_forgets_what_it_sent_long_ago(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)

    platform = ScriptedPlatform(LIMITS)
    platform.script(SendFailed("no"))
    box = outbox(platform, store)
    await box.start()
    await box.post("c", "lost").settled()
    await box.post("c", "sent").settled()
    now += SENT_DAYS * DAY_SECONDS + 1
    await box.post("c", "new").settled()
    assert texts(store) == ["lost", "new"]
    now += PRUNE_SECONDS - 1
    await box.post("c", "newer").settled()
    now += UNSETTLED_DAYS * DAY_SECONDS
    await box.post("c", "last").settled()
    assert texts(store) == ["last"]
    await box.close()


def texts(store: ChatStore) -> list[str]:
    return [
        str(rows_module._loaded(body).text)  # type: ignore[union-attr]  # they are words
        for (body,) in store.execute("SELECT body FROM outbox ORDER BY key").fetchall()
    ]


async def test_what_nobody_can_miss_is_forgotten(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("one")
    await asyncio.sleep(10)
    assert platform.messages
    platform.outcomes["c"].extend(Gone("the screen is closed") for _ in range(3))
    answer.feed(" two")
    await asyncio.sleep(10)
    answer.complete()
    posting = box.post("c", "hello")
    await settled(answer)
    await posting.settled()
    assert Rows(store).unsettled() == Rows(store).unfinished("scripted") == []
    assert len(platform.calls) == 3
    await box.close()
