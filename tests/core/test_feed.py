"""Watchers: bounded, never waited for, and never told that they saw everything when they did not."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.events import Envelope, Event, Gap, Notice, TextDelta
from trunkline.core.feed import Subscription


def envelope(seq: int, event: Event) -> Envelope:
    return Envelope("s", seq, 1, 0.0, event)


async def fed(length: int, *events: Event) -> list[Envelope | Gap]:
    subscription = Subscription(lambda _: None, length)
    for seq, event in enumerate(events, 1):
        subscription.show([envelope(seq, event)])
        assert len(subscription._queue) <= length
    subscription.close()
    return [item async for item in subscription]


async def test_what_fits_is_all_there() -> None:
    assert await fed(3, TextDelta("a"), Notice("b")) == [envelope(1, TextDelta("a")), envelope(2, Notice("b"))]


async def test_words_are_dropped_before_weighty_events_and_the_gap_is_marked() -> None:
    words = [TextDelta("x")] * 3
    assert await fed(4, Notice("first"), *words, Notice("last")) == [
        envelope(1, Notice("first")),
        Gap(2, 4),
        envelope(5, Notice("last")),
    ]


async def test_if_all_is_weighty_the_older_half_goes() -> None:
    items = await fed(4, *[Notice(str(n)) for n in range(6)])
    assert items == [Gap(1, 3), *[envelope(seq, Notice(str(seq - 1))) for seq in (4, 5, 6)]]


@given(st.integers(2, 20), st.lists(st.booleans(), max_size=100))
async def test_every_sequence_number_is_either_delivered_or_in_a_gap_once_and_in_order(
    length: int, weighty: list[bool]
) -> None:
    covered: list[int] = []
    for item in await fed(length, *[Notice("n") if heavy else TextDelta("t") for heavy in weighty]):
        covered += range(item.first, item.last + 1) if isinstance(item, Gap) else [item.seq]
    assert covered == list(range(1, len(weighty) + 1))


def test_a_queue_needs_room_for_an_event_and_a_gap() -> None:
    with pytest.raises(ValueError, match="room"):
        Subscription(lambda _: None, 1)


async def test_a_closed_watch_ends_after_what_was_queued_and_closing_twice_is_harmless() -> None:
    closed: list[Subscription] = []
    subscription = Subscription(closed.append, 10)
    waiting = asyncio.create_task(anext(subscription))
    await asyncio.sleep(0)
    subscription.show([envelope(1, Notice("x"))])
    assert await waiting == envelope(1, Notice("x"))
    subscription.show([envelope(2, Notice("y"))])
    subscription.close()
    subscription.close()
    assert closed == [subscription]
    assert [item async for item in subscription] == [envelope(2, Notice("y"))]
