"""A session's events for those who only watch: consoles, recorders, other wires.

A watcher is never waited for. A `Subscription` has a queue of bounded length; when it is full, deltas and other passing
events are dropped first and the rest only if that does not help. What is missing is always marked by a `Gap`, which a
watcher can fill from the log (`Session.subscribe(since=gap.first - 1)`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from trunkline.core.events import Audio, Envelope, Gap, Progress, TextDelta, ThinkingDelta, first_seq, last_seq

#: Some seconds of a fast model's words.
QUEUE_LENGTH = 1024

#: Up to this many readers are given every event at once.
FEW = 4
#: With more readers, events that follow each other closely are gathered, in seconds for each reader: about three times
#: the time it takes to send to it.
REST_FOR_EACH = 0.000_03
#: The longest time for which events are gathered, in seconds. Well within the 5 ms that an exchange may add.
LONGEST_REST = 0.003

R = TypeVar("R")

#: Events whose loss a watcher can bear: the end of the turn makes up for them.
PASSING = (TextDelta, ThinkingDelta, Progress, Audio)


class SessionWatcher:
    """A sink that the session never waits for, and that is told when the session ends."""

    congested = False

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Nobody waits for a watcher."""

    def close(self) -> None:
        """There will be no more. Idempotent."""
        raise NotImplementedError


class Fanout(SessionWatcher, Generic[R]):
    """Passes events on to any number of readers.

    After a pause, events are passed on at once. Those that follow soon after wait a moment for each other: waking a
    hundred readers for one word costs far more than the word.
    """

    def __init__(self) -> None:
        self.readers: dict[R, None] = {}
        self._held: list[Envelope] = []
        self._loop = asyncio.get_running_loop()
        self._rested = 0.0
        """When the readers can be given more, by the loop's clock."""
        self._flushing: asyncio.TimerHandle | None = None

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events."""
        self._held += envelopes
        if self._flushing is None:
            if self._loop.time() >= self._rested:
                self.flush()
            else:
                self._flushing = self._loop.call_at(self._rested, self.flush)

    def flush(self) -> None:
        """Pass on what is held."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._held:
            held, self._held = self._held, []
            self.hand_on(held)
            if (many := len(self.readers)) > FEW:
                self._rested = self._loop.time() + min(LONGEST_REST, many * REST_FOR_EACH)

    def hand_on(self, envelopes: Sequence[Envelope]) -> None:
        """Give events to all readers."""
        raise NotImplementedError


class Subscribers(Fanout["Subscription"]):
    """The watchers of a session in this process."""

    def hand_on(self, envelopes: Sequence[Envelope]) -> None:
        """Put events into all queues."""
        for subscription in self.readers:
            subscription.show(envelopes)

    def close(self) -> None:
        """There will be no more."""
        self.flush()
        for subscription in tuple(self.readers):
            subscription.close()


class Subscription:
    """One watcher's view: envelopes and gaps, in order, until `close`. `Session.subscribe` iterates over it."""

    def __init__(self, on_close: Callable[[Subscription], None], length: int = QUEUE_LENGTH, *, after: int = 0) -> None:
        if length < 2:
            raise ValueError("a queue needs room for an event and a gap")
        self.after = after
        """The sequence number that it begins after."""
        self._on_close = on_close
        self._length = length
        self._queue: deque[Envelope | Gap] = deque()
        self._waiting: asyncio.Future[None] | None = None
        """Set while somebody waits in `more`. A plain future, because a hundred watchers are woken at a time."""
        self._closed = False

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events; makes room if there is none."""
        if len(self._queue) + len(envelopes) < self._length - 1:
            # Almost always, and there may be a hundred watchers.
            self._queue.extend(envelopes)
        else:
            for envelope in envelopes:
                self._accept(envelope)
        self._wake()

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
                kept[-1] = Gap(kept[-1].first, last_seq(item))
            else:
                kept.append(Gap(first_seq(item), last_seq(item)))
        self._queue = kept

    def _drop_oldest(self) -> None:
        """Nothing but weighty events, and nobody takes them: the older half goes."""
        gone = len(self._queue) - min(self._length // 2, self._length - 2)
        first = first_seq(self._queue[0])
        for _ in range(gone - 1):
            self._queue.popleft()
        self._queue.appendleft(Gap(first, last_seq(self._queue.popleft())))

    # The watcher.

    def close(self) -> None:
        """Watch no more; what is queued can still be read. Idempotent."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._wake()

    def pop(self) -> Envelope | Gap | None:
        """The next, if there is one."""
        return self._queue.popleft() if self._queue else None

    async def more(self) -> bool:
        """Wait for more; whether there can be any."""
        if not self._queue and not self._closed:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return bool(self._queue) or not self._closed

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
