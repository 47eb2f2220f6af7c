"""Streamed answers in trouble: doubts, crashes, a full disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.loop import until
from tests.support.scripted_platform import LIMITS, After, ScriptedPlatform, outbox, settled
from trunkline.chat.delivery.answer import FIRST_SECONDS, StreamedAnswer
from trunkline.chat.delivery.rows import TextBody
from trunkline.chat.delivery.states import MessageState
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Limits, NotNow, SendFailed, Unclear
from trunkline.core.faults import ConfigError

pytestmark = pytest.mark.virtual_time

IDEMPOTENT = LIMITS.replace(idempotent=True)


class GrowingAnswer:
    """An answer that grows, on its way to a platform."""

    def __init__(self, store: ChatStore, limits: Limits) -> None:
        self.platform = ScriptedPlatform(limits)
        self.box = outbox(self.platform, store)
        self._store = store
        self._answer = StreamedAnswer(self.box, "c")

    async def feed(self, text: str, seconds: float = 0.0) -> None:
        """Let it grow, and time pass."""
        self._answer.feed(text)
        await asyncio.sleep(seconds)

    async def feed_until_sending(self, text: str) -> None:
        """Let it grow until its first message is with the platform, whose gate is closed."""
        self.platform.gate.clear()
        await self.feed(text, FIRST_SECONDS)
        await until(lambda: self.platform.running)

    def complete(self, text: str = "") -> None:
        """Nothing comes after this."""
        if text:
            self._answer.feed(text)
        self._answer.complete()

    async def ended(self, text: str = "") -> MessageState:
        """The same; how it ended."""
        self.complete(text)
        return await self.settled()

    async def settled(self) -> MessageState:
        return await settled(self._answer)

    async def restart(self) -> None:
        """Begin anew with what is on disk, and send all of that."""
        await self.box.close()
        self.box = outbox(self.platform, self._store)
        await self.box.start()
        assert await self.box.drained(60)


@pytest.fixture
def limits() -> Limits:
    """What the platform can do, unless a test says otherwise."""
    return LIMITS


@pytest.fixture
async def growing(store: ChatStore, limits: Limits) -> AsyncIterator[GrowingAnswer]:
    growing = GrowingAnswer(store, limits)
    yield growing
    await growing.box.close()


either_way = pytest.mark.parametrize("limits", [IDEMPOTENT, LIMITS])


@pytest.mark.parametrize("arrived", [True, False])
async def test_when_the_first_message_is_in_doubt_the_answer_goes_on_after_what_it_held(
    growing: GrowingAnswer, arrived: bool
) -> None:
    doubt = Unclear("broken pipe")
    growing.platform.script(After(doubt) if arrived else doubt)
    await growing.feed("```py\none\n", FIRST_SECONDS + 1)
    await growing.feed("two\n", 5)
    await growing.ended("three\n```\nDone.")
    assert growing.platform.shown()[int(arrived) :] == ["```py\ntwo\nthree\n```\nDone."]
    assert [(row.state, row.summary) for row in growing.box.unsettled()] == [(MessageState.UNKNOWN, "```py one")]


async def test_when_every_message_is_in_doubt_the_answer_still_goes_on(growing: GrowingAnswer) -> None:
    growing.platform.script(*[After(Unclear("broken pipe"))] * 3)
    for word in ("```\none\n", "two\n", "three\n", "four\n"):
        await growing.feed(word, 30)
    assert await growing.ended("word " * 30) is MessageState.SENT
    shown = growing.platform.shown()
    assert shown[:3] == ["```\none\n```", "```\ntwo\n```", "```\nthree\n```"]
    assert " ".join(shown).replace("```", "").split() == ["one", "two", "three", "four", *["word"] * 30]
    assert [row.state for row in growing.box.unsettled()] == [MessageState.UNKNOWN] * 3


async def test_when_the_answer_ends_while_its_first_message_is_in_doubt_the_rest_is_not_lost(
    growing: GrowingAnswer,
) -> None:
    growing.platform.script(After(Unclear("broken pipe")))
    await growing.feed_until_sending("one")
    growing.complete(" two " + "word " * 30)
    growing.platform.gate.set()
    assert await growing.settled() is MessageState.SENT
    shown = growing.platform.shown()
    assert " ".join(shown).split() == ["one", "two", *["word"] * 30]
    assert [row.summary for row in growing.box.unsettled()] == shown[:1] == ["one"]


@either_way
async def test_an_answer_that_ends_during_its_first_message_survives_a_crash(
    growing: GrowingAnswer, limits: Limits
) -> None:
    platform = growing.platform
    await growing.feed_until_sending("one")
    growing.complete(" two")
    # The platform takes it, and nobody is there to hear of it.
    platform.script(After(asyncio.CancelledError()))  # type: ignore[arg-type]  # as a kill would look from inside
    platform.gate.set()
    await until(lambda: platform.messages)
    await growing.restart()
    assert platform.shown() == (["one two"] if limits.idempotent else ["one", "two"])
    assert [row.summary for row in growing.box.unsettled()] == ([] if limits.idempotent else ["one"])


async def test_what_a_new_message_would_repeat_of_one_in_doubt_is_not_sent(growing: GrowingAnswer) -> None:
    first, second = "a" * 60, "b" * 30
    growing.platform.script(Unclear("broken pipe"), NotNow("slow down", 60))
    await growing.feed(f"{first}\n\n{second}", FIRST_SECONDS)
    await growing.feed(" cc", 5)
    assert [call.text for call in growing.platform.calls] == [f"{first}\n\n{second}", "cc"]
    # Now the message is too long, and ends where the one in doubt had not yet ended.
    assert await growing.ended(" dd" * 10) is MessageState.SENT
    assert growing.platform.shown() == [f"{second} cc" + " dd" * 10]
    assert [row.body for row in growing.box.unsettled()] == [TextBody(f"{first}\n\n{second}")]


async def test_a_message_that_was_deleted_during_the_answer_is_sent_again(growing: GrowingAnswer) -> None:
    await growing.feed("one", 2)
    growing.platform.messages.clear()
    await growing.feed(" two", 2)
    await growing.ended(" three")
    assert growing.platform.shown() == ["one two three"]


async def test_an_answer_to_a_chat_that_is_gone_is_kept_whole_for_people(growing: GrowingAnswer) -> None:
    growing.platform.script(*[SendFailed("kicked")] * 9)
    await growing.feed("one", 3)
    assert await growing.ended(" two") is MessageState.FAILED
    assert [row.summary for row in growing.box.unsettled()] == ["one two"]


async def test_a_full_disk_during_an_answer_loses_nothing_once_there_is_room(
    growing: GrowingAnswer, store: ChatStore
) -> None:
    await growing.feed("one ")
    store.execute("PRAGMA query_only = ON")
    await asyncio.sleep(2)
    await growing.feed("two " * 60, 2)
    with pytest.raises(ConfigError):
        growing.complete()
    store.execute("PRAGMA query_only = OFF")
    await growing.ended("three")
    assert " ".join(growing.platform.shown()).split() == ["one", *["two"] * 60, "three"]


@either_way
async def test_a_restart_takes_up_an_answer_whose_last_text_was_not_shown(growing: GrowingAnswer) -> None:
    await growing.feed("word " * 10, 5)
    assert len(growing.platform.shown()) == 1
    growing.complete("word " * 40)
    await growing.box.close()
    assert len(growing.platform.shown()) == 1
    await growing.restart()
    assert " ".join(growing.platform.shown()).split() == ["word"] * 50


@either_way
async def test_a_restart_leaves_an_answer_that_was_cut_off_as_it_is_shown(growing: GrowingAnswer) -> None:
    await growing.feed_until_sending("one")
    await growing.feed(" two", 1.5)
    growing.platform.gate.set()
    await asyncio.sleep(2)
    await growing.feed(" three", 2)
    assert growing.platform.shown() == ["one two three"]
    await growing.restart()
    assert growing.platform.shown() == ["one two three"]


@pytest.mark.parametrize("limits", [IDEMPOTENT])
async def test_a_key_that_was_used_with_an_older_text_is_followed_by_a_change(growing: GrowingAnswer) -> None:
    growing.platform.script(After(Unclear("broken pipe")))
    await growing.feed_until_sending("one")
    growing.complete(" two")
    growing.platform.gate.set()
    assert await growing.settled() is MessageState.SENT
    assert growing.platform.shown() == ["one two"]
