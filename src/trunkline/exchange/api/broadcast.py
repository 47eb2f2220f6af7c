"""One session's events for any number of readers: each is encoded once, and handed on together with its neighbours.

A reader costs something for each handful of events, not for each event. What it has not taken is bounded: beyond that
deltas and other passing events are dropped first, and the rest only if that does not help. What is missing is marked by
a gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap
from trunkline.core.feed import PASSING, SessionWatcher
from trunkline.core.session import Session
from trunkline.exchange.api.event_form import encode, encode_gap

#: What is kept for a reader that is behind: a minute of a fast model's words.
BACKLOG_BYTES = 1024 * 1024

#: So many readers get every word at once.
FEW = 4
#: With more of them, what comes right after other words waits for its neighbours, so long for each reader: some three
#: times of what it takes to send to it.
REST_FOR_EACH = 0.000_03
#: And no longer than this. Well within the 5 ms that the exchange may add to an event's way.
LONGEST_REST = 0.003


class StreamPiece(Value, hot=True):
    """An event as bytes, or a gap."""

    first: int
    last: int
    passing: bool
    """Whether a reader can bear its loss."""
    data: bytes


def piece(session: str, item: Envelope | Gap) -> StreamPiece:
    """The piece of an event or a gap."""
    if isinstance(item, Gap):
        return StreamPiece(item.first, item.last, True, encode_gap(session, item))
    return StreamPiece(item.seq, item.seq, isinstance(item.event, PASSING), encode(item))


class StreamChunk:
    """Pieces that are sent together."""

    __slots__ = ("data", "framed", "pieces")

    def __init__(self, pieces: list[StreamPiece]) -> None:
        self.pieces = pieces
        self.data = b"".join([each.data for each in pieces])
        self.framed = b"%x\r\n%b\r\n" % (len(self.data), self.data)
        """As a chunk of HTTP/1.1."""


class Backlog:
    """What one reader has not taken yet."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._chunks: deque[StreamChunk] = deque()
        self.size = 0
        """In bytes."""
        self.drops = 0
        """How often something had to be dropped."""

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def put(self, chunk: StreamChunk) -> None:
        """Some more; makes room if there is none."""
        self._chunks.append(chunk)
        self.size += len(chunk.data)
        if self.size > BACKLOG_BYTES:
            self._make_room()

    def take(self) -> bytes:
        """All of it."""
        data = self._chunks[0].data if len(self._chunks) == 1 else b"".join([each.data for each in self._chunks])
        self._chunks.clear()
        self.size = 0
        return data

    def _make_room(self) -> None:
        self.drops += 1
        kept: list[StreamPiece] = []
        for each in chain.from_iterable(chunk.pieces for chunk in self._chunks):
            if not each.passing:
                kept.append(each)
            elif kept and kept[-1].passing:
                kept[-1] = self._gap(kept[-1].first, each.last)
            else:
                kept.append(self._gap(each.first, each.last))
        size, gone = sum(len(each.data) for each in kept), 0
        if size > BACKLOG_BYTES:
            # Nothing but weighty events, and nobody takes them: the older half goes. The last one stays, however large.
            while gone < len(kept) - 1 and size > BACKLOG_BYTES // 2:
                size -= len(kept[gone].data)
                gone += 1
            kept[:gone] = [self._gap(kept[0].first, kept[gone - 1].last)] if gone else []
        chunk = StreamChunk(kept)
        self._chunks = deque([chunk])
        self.size = len(chunk.data)

    def _gap(self, first: int, last: int) -> StreamPiece:
        return piece(self._session, Gap(first, last))


class EventStreamReader(Protocol):
    """Who gets the chunks. Neither method may wait, or raise."""

    def give(self, chunk: StreamChunk) -> None:
        """Some more events."""

    def ended(self) -> None:
        """There will be no more."""


class Broadcast(SessionWatcher):
    """The events of one session at work, from now until it is closed or the last reader leaves.

    What comes after a pause is handed on at once. What follows soon waits until the readers have had a rest: to send
    one word to a hundred of them costs far more than the word.
    """

    def __init__(self, session: Session, over: Callable[[], None]) -> None:
        """`over` is called when it has ended."""
        self._session = session
        self._last = session.shown
        self._readers: dict[EventStreamReader, None] = {}
        self._pieces: list[StreamPiece] = []
        self._loop = asyncio.get_running_loop()
        self._rested = 0.0
        """When the readers have had their rest, by the loop's clock."""
        self._flushing: asyncio.TimerHandle | None = None
        self._over = over
        self.is_over = False
        session.attach(self)

    def join(self, reader: EventStreamReader) -> int:
        """Give a reader what comes; the number of the event after which that begins."""
        self._flush()
        if self.is_over:
            reader.ended()
        else:
            self._readers[reader] = None
        return self._last

    def leave(self, reader: EventStreamReader) -> None:
        """Give it nothing more."""
        self._readers.pop(reader, None)
        if not self._readers:
            self.close()

    # The session's sink.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events."""
        self._last = envelopes[-1].seq
        self._pieces += [piece(self._session.id, envelope) for envelope in envelopes]
        if self._flushing is None:
            if self._loop.time() >= self._rested:
                self._flush()
            else:
                self._flushing = self._loop.call_at(self._rested, self._flush)

    def close(self) -> None:
        """There will be no more, or nobody is there who would read it."""
        if not self.is_over:
            self.is_over = True
            self._session.detach(self)
            self._flush()
            self._over()
            for reader in tuple(self._readers):
                reader.ended()

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._pieces:
            chunk, self._pieces = StreamChunk(self._pieces), []
            for reader in self._readers:
                reader.give(chunk)
            if (many := len(self._readers)) > FEW:
                self._rested = self._loop.time() + min(LONGEST_REST, many * REST_FOR_EACH)
