"""Answers that appear while they are being written."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, After, ScriptedPlatform, outbox, settled
from trunkline.chat.delivery import answer as answer_module
from trunkline.chat.delivery.answer import FIRST_SECONDS, LEFT_OUT, MOST_CHARS, MOST_NEW_CHARS, StreamedAnswer
from trunkline.chat.delivery.splitting import closed, split
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Inbound, Limits, NotNow, Unclear

pytestmark = pytest.mark.virtual_time

IDEMPOTENT = LIMITS.replace(idempotent=True)
NO_EDITS = LIMITS.replace(edits=False)


async def test_an_answer_is_one_message_that_grows_at_the_pace_of_the_platform(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c", reply_to="in-1")
    for number in range(40):
        answer.feed("a ")
        await asyncio.sleep(0.1)
        assert len(platform.calls) <= number // 10 + 1
    answer.complete("-- footer")
    await settled(answer)
    assert platform.shown() == ["a " * 39 + "a\n\n-- footer"]
    first, *others = platform.calls
    assert (first.what, first.reply_to) == ("send", "in-1")
    assert first.at == pytest.approx(FIRST_SECONDS)
    assert len(others) >= 3
    assert all(call.what == "edit" for call in others)
    assert all(later.at - before.at >= 0.999 for before, later in pairwise(platform.calls))


async def test_a_short_answer_is_one_message_without_a_change(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("\n\nHello, ")
    answer.feed("you.\n")
    answer.complete("-- echo")
    await settled(answer)
    assert platform.shown() == ["Hello, you.\n\n-- echo"]
    assert len(platform.calls) == 1
    assert await settled(answer) is MessageState.SENT


async def test_an_answer_without_text_is_no_message(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("\n ")
    answer.complete()
    answer.complete()
    await settled(answer)
    assert platform.calls == []
    with pytest.raises(RuntimeError):
        answer.feed("more")


@pytest.mark.parametrize("limits", [LIMITS, NO_EDITS, IDEMPOTENT], ids=["edits", "no edits", "idempotent"])
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_the_platform_does_all_of_the_answer_is_shown_once(
    store: ChatStore, limits: Limits, seed: int
) -> None:
    chance = random.Random(seed)
    words = [f"w{number}" + chance.choice([" ", " ", "\n", "\n\n"]) for number in range(300)]
    platform = ScriptedPlatform(limits)
    faults: list[Exception | After | None] = [None, None, NotNow("x"), NotNow("x", 9)]
    if limits.idempotent:
        faults += [After(Unclear("x")), Unclear("x")]
    platform.script(*(chance.choice(faults) for _ in range(200)))
    answer = StreamedAnswer(outbox(platform, store), "c")
    for word in words:
        answer.feed(word)
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 3)
    answer.complete()
    assert await settled(answer) is MessageState.SENT
    assert "\n".join(platform.shown()).split() == "".join(words).split()
    assert store.execute("SELECT count(*) FROM outbox WHERE state <> 'sent' OR shown IS NOT body").fetchone() == (0,)


async def test_an_answer_that_grows_too_long_goes_on_in_a_new_message_with_its_code_fence(store: ChatStore) -> None:
    text = "Look:\n```python\n" + "".join(f"line_{number} = {number}\n" for number in range(30)) + "```\nDone."
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    for char in text:
        answer.feed(char)
        await asyncio.sleep(0.01)
        for shown in platform.shown():
            assert closed(shown) == shown
    answer.complete()
    await settled(answer)
    assert platform.shown() == split(text, LIMITS.text_chars)
    assert len(platform.shown()) == 5
    assert len(platform.of("send")) == len(platform.shown())


async def test_where_messages_cannot_be_changed_each_is_sent_when_it_is_full(store: ChatStore) -> None:
    platform = ScriptedPlatform(NO_EDITS)
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("word " * 10)
    await asyncio.sleep(60)
    assert platform.calls == []
    answer.feed("word " * 15)
    await asyncio.sleep(2)
    assert len(platform.shown()) == 1
    answer.complete()
    await settled(answer)
    assert " ".join(platform.shown()) == ("word " * 25).strip()


async def test_what_was_posted_during_an_answer_stands_where_it_was_posted(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("I must ask.")
    answer.cut()
    box.post("c", "May I?")
    answer.feed("Thank you.")
    answer.complete()
    await settled(answer)
    assert platform.shown() == ["I must ask.", "May I?", "Thank you."]


async def test_an_answer_that_still_grows_does_not_hold_up_other_messages(store: ChatStore) -> None:
    platform = ScriptedPlatform(LIMITS.replace(edit_seconds=30.0))
    box = outbox(platform, store)
    answer = StreamedAnswer(box, "c")
    answer.feed("One")
    await until(lambda: answer._timer)
    await asyncio.sleep(FIRST_SECONDS)
    answer.feed(" two")
    await asyncio.sleep(1)
    assert await box.post("c", "Aside").settled() is MessageState.SENT
    assert platform.shown() == ["One", "Aside"]
    assert await box.drained(1)
    answer.complete()
    await settled(answer)
    assert platform.shown() == ["One two", "Aside"]


async def test_the_end_of_an_answer_and_of_its_note_are_on_disk_together(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    note = store.note("scripted", Inbound("1", "c", "me", "hello"))
    assert note is not None
    store.begin(note)
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("word " * 50)
    with store.together():
        answer.complete()
        store.end(note, "success")
        assert platform.calls == []
    assert store.execute("SELECT count(*) FROM outbox WHERE state = 'pending'").fetchone() == (3,)
    assert store.interrupted("scripted") == []
    assert await settled(answer) is MessageState.SENT
    assert len(platform.shown()) == 3


async def test_an_answer_that_is_complete_goes_out_as_soon_as_the_platform_takes_it(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    platform.script(NotNow("slow down", 600))
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("Hello")
    answer.complete()
    await asyncio.sleep(599)
    assert platform.shown() == []
    assert await settled(answer) is MessageState.SENT
    assert platform.shown() == ["Hello"]


@pytest.mark.slow
async def test_a_lot_of_text_is_not_held_back_until_the_next_look(store: ChatStore) -> None:
    platform = ScriptedPlatform()
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("word " * (MOST_NEW_CHARS // 5 + 1))
    await until(lambda: len(platform.shown()) > 100)
    assert asyncio.get_running_loop().time() == 0
    answer.complete()
    await settled(answer)


@pytest.mark.parametrize("limits", [LIMITS.replace(text_chars=4096), NO_EDITS.replace(text_chars=4096)])
async def test_feeding_costs_the_same_for_the_first_word_and_the_last(
    store: ChatStore, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_module, "MOST_CHARS", 10_000_000)

    async def measured(words: int) -> int:
        """How many characters were looked at on the way."""
        platform = Counting(limits)
        answer = StreamedAnswer(outbox(platform, store), "c")
        for number in range(words):
            answer.feed("word ")
            if number % 1000 == 0:
                await asyncio.sleep(0.1)
        answer.complete()
        await settled(answer)
        return platform.counted

    # Sixteen times the words: a square would be 256 times the work.
    assert await measured(100_000) <= 20 * await measured(6_250)


class Counting(ScriptedPlatform):
    """Counts what it measures."""

    counted = 0

    def measure(self, text: str) -> int:
        self.counted += len(text)
        return super().measure(text)


async def test_an_answer_without_end_is_cut_and_says_so(store: ChatStore) -> None:
    platform = ScriptedPlatform(LIMITS.replace(text_chars=4096))
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("```\n")
    for _ in range(3 * MOST_CHARS // 1000):
        answer.feed("x" * 999 + "\n")
    answer.cut()
    answer.feed("this, too")
    answer.complete("(1 tool used)")
    await settled(answer)
    shown = platform.shown()
    assert MOST_CHARS - 1000 < sum(text.count("x") for text in shown) <= MOST_CHARS
    assert shown[-1].endswith(f"{LEFT_OUT}\n\n(1 tool used)")
    assert "this, too" not in "".join(shown)


async def test_an_answer_of_just_the_longest_size_is_whole(store: ChatStore) -> None:
    platform = ScriptedPlatform(LIMITS.replace(text_chars=4096))
    answer = StreamedAnswer(outbox(platform, store), "c")
    answer.feed("x" * MOST_CHARS)
    answer.complete()
    await settled(answer)
    assert "".join(platform.shown()) == "x" * MOST_CHARS
