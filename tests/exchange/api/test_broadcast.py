"""One session's events for many: encoded once, handed on together, bounded for each."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from trunkline.core.approvals import Policy
from trunkline.core.events import Gap, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.core.feed import FEW, LONGEST_REST
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.exchange.api import broadcast
from trunkline.exchange.api.broadcast import (
    BACKLOG_BYTES,
    Backlog,
    Broadcast,
    StreamChunk,
    StreamPiece,
    piece,
)


class Listener:
    """A `Reader` that keeps what it gets."""

    def __init__(self) -> None:
        self.chunks: list[StreamChunk] = []
        self.is_over = False

    def give(self, chunk: StreamChunk) -> None:
        self.chunks.append(chunk)

    def ended(self) -> None:
        self.is_over = True

    @property
    def numbers(self) -> list[int]:
        return [each.last for chunk in self.chunks for each in chunk.pieces]


def word(seq: int, size: int = 1000) -> StreamPiece:
    return StreamPiece(seq, seq, True, b"w" * size)


def weighty(seq: int, size: int = 1000) -> StreamPiece:
    return StreamPiece(seq, seq, False, b"E" * size)


def test_a_reader_that_takes_nothing_costs_one_gap_each_time_and_not_one_for_each_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[Gap] = []

    def counted(session: str, gap: Gap) -> bytes:
        encoded.append(gap)
        return b"gap"

    monkeypatch.setattr(broadcast, "encode_gap", counted)
    backlog = Backlog("s")
    many = 3 * BACKLOG_BYTES // 1000
    for seq in range(1, many, 10):
        backlog.put(StreamChunk([word(number) for number in range(seq, seq + 10)]))
    assert len(encoded) == backlog.drops > 1
    assert all(gap.first == 1 for gap in encoded)


def test_what_a_reader_has_not_taken_is_bounded_and_words_go_first() -> None:
    backlog = Backlog("s")
    many = 3 * BACKLOG_BYTES // 1000
    for seq in range(1, many, 2):
        backlog.put(StreamChunk([word(seq), weighty(seq + 1, 10)]))
        assert backlog.size <= BACKLOG_BYTES
    assert backlog.drops
    data = backlog.take()
    assert data.count(b"E" * 10) == len(range(1, many, 2))
    assert data.startswith(piece("s", Gap(1, 1)).data)
    assert (backlog.size, bool(backlog)) == (0, False)


def test_words_that_follow_each_other_leave_one_gap() -> None:
    backlog = Backlog("s")
    backlog.put(StreamChunk([weighty(1), *map(word, range(2, 500))]))
    backlog.put(StreamChunk([word(500, BACKLOG_BYTES), weighty(501)]))
    assert backlog.take() == weighty(1).data + piece("s", Gap(2, 500)).data + weighty(501).data


def test_where_nothing_but_weighty_events_wait_the_older_ones_go() -> None:
    backlog = Backlog("s")
    for seq in range(1, 3 * BACKLOG_BYTES // 1000):
        backlog.put(StreamChunk([weighty(seq)]))
        assert backlog.size <= BACKLOG_BYTES
    data = backlog.take()
    assert data.startswith(b"event: gap\ndata: ")
    assert data.count(b"event: gap") == 1
    assert data.endswith(b"E" * 1000)


def test_one_event_that_is_too_large_by_itself_is_kept() -> None:
    backlog = Backlog("s")
    backlog.put(StreamChunk([weighty(1, 2 * BACKLOG_BYTES)]))
    assert len(backlog.take()) == 2 * BACKLOG_BYTES
    backlog.put(StreamChunk([weighty(1), weighty(2, 2 * BACKLOG_BYTES)]))
    assert backlog.take() == piece("s", Gap(1, 1)).data + b"E" * 2 * BACKLOG_BYTES


async def listened(many: int) -> tuple[FakeAgent, Session, Broadcast, list[Listener], list[bool]]:
    """A session whose turn has begun, and so many who listen."""
    fake, over = FakeAgent(), list[bool]()
    session = await Session.open(fake, MemoryLog("s1"), Policy())
    feed = Broadcast(session, lambda: over.append(True))
    listeners = [Listener() for _ in range(many)]
    assert {feed.join(listener) for listener in listeners} == {0}
    session.submit(UserMessage("Hello"))
    await until(lambda: fake.busy and listeners[0].numbers == [1])
    return fake, session, feed, listeners, over


async def say_one_by_one(fake: FakeAgent, words: int) -> None:
    """Each in a tick of its own."""
    for _ in range(words):
        fake.say(TextDelta("word"))
        await until(lambda: not fake._strings.qsize())
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.virtual_time
async def test_many_readers_share_chunks_and_what_follows_soon_waits_for_its_neighbours() -> None:
    fake, session, feed, listeners, over = await listened(FEW + 1)
    await say_one_by_one(fake, 10)
    assert listeners[0].numbers == [1]
    await asyncio.sleep(LONGEST_REST)
    assert [len(chunk.pieces) for chunk in listeners[0].chunks] == [1, 10]
    # They have rested: what comes now is handed on at once, whatever it is.
    await asyncio.sleep(LONGEST_REST)
    await say_one_by_one(fake, 1)
    assert listeners[0].numbers == list(range(1, 13))
    fake.say(Notice("Done."), TurnEnded("success"))
    await session.at_rest()
    # Whoever joins finds nothing held back, and begins after what the others have.
    late = Listener()
    assert feed.join(late) == 14
    assert listeners[0].numbers == list(range(1, 15))
    assert all(listener.chunks == listeners[0].chunks for listener in listeners)
    await session.close()
    assert late.is_over
    assert over == [True]
    assert all(listener.is_over for listener in listeners)


@pytest.mark.virtual_time
async def test_a_few_readers_get_every_word_at_once() -> None:
    fake, session, _, listeners, _ = await listened(FEW)
    await say_one_by_one(fake, 10)
    assert [len(chunk.pieces) for chunk in listeners[-1].chunks] == [1] * 11
    await session.close()


@pytest.mark.virtual_time
async def test_nobody_loses_what_waited_when_the_session_is_closed() -> None:
    fake, session, feed, listeners, _ = await listened(100)
    await say_one_by_one(fake, 10)
    await session.close()
    # The words, the stop and the turn's end.
    assert listeners[-1].numbers == list(range(1, session.seq + 1))
    late = Listener()
    feed.join(late)
    assert late.is_over


async def test_it_ends_when_the_last_reader_leaves() -> None:
    session = await Session.open(FakeAgent(), MemoryLog("s1"), Policy())
    over: list[bool] = []
    feed = Broadcast(session, lambda: over.append(True))
    first, second = Listener(), Listener()
    feed.join(first)
    feed.join(second)
    feed.leave(first)
    assert not over
    feed.leave(second)
    assert over
    assert session._recorder.sinks == []
    await session.close()


async def test_of_a_session_that_is_closed_a_reader_hears_that_it_is_over() -> None:
    session = await Session.open(FakeAgent(), MemoryLog("s1"), Policy())
    await session.close()
    over: list[bool] = []
    feed = Broadcast(session, lambda: over.append(True))
    late = Listener()
    feed.join(late)
    assert (late.is_over, over, session._recorder.sinks) == (True, [True], [])
