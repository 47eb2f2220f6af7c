"""A session's events for those who only watch: consoles, recorders, other wires.

A watcher is never waited for. A `Subscription` has a queue of bounded length; when it is full, deltas and other passing
events are dropped first and the rest only if that does not help. What is missing is always marked by a `Gap`, which a
watcher can fill from the log (`Session.subscribe(since=gap.first - 1)`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from trunkline.core.events import Audio, Envelope, Gap, Progress, TextDelta, ThinkingDelta

#: Some seconds of a fast model's words.
QUEUE_LENGTH = 1024

#: Events whose loss a watcher can bear: the end of the turn makes up for them.
PASSING = (TextDelta, ThinkingDelta, Progress, Audio)


class SessionWatcher:
    """A sink of a session for which nobody waits, and which hears of the session's end."""

    congested = False

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Nobody waits for a watcher."""

    def close(self) -> None:
        """There will be no more. Idempotent."""
        raise NotImplementedError


class Subscription(SessionWatcher):
    """One watcher's view: an asynchronous iterator of envelopes and gaps, in order, until `close`."""

    def __init__(self, on_close: Callable[[Subscription], None], length: int = QUEUE_LENGTH, *, after: int = 0) -> None:
        if length < 2:
            raise ValueError("a queue needs room for an event and a gap")
        self.after = after
        """The sequence number that it begins after."""
        self._on_close = on_close
        self._length = length
        self._queue: deque[Envelope | Gap] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    # The session's sink.

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events; makes room if there is none."""
        if len(self._queue) + len(envelopes) < self._length - 1:
            # Almost always, and there may be a hundred watchers.
            self._queue.extend(envelopes)
        else:
            for envelope in envelopes:
                self._accept(envelope)
        self._wake.set()

    def _accept(self, envelope: Envelope) -> None:
        queue = self._queue
        if len(queue) >= self._length - 1 and isinstance(envelope.event, PASSING) and isinstance(queue[-1], Gap):
            # The common case of a watcher that has fallen behind, at no cost.
            queue[-1] = Gap(queue[-1].first, envelope.seq)
            return
        if len(queue) >= self._length:
            self._drop_words()
        if len(self._queue) >= self._length:
            self._drop_oldest()
        self._queue.append(envelope)

    def _drop_words(self) -> None:
        """Replace passing events by gaps; neighbouring gaps become one."""
        kept: deque[Envelope | Gap] = deque()
        for item in self._queue:
            if isinstance(item, Envelope) and not isinstance(item.event, PASSING):
                kept.append(item)
            elif kept and isinstance(kept[-1], Gap):
                kept[-1] = Gap(kept[-1].first, _last(item))
            else:
                kept.append(Gap(_first(item), _last(item)))
        self._queue = kept

    def _drop_oldest(self) -> None:
        """Nothing but weighty events, and nobody takes them: the older half goes."""
        gone = len(self._queue) - min(self._length // 2, self._length - 2)
        first = _first(self._queue[0])
        for _ in range(gone - 1):
            self._queue.popleft()
        self._queue.appendleft(Gap(first, _last(self._queue.popleft())))

    # The watcher.

    def close(self) -> None:
        """Watch no more; what is queued can still be read. Idempotent."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._wake.set()

    def __aiter__(self) -> AsyncIterator[Envelope | Gap]:
        return self

    async def __anext__(self) -> Envelope | Gap:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._queue.popleft()


def _first(item: Envelope | Gap) -> int:
    return item.first if isinstance(item, Gap) else item.seq


def _last(item: Envelope | Gap) -> int:
    return item.last if isinstance(item, Gap) else item.seq
