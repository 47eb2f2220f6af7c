"""Messages on their way out: on disk first, in order, changed when asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, ScriptedPlatform, outbox
from trunkline.chat.delivery.rows import Rows, TextBody
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Button, NotNow

pytestmark = pytest.mark.virtual_time


def states(store: ChatStore) -> list[tuple[str, str]]:
    rows = store.execute("SELECT state, message FROM outbox ORDER BY key").fetchall()
    return [(state, message.decode() if message else "") for state, message in rows]


async def test_what_is_posted_is_on_disk_at_once_and_then_sent(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "hello", reply_to="in-1")
    assert states(store) == [("pending", "")]
    assert await posting.settled() is MessageState.SENT
    assert states(store) == [("sent", "m1")]
    assert platform.calls[0].reply_to == "in-1"
    await box.close()


async def test_the_disk_knows_that_a_message_is_being_sent_before_the_platform_does(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.gate.clear()
    box = outbox(platform, store)
    box.post("c", "hello")
    await until(lambda: platform.running)
    assert states(store) == [("sending", "")]
    platform.gate.set()
    assert await box.drained(5)
    await box.close()


async def test_a_long_text_is_sent_in_order_with_the_buttons_under_the_last_part(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "word " * 50, buttons=[Button("Yes", "y")], reply_to="in-1")
    assert await posting.settled() is MessageState.SENT
    assert " ".join(platform.shown()) == "word " * 50
    assert states(store) == [("sent", "m1"), ("sent", "m2"), ("sent", "m3")]
    assert [len(message.buttons) for message in platform.messages] == [0, 0, 1]
    assert [call.reply_to for call in platform.calls] == ["in-1", None, None]
    await box.close()


async def test_a_blank_text_is_nothing_to_send(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    assert await box.post("c", " \n").settled() is MessageState.SENT
    assert platform.calls == []
    await box.close()


async def test_a_posting_is_changed_and_the_latest_text_wins(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "May I?", buttons=[Button("Yes", "y")])
    await posting.settled()
    await posting.edit("May I? Wait.")
    await posting.edit("May I? Yes.")
    assert await posting.settled() is MessageState.SENT
    assert platform.shown() == ["May I? Yes."]
    assert platform.messages[0].buttons == ()
    assert [(call.at, call.text) for call in platform.of("edit")] == [(1, "May I? Yes.")]
    await box.close()


async def test_a_posting_that_is_changed_before_it_was_sent_is_sent_as_changed(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "old")
    await posting.edit("new")
    assert await posting.settled() is MessageState.SENT
    assert [call.text for call in platform.calls] == ["new"]
    await box.close()


async def test_a_change_may_need_more_messages_or_fewer(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    posting = box.post("c", "a" * 90)
    await posting.settled()
    await posting.edit("b" * 150, [Button("Yes", "y")])
    await posting.settled()
    assert platform.shown() == ["b" * 100, "b" * 50]
    assert [len(message.buttons) for message in platform.messages] == [0, 1]
    await posting.edit("c")
    await posting.settled()
    assert platform.shown() == ["c", "b" * 50]
    assert [len(message.buttons) for message in platform.messages] == [0, 0]
    await box.close()


async def test_where_messages_cannot_be_changed_the_new_text_is_posted(store: ChatStore) -> None:
    platform = ScriptedPlatform(LIMITS.replace(edits=False))
    box = outbox(platform, store)
    posting = box.post("c", "May I?")
    await posting.settled()
    await posting.edit("Yes.")
    assert await posting.settled() is MessageState.SENT
    assert platform.shown() == ["May I?", "Yes."]
    await box.close()


async def test_files_are_sent_in_their_turn_and_a_file_that_is_gone_is_a_failure(
    store: ChatStore, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    box.post("c", "before")
    box.post_file("c", str(tmp_path / "a.png"), "image", "a.png")
    gone = box.post_file("c", str(tmp_path / "b.png"), "image", "b.png")
    box.post("c", "after")
    assert await box.drained(60)
    assert platform.shown() == ["before", "[image] a.png", "after"]
    assert await gone.settled() is MessageState.FAILED
    assert box.unsettled()[0].summary == "[image] b.png"
    assert "no longer exists" in box.unsettled()[0].problem
    await box.close()


async def test_what_was_posted_in_a_block_that_failed_was_not_posted(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)

    def fail() -> None:
        with store.together():
            box.post("c", "hello")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.together():
        box.post("c", "again")
        assert not box._lanes
    assert await box.drained(60)
    assert platform.shown() == ["again"]
    await box.close()


async def test_draining_ends_in_time_and_closing_leaves_the_rest_on_disk(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(None, NotNow("slow down", 600))
    box = outbox(platform, store)
    for number in range(3):
        box.post("c", str(number))
    assert not await box.drained(5)
    await box.close()
    await box.close()
    box.post("c", "3")
    assert [state for state, _ in states(store)] == ["sent", "pending", "pending", "pending"]
    await asyncio.sleep(3600)
    assert platform.shown() == ["0"]


async def test_closing_gives_a_message_that_is_on_its_way_time_to_arrive(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.gate.clear()
    box = outbox(platform, store)
    box.post("c", "first")
    box.post("c", "second")
    await until(lambda: platform.running)
    asyncio.get_running_loop().call_later(2, platform.gate.set)
    await box.close()
    assert [state for state, _ in states(store)] == ["sent", "pending"]


async def test_lanes_and_messages_are_let_go_of_when_there_is_nothing_to_do(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    for number in range(20):
        box.post(f"chat-{number}", "hello")
    assert await box.drained(60)
    await until(lambda: all(lane.is_idle for lane in box._lanes.values()))
    # The one that looks after what failed stays.
    assert asyncio.all_tasks() == {asyncio.current_task(), box._watch}
    box.post("one more", "hello")
    assert [*box._lanes] == ["one more"]
    await box.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_only_one_outbox_serves_a_platform_of_a_store(store: ChatStore) -> None:
    box = outbox(ScriptedPlatform(), store)
    await box.start()
    other = ChatStore(store.path)
    with pytest.raises(Exception, match="Another bridge serves `scripted`"):
        await outbox(ScriptedPlatform(), other).start()
    other.close()
    await box.close()


def test_a_row_says_in_one_line_what_it_is(store: ChatStore) -> None:
    row = Rows(store).add("scripted", "c", TextBody("a long\ntext " * 20))
    assert row.summary == ("a long text " * 20)[:59] + "…"
