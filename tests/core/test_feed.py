"""Watchers: bounded, never waited for, and never told that they saw everything when they did not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.core.approvals import Policy
from trunkline.core.events import Envelope, Event, Gap, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.core.feed import FEW, LONGEST_REST, Fanout, Subscription
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session


def envelope(seq: int, event: Event) -> Envelope:
    return Envelope("s", seq, 1, 0.0, event)


def fed(length: int, *events: Event) -> list[Envelope | Gap]:
    subscription = Subscription(lambda _: None, length)
    for seq, event in enumerate(events, 1):
        subscription.show([envelope(seq, event)])
        assert len(subscription._queue) <= length
    subscription.close()
    return list(iter(subscription.pop, None))


def test_what_fits_is_all_there() -> None:
    assert fed(3, TextDelta("a"), Notice("b")) == [envelope(1, TextDelta("a")), envelope(2, Notice("b"))]


def test_words_are_dropped_before_weighty_events_and_the_gap_is_marked() -> None:
    words = [TextDelta("x")] * 3
    assert fed(4, Notice("first"), *words, Notice("last")) == [
        envelope(1, Notice("first")),
        Gap(2, 4),
        envelope(5, Notice("last")),
    ]


def test_if_all_is_weighty_the_older_half_goes() -> None:
    items = fed(4, *[Notice(str(n)) for n in range(6)])
    assert items == [Gap(1, 3), *[envelope(seq, Notice(str(seq - 1))) for seq in (4, 5, 6)]]


@given(st.integers(2, 20), st.lists(st.booleans(), max_size=100))
def test_every_sequence_number_is_either_delivered_or_in_a_gap_once_and_in_order(
    length: int, weighty: list[bool]
) -> None:
    covered: list[int] = []
    for item in fed(length, *[Notice("n") if heavy else TextDelta("t") for heavy in weighty]):
        covered += range(item.first, item.last + 1) if isinstance(item, Gap) else [item.seq]
    assert covered == list(range(1, len(weighty) + 1))


def test_a_queue_needs_room_for_an_event_and_a_gap() -> None:
    with pytest.raises(ValueError, match="room"):
        Subscription(lambda _: None, 1)


async def test_a_closed_watch_ends_after_what_was_queued_and_closing_twice_is_harmless() -> None:
    closed: list[Subscription] = []
    subscription = Subscription(closed.append, 10)
    waiting = asyncio.create_task(subscription.more())
    await asyncio.sleep(0)
    subscription.show([envelope(1, Notice("x"))])
    assert await waiting
    assert subscription.pop() == envelope(1, Notice("x"))
    subscription.show([envelope(2, Notice("y"))])
    subscription.close()
    subscription.close()
    assert closed == [subscription]
    assert await subscription.more()
    assert subscription.pop() == envelope(2, Notice("y"))
    assert not await subscription.more()


class Numbers(Fanout[int]):
    """Keeps the numbers that so many readers are given."""

    def __init__(self, many: int) -> None:
        super().__init__()
        self.given: list[list[int]] = []
        self.readers.update(dict.fromkeys(range(many)))

    def hand_on(self, envelopes: Sequence[Envelope]) -> None:
        self.given.append([each.seq for each in envelopes])


@pytest.mark.virtual_time
async def test_what_comes_after_a_pause_is_handed_on_at_once_and_what_follows_soon_waits() -> None:
    numbers = Numbers(FEW + 1)
    for seq in (1, 2, 3):
        numbers.show([envelope(seq, TextDelta("x"))])
    assert numbers.given == [[1]]
    await asyncio.sleep(LONGEST_REST)
    assert numbers.given == [[1], [2, 3]]
    await asyncio.sleep(LONGEST_REST)
    numbers.show([envelope(4, TextDelta("x"))])
    assert numbers.given[2:] == [[4]]


def test_a_rest_is_short_enough_for_the_5_ms_that_are_promised() -> None:
    assert LONGEST_REST <= 0.004


@pytest.mark.virtual_time
async def test_a_few_need_no_rest() -> None:
    numbers = Numbers(FEW)
    for seq in (1, 2, 3):
        numbers.show([envelope(seq, TextDelta("x"))])
    assert numbers.given == [[1], [2], [3]]


@pytest.mark.virtual_time
async def test_however_many_watch_a_session_each_gets_all_that_comes_after_it() -> None:
    fake = FakeAgent()
    session = await Session.open(fake, MemoryLog("s"), Policy())

    async def watch(since: int | None) -> list[int]:
        return [item.seq async for item in session.subscribe(since) if isinstance(item, Envelope)]

    many = [asyncio.create_task(watch(0)) for _ in range(50)]
    session.submit(UserMessage("Hello"))
    await until(lambda: fake.busy)
    for _ in range(10):
        fake.say(TextDelta("word"))
        await until(lambda: not fake._strings.qsize())
    seq = session.seq
    late, new = asyncio.create_task(watch(3)), asyncio.create_task(watch(None))
    await asyncio.sleep(0)
    fake.say(TextDelta("last"), TurnEnded("success"))
    await session.at_rest()
    await session.close()
    everything = list(range(1, session.seq + 1))
    assert [await each for each in many] == [everything] * 50
    assert await late == everything[3:]
    assert await new == everything[seq:]
    assert session._recorder.sinks == []
