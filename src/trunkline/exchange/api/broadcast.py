"""One session's events for any number of readers: each is encoded once, and handed on together with its neighbours.

A reader costs something for each handful of events, not for each event. What it has not taken is bounded: beyond that
deltas and other passing events are dropped first, and the rest only if that does not help. What is missing is marked by
a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

from trunkline.base.values import Value
from trunkline.core.events import Envelope, Gap
from trunkline.core.feed import PASSING, Fanout
from trunkline.core.session import Session
from trunkline.exchange.api.event_form import encode, encode_gap

#: What is kept for a reader that is behind: a minute of a fast model's words.
BACKLOG_BYTES = 1024 * 1024


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

    __slots__ = ("data", "framed", "parts", "pieces")

    def __init__(self, pieces: list[StreamPiece]) -> None:
        self.pieces = pieces
        self.data = b"".join([each.data for each in pieces])
        self.framed = b"%x\r\n%b\r\n" % (len(self.data), self.data)
        """As a chunk of HTTP/1.1."""
        gone = StreamPiece(pieces[0].first, pieces[-1].last, True, b"")
        self.parts = [gone] if all(each.passing for each in pieces) else pieces
        """What dropping has to look at: pieces that may all go are one, for every reader."""


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
        first = last = 0
        for each in chain.from_iterable(chunk.parts for chunk in self._chunks):
            if each.passing:
                first, last = first or each.first, each.last
                continue
            if first:
                kept.append(self._gap(first, last))
                first = 0
            kept.append(each)
        if first:
            kept.append(self._gap(first, last))
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


class Broadcast(Fanout[EventStreamReader]):
    """The events of one session at work, from now until it is closed or the last reader leaves."""

    def __init__(self, session: Session, over: Callable[[], None]) -> None:
        """`over` is called when it has ended."""
        super().__init__()
        self._session = session
        self._over = over
        self.is_over = False
        session.attach(self)

    def join(self, reader: EventStreamReader) -> int:
        """Give a reader what comes; the number of the event after which that begins."""
        self.flush()
        if self.is_over:
            reader.ended()
        else:
            self.readers[reader] = None
        return self._session.shown

    def leave(self, reader: EventStreamReader) -> None:
        """Give it nothing more."""
        self.readers.pop(reader, None)
        if not self.readers:
            self.close()

    def hand_on(self, envelopes: Sequence[Envelope]) -> None:
        """The same bytes for all."""
        chunk = StreamChunk([piece(self._session.id, envelope) for envelope in envelopes])
        for reader in self.readers:
            reader.give(chunk)

    def close(self) -> None:
        """There will be no more, or nobody is there who would read it."""
        if not self.is_over:
            self.is_over = True
            self._session.detach(self)
            self.flush()
            self._over()
            for reader in tuple(self.readers):
                reader.ended()
