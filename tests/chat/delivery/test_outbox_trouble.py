"""Messages that do not go through at once: tried again, given up, or in doubt, and never sent twice by themselves."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, After, ScriptedPlatform, outbox
from trunkline.chat.delivery import backoff as outbox_backoff
from trunkline.chat.delivery.backoff import DISK_SECONDS, LONGEST_ASKED_SECONDS, LONGEST_SECONDS, SendBackoff
from trunkline.chat.delivery.lane import TEXT_SECONDS
from trunkline.chat.delivery.outbox import CLOSE_SECONDS, CRASHED, WATCH_SECONDS
from trunkline.chat.delivery.rows import Rows
from trunkline.chat.delivery.states import OPEN, TABLE, UNSETTLED, Cause, MessageState, worst
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import NotNow, SendFailed, Unclear

pytestmark = pytest.mark.virtual_time

IDEMPOTENT = LIMITS.replace(idempotent=True)


async def test_one_chat_that_has_to_wait_holds_its_own_messages_and_no_other_chat(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(NotNow("slow down", 30), NotNow("slow down", 30))
    box = outbox(platform, store)
    for number in range(3):
        box.post("c", f"c{number}")
        box.post("d", f"d{number}")
    assert await box.drained(300)
    assert platform.shown("c") == ["c0", "c1", "c2"]
    assert platform.shown("d") == ["d0", "d1", "d2"]
    assert [call.at for call in platform.of("send", "d")] == [0, 0, 0]
    assert [(call.at, call.text) for call in platform.of("send")][:3] == [(0, "c0"), (30, "c0"), (60, "c0")]
    await box.close()


async def test_waits_grow_and_end_with_a_failure_that_is_kept_for_people(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A day takes the disk too long.
    monkeypatch.setattr(outbox_backoff, "MOST_SECONDS", 3600.0)
    platform = ScriptedPlatform()
    platform.script(*[NotNow("no network")] * 2000)
    box = outbox(platform, store)
    failing, second = box.post("c", "first"), box.post("c", "second")
    assert await failing.settled() is MessageState.FAILED
    assert await second.settled() is MessageState.FAILED
    times = [call.at for call in platform.of("send")]
    waits = [later - before for before, later in pairwise(times) if later > before]
    assert waits[:4] == [0.5, 1, 2, 4]
    assert max(waits) <= LONGEST_SECONDS
    assert 3600 <= times[-1] <= 3600 + LONGEST_SECONDS
    assert [(row.summary, row.problem) for row in box.unsettled()] == [
        ("first", "no network"), ("second", "no network"),
    ]  # fmt: skip
    platform.outcomes.clear()
    assert await box.post("c", "third").settled() is MessageState.SENT
    await box.close()


async def test_a_refusal_is_final_and_the_next_message_goes_on(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(SendFailed("the bot was blocked"))
    box = outbox(platform, store)
    first, second = box.post("c", "first"), box.post("c", "second")
    assert await first.settled() is MessageState.FAILED
    assert await second.settled() is MessageState.SENT
    assert platform.shown() == ["second"]
    assert [row.problem for row in box.unsettled()] == ["the bot was blocked"]
    await box.close()


@pytest.mark.parametrize("arrived", [True, False])
async def test_where_a_key_counts_a_message_in_doubt_is_sent_again_and_shown_once(
    store: ChatStore, arrived: bool
) -> None:
    platform = ScriptedPlatform(IDEMPOTENT)
    fault = Unclear("broken pipe")
    platform.script(After(fault) if arrived else fault, NotNow("busy", 3))
    box = outbox(platform, store)
    assert await box.post("c", "hello").settled() is MessageState.SENT
    assert platform.shown() == ["hello"]
    assert len({call.key for call in platform.calls}) == 1
    assert [call.at for call in platform.calls] == [0, 0.5, 3.5]
    await box.close()


async def test_where_keys_count_a_refusal_after_a_doubt_leaves_the_doubt(store: ChatStore) -> None:
    platform = ScriptedPlatform(IDEMPOTENT)
    platform.script(After(Unclear("broken pipe")), SendFailed("you were kicked"))
    box = outbox(platform, store)
    assert await box.post("c", "hello").settled() is MessageState.UNKNOWN
    await box.close()


@pytest.mark.parametrize("fault", [Unclear("broken pipe"), KeyError("a defect")])
async def test_where_keys_do_not_count_a_message_in_doubt_is_never_sent_again_by_itself(
    store: ChatStore, fault: Exception
) -> None:
    platform = ScriptedPlatform()
    platform.script(After(fault))
    box = outbox(platform, store)
    first, second = box.post("c", "first"), box.post("c", "second")
    assert await first.settled() is MessageState.UNKNOWN
    assert await second.settled() is MessageState.SENT
    assert platform.shown() == ["first", "second"]
    assert [row.state for row in box.unsettled()] == [MessageState.UNKNOWN]
    # Not even after a restart.
    await box.close()
    box = outbox(platform, store)
    await box.start()
    assert await box.drained(60)
    assert platform.shown() == ["first", "second"]
    await box.close()


async def test_a_platform_that_hangs_is_given_up_and_in_doubt(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.gate.clear()
    box = outbox(platform, store)
    posting = box.post("c", "hello")
    assert await posting.settled() is MessageState.UNKNOWN
    assert asyncio.get_running_loop().time() == TEXT_SECONDS
    await box.close()


async def test_a_change_that_the_platform_takes_later_is_tried_again(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "old")
    await posting.settled()
    platform.script(NotNow("slow down", 7), Unclear("broken pipe"))
    await posting.edit("new")
    assert await posting.settled() is MessageState.SENT
    assert [call.at for call in platform.of("edit")] == [1, 8, 9]
    assert platform.shown() == ["new"]
    assert box.unsettled() == []
    await box.close()


async def test_a_message_that_can_no_longer_be_changed_is_sent_again_once(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "old")
    await posting.settled()
    platform.messages.clear()
    await posting.edit("new")
    assert await posting.settled() is MessageState.SENT
    assert platform.shown() == ["new"]
    assert len({call.key for call in platform.of("send")}) == 2
    platform.messages.clear()
    await posting.edit("newer")
    assert await posting.settled() is MessageState.FAILED
    assert platform.shown() == []
    await box.close()


async def test_nothing_is_sent_while_the_disk_cannot_say_so(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "hello")
    store.execute("PRAGMA query_only = ON")
    await asyncio.sleep(DISK_SECONDS * 2.5)
    assert platform.calls == []
    store.execute("PRAGMA query_only = OFF")
    assert await posting.settled() is MessageState.SENT
    assert len(platform.calls) == 1
    await box.close()


async def test_what_was_sent_is_written_down_before_anything_else_is_sent(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.gate.clear()
    box = outbox(platform, store)
    first, second = box.post("c", "first"), box.post("c", "second")
    await until(lambda: platform.running)
    store.execute("PRAGMA query_only = ON")
    platform.gate.set()
    await asyncio.sleep(DISK_SECONDS * 2.5)
    assert platform.shown() == ["first"]
    store.execute("PRAGMA query_only = OFF")
    assert (await first.settled(), await second.settled()) == (MessageState.SENT, MessageState.SENT)
    assert platform.shown() == ["first", "second"]
    await box.close()


async def test_closing_does_not_wait_for_ever_and_what_hung_is_unknown_afterwards(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.gate.clear()
    box = outbox(platform, store)
    box.post("c", "first")
    await until(lambda: platform.running)
    await box.close()
    assert asyncio.get_running_loop().time() == CLOSE_SECONDS
    assert (platform.running, [row.state for row in Rows(store).unfinished("scripted")]) == (0, [MessageState.SENDING])
    box = outbox(platform, store)
    await box.start()
    assert [(row.state, row.problem) for row in box.unsettled()] == [(MessageState.UNKNOWN, CRASHED)]
    await box.close()


async def test_somebody_can_have_a_message_tried_again_while_the_bridge_runs(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    await box.start()
    platform.script(SendFailed("no rights"), After(Unclear("broken pipe")), SendFailed("no rights"))
    for text in ("one", "two", "three"):
        await box.post("c", text).settled()
    assert platform.shown() == ["two"]
    other = ChatStore(store.path)
    rows = Rows(other)
    one, two, three = rows.unsettled()
    assert [row.state for row in (one, two, three)] == [MessageState.FAILED, MessageState.UNKNOWN, MessageState.FAILED]
    assert rows.retry(one.id) is not None
    assert rows.retry(two.id) is not None
    assert rows.drop(three.id) is not None
    assert rows.retry(three.id) is None
    assert rows.retry(one.id) is None
    await asyncio.sleep(2 * WATCH_SECONDS)
    assert platform.shown() == ["two", "one", "two"]
    assert box.unsettled() == []
    other.close()
    await box.close()


async def test_a_last_text_that_was_not_taken_can_be_tried_again(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    await box.start()
    posting = box.post("c", "old")
    await posting.settled()
    platform.script(*[NotNow("busy", LONGEST_ASKED_SECONDS * 2)] * 100)
    await posting.edit("new")
    assert await posting.settled() is MessageState.FAILED
    platform.outcomes.clear()
    assert Rows(store).retry(box.unsettled()[0].id) is not None
    await box.close()
    store.close()
    again = ChatStore(store.path)
    box = outbox(platform, again)
    await box.start()
    assert await box.drained(60)
    assert platform.shown() == ["new"]
    assert len(platform.of("send")) == 1
    await box.close()
    again.close()


def test_every_state_can_be_left_except_the_last_ones_and_those_are_left_by_people() -> None:
    for state in MessageState:
        causes = {cause for at, cause in TABLE if at is state}
        if state in OPEN:
            assert causes
        if state in UNSETTLED:
            assert causes <= {Cause.RETRIED, Cause.RESUMED}
    # Only what is known not to be there becomes `pending` again by itself.
    assert {pair for pair, state in TABLE.items() if state is MessageState.PENDING} == {
        (MessageState.SENDING, Cause.LATER), (MessageState.SENT, Cause.GONE), (MessageState.FAILED, Cause.RETRIED),
        (MessageState.UNKNOWN, Cause.RETRIED),
    }  # fmt: skip
    assert worst([]) is MessageState.SENT
    assert worst([MessageState.SENT, MessageState.PENDING, MessageState.FAILED]) is MessageState.FAILED


def test_patience_is_bounded_however_often_one_is_told_to_come_back_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_backoff, "MOST_TRIES", 20)
    backoff = SendBackoff(lambda: 1.0)
    waits = [backoff.wait(0.0, 0.001) for _ in range(20)]
    assert waits[-1] is None
    assert None not in waits[:-1]
    backoff.succeeded()
    assert backoff.wait(0.0) == 1.0
    assert backoff.wait(0.0) == 2.0
    assert backoff.wait(0.0, 10 * LONGEST_ASKED_SECONDS) == LONGEST_ASKED_SECONDS + 1
