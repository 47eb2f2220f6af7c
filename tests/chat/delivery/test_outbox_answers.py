"""Streamed answers in trouble: doubts, crashes, a full disk."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, After, ScriptedPlatform, outbox, settled
from trunkline.chat.delivery.answer import FIRST_SECONDS, StreamedAnswer
from trunkline.chat.delivery.rows import TextBody
from trunkline.chat.delivery.states import State
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Limits, NotNow, SendFailed, Unclear
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time

IDEMPOTENT = LIMITS.replace(idempotent=True)


@pytest.mark.parametrize("arrived", [True, False])
async def test_when_the_first_message_is_in_doubt_the_answer_goes_on_after_what_it_held(
    store: ChatStore, arrived: bool
) -> None:
    platform = ScriptedPlatform()
    doubt = Unclear("broken pipe")
    platform.script(After(doubt) if arrived else doubt)
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("```py\none\n")
    await asyncio.sleep(FIRST_SECONDS + 1)
    answer.feed("two\n")
    await asyncio.sleep(5)
    answer.feed("three\n```\nDone.")
    answer.complete()
    await settled(answer)
    assert platform.shown()[int(arrived) :] == ["```py\ntwo\nthree\n```\nDone."]
    assert [(row.state, row.summary) for row in box.unsettled()] == [(State.UNKNOWN, "```py one")]
    await box.close()


async def test_when_every_message_is_in_doubt_the_answer_still_goes_on(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(*[After(Unclear("broken pipe"))] * 3)
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    for word in ("```\none\n", "two\n", "three\n", "four\n"):
        answer.feed(word)
        await asyncio.sleep(30)
    answer.feed("word " * 30)
    answer.complete()
    assert await settled(answer) is State.SENT
    shown = platform.shown()
    assert shown[:3] == ["```\none\n```", "```\ntwo\n```", "```\nthree\n```"]
    assert " ".join(shown).replace("```", "").split() == ["one", "two", "three", "four", *["word"] * 30]
    assert [row.state for row in box.unsettled()] == [State.UNKNOWN] * 3
    await box.close()


async def test_when_the_answer_ends_while_its_first_message_is_in_doubt_the_rest_is_not_lost(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(After(Unclear("broken pipe")))
    platform.gate.clear()
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("one")
    await asyncio.sleep(FIRST_SECONDS)
    await until(lambda: platform.running)
    answer.feed(" two " + "word " * 30)
    answer.complete()
    platform.gate.set()
    assert await settled(answer) is State.SENT
    shown = platform.shown()
    assert " ".join(shown).split() == ["one", "two", *["word"] * 30]
    assert [row.summary for row in box.unsettled()] == shown[:1] == ["one"]
    await box.close()


@pytest.mark.parametrize("limits", [IDEMPOTENT, LIMITS])
async def test_an_answer_that_ends_during_its_first_message_survives_a_crash(store: ChatStore, limits: Limits) -> None:
    platform = ScriptedPlatform(limits)
    platform.gate.clear()
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("one")
    await asyncio.sleep(FIRST_SECONDS)
    await until(lambda: platform.running)
    answer.feed(" two")
    answer.complete()
    # The platform takes it, and nobody is there to hear of it.
    platform.script(After(asyncio.CancelledError()))  # type: ignore[arg-type]  # as a kill would look from inside
    platform.gate.set()
    await until(lambda: platform.messages)
    await box.close()
    box = outbox(platform, store)
    await box.start()
    assert await box.drained(60)
    if limits.idempotent:
        assert platform.shown() == ["one two"]
    else:
        assert platform.shown() == ["one", "two"]
    assert [row.summary for row in box.unsettled()] == ([] if limits.idempotent else ["one"])
    await box.close()


async def test_what_a_new_message_would_repeat_of_one_in_doubt_is_not_sent(store: ChatStore) -> None:
    first, second = "a" * 60, "b" * 30
    platform = ScriptedPlatform()
    platform.script(Unclear("broken pipe"), NotNow("slow down", 60))
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed(f"{first}\n\n{second}")
    await asyncio.sleep(FIRST_SECONDS)
    answer.feed(" cc")
    await asyncio.sleep(5)
    assert [call.text for call in platform.calls] == [f"{first}\n\n{second}", "cc"]
    # Now the message is too long, and ends where the one in doubt had not yet ended.
    answer.feed(" dd" * 10)
    answer.complete()
    assert await settled(answer) is State.SENT
    assert platform.shown() == [f"{second} cc" + " dd" * 10]
    assert [row.body for row in box.unsettled()] == [TextBody(f"{first}\n\n{second}")]
    await box.close()


async def test_a_message_that_was_deleted_during_the_answer_is_sent_anew(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("one")
    await asyncio.sleep(2)
    platform.messages.clear()
    answer.feed(" two")
    await asyncio.sleep(2)
    answer.feed(" three")
    answer.complete()
    await settled(answer)
    assert platform.shown() == ["one two three"]


async def test_an_answer_to_a_chat_that_is_gone_is_kept_whole_for_people(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(*[SendFailed("kicked")] * 9)
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("one")
    await asyncio.sleep(3)
    answer.feed(" two")
    answer.complete()
    assert await settled(answer) is State.FAILED
    assert [row.summary for row in box.unsettled()] == ["one two"]
    await box.close()


async def test_a_full_disk_during_an_answer_loses_nothing_once_there_is_room(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("one ")
    store.execute("PRAGMA query_only = ON")
    await asyncio.sleep(2)
    answer.feed("two " * 60)
    await asyncio.sleep(2)
    with pytest.raises(ConfigError):
        answer.complete()
    store.execute("PRAGMA query_only = OFF")
    answer.feed("three")
    answer.complete()
    await settled(answer)
    assert " ".join(platform.shown()).split() == ["one", *["two"] * 60, "three"]


@pytest.mark.parametrize("limits", [IDEMPOTENT, LIMITS])
async def test_a_restart_takes_up_an_answer_whose_last_text_was_not_shown(store: ChatStore, limits: Limits) -> None:
    platform = ScriptedPlatform(limits)
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("word " * 10)
    await asyncio.sleep(5)
    assert len(platform.shown()) == 1
    answer.feed("word " * 40)
    answer.complete()
    await box.close()
    assert len(platform.shown()) == 1
    box = outbox(platform, store)
    await box.start()
    assert await box.drained(60)
    assert " ".join(platform.shown()).split() == ["word"] * 50
    await box.close()


@pytest.mark.parametrize("limits", [IDEMPOTENT, LIMITS])
async def test_a_restart_leaves_an_answer_that_was_cut_off_as_it_is_shown(store: ChatStore, limits: Limits) -> None:
    platform = ScriptedPlatform(limits)
    platform.gate.clear()
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("one")
    await asyncio.sleep(FIRST_SECONDS)
    await until(lambda: platform.running)
    answer.feed(" two")
    await asyncio.sleep(1.5)
    platform.gate.set()
    await asyncio.sleep(2)
    answer.feed(" three")
    await asyncio.sleep(2)
    assert platform.shown() == ["one two three"]
    await box.close()
    box = outbox(platform, store)
    await box.start()
    assert await box.drained(60)
    assert platform.shown() == ["one two three"]
    await box.close()


async def test_a_key_that_was_used_with_an_older_text_is_followed_by_a_change(store: ChatStore) -> None:
    platform = ScriptedPlatform(IDEMPOTENT)
    platform.script(After(Unclear("broken pipe")))
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("one")
    platform.gate.clear()
    await asyncio.sleep(FIRST_SECONDS)
    await until(lambda: platform.running)
    answer.feed(" two")
    answer.complete()
    platform.gate.set()
    assert await settled(answer) is State.SENT
    assert platform.shown() == ["one two"]
