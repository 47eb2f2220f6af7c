"""Stamps the events of a session, writes them to its log and shows them to its sinks.

The order is always log first, sinks second: nothing is shown that a crash could take back, and a turn's end is shown
only once it would survive a power cut; with a log that says so (`shows_kept`), nothing is before that. Both happen at
the end of the loop's tick in which the event came, so that a burst of text costs one write and a single word is never
held.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from trunkline.base import jsontext
from trunkline.core.events import Checkpointed, Envelope, Event, Failed, Gap, TextDelta, ToolJudged, TurnEnded, last_seq
from trunkline.core.feed import SessionWatcher, Subscribers, Subscription
from trunkline.core.log import EventLog, LogLost, Restored
from trunkline.core.state import SessionState

logger = logging.getLogger(__name__)

#: A checkpoint is due when that many bytes were logged since the last one, and four times its own size: resuming
#: then reads a bounded amount, and all checkpoints together stay a fraction of the log.
CHECKPOINT_BYTES = 256 * 1024
CHECKPOINT_RATIO = 4
#: What a record is taken to be long that was written before the session was resumed: a word of text, with its frame.
RECORD_BYTES = 128

#: Events handled before the loop gets a turn, so that one that never waits cannot keep out a `stop`.
EVENTS_PER_TICK = 128

#: Events that may wait for a slow disk before the agent is asked to wait, too.
MAX_HELD = 4096


class Sink(Protocol):
    """Who is shown the events, in order. `show` must neither fail nor wait.

    One with an attribute `sees_judged` that is true is also shown each `ToolJudged`: what is done unasked, it can tell
    with its arguments.
    """

    @property
    def congested(self) -> bool:
        """Whether the agent should wait before it says more."""

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some more events, all of which are in the log."""

    async def drain(self) -> None:
        """Wait until it is not congested."""


class Recorder:
    """The way of every event: stamp, state, log, sinks."""

    def __init__(
        self,
        log: EventLog,
        restored: Restored | None,
        clock: Callable[[], float],
        redact: Callable[[Event], Sequence[Event]] | None,
    ) -> None:
        self.session = log.session
        self.state = restored.state if restored else SessionState()
        self.sinks: list[Sink] = []
        self.seq = restored.seq if restored else 0
        """The number of the latest event."""
        self._log = log
        self._clock = clock
        self._redact = redact
        self._subscribers = Subscribers()
        self._loop = asyncio.get_running_loop()
        self._held: deque[Envelope] = deque()
        """Logged, or about to be, and not yet shown."""
        self._judged = False
        """Whether a `ToolJudged` is held."""
        self._first_end: int | None = None
        """The earliest turn's end that is held: it, and what follows, waits for the disk. With a log that shows only
        what is kept, the earliest event of all."""
        self._shows_kept = log.shows_kept
        self.lost: Callable[[], None] = lambda: None
        """Called when the session is another's."""
        self.is_lost = False
        self._all_shown = asyncio.Event()
        self._all_shown.set()
        self._flush_scheduled = False
        self._syncing: asyncio.Task[None] | None = None
        self._log_broken = False
        self._closed = False
        self._frozen = False
        self._since_checkpoint = restored.records * RECORD_BYTES if restored else 0
        self._checkpoint_size = len(jsontext.dumps(self.state.snapshot())) if restored else 0

    @property
    def congested(self) -> bool:
        """Whether the disk or a sink is so far behind that the agent should wait."""
        if len(self._held) > MAX_HELD:
            return True
        for sink in self.sinks:  # noqa: SIM110  (asked after every event, and a generator costs more than the loop)
            if sink.congested:
                return True
        return False

    async def drain(self) -> None:
        """Wait for the disk and the sinks."""
        if len(self._held) > MAX_HELD:
            await self._all_shown.wait()
        for sink in tuple(self.sinks):
            if sink.congested:
                await sink.drain()

    def emit(self, turn: int, event: Event) -> None:
        """Record one event, and show it soon.

        Raises:
            TypeError: it holds something that is not JSON. It is neither logged nor shown.
        """
        if self._frozen:
            return
        if self._redact is None:
            self._record(turn, event)
        else:
            for clean in self._redact(event):
                self._record(turn, clean)

    def _record(self, turn: int, event: Event) -> None:
        envelope = Envelope(self.session, self.seq + 1, turn, self._clock(), event)
        self._since_checkpoint += self._log.append(envelope)
        # Only now: what the log refuses leaves no hole in the numbers.
        self.seq += 1
        kind = type(event)
        if kind is not TextDelta:
            self.state.apply(envelope)
        if self._first_end is None and (self._shows_kept or kind is TurnEnded):
            self._first_end = self.seq
        if not event.private:
            self._held.append(envelope)
        elif kind is ToolJudged:
            self._judged = True
            self._held.append(envelope)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._all_shown.clear()
            self._loop.call_soon(self._end_of_tick)

    def follow(self, envelopes: Sequence[Envelope]) -> None:
        """Take over events that somebody else has recorded and kept, and show them; not those that are known."""
        for envelope in envelopes:
            if envelope.seq <= self.seq:
                continue
            self._log.append(envelope)
            self.seq = envelope.seq
            kind = type(envelope.event)
            if kind is not TextDelta:
                self.state.apply(envelope)
            if not envelope.event.private or kind is ToolJudged:
                self._judged = self._judged or kind is ToolJudged
                self._held.append(envelope)
        self.flush()

    def flush(self) -> None:
        """Log and show now what waits for the end of the tick; but never a turn's end before it is durable."""
        if self._syncing is not None:
            return
        try:
            self._log.flush()
            self._log_broken = False
        except OSError as error:
            self._report(error)
        self._show(self.seq if self._first_end is None else self._first_end - 1)
        if self._first_end is not None:
            self._syncing = self._loop.create_task(self._sync(), name="sync the log")

    def freeze(self) -> None:
        """Record no more: what an agent says that is let go of in the middle of its turn."""
        self._frozen = True

    def forget_unshown(self) -> None:
        """What was emitted so far is for the log alone: it belongs to a time before anybody watched."""
        self._held.clear()
        self._first_end = None

    async def shown(self) -> None:
        """Wait until everything that was emitted so far has been shown."""
        await self._all_shown.wait()

    async def kept(self) -> bool:
        """Wait until what was emitted so far is kept, if it is shown only then: before something is done that must not
        be done again. Whether it is kept, and the session is still ours."""
        if self._shows_kept:
            await self._all_shown.wait()
        return not self._frozen

    @property
    def shown_seq(self) -> int:
        """The number of the latest event that has been shown, or would have been."""
        if self._shows_kept and self._first_end is not None:
            # Also what nobody is shown is in the log only then, and somebody else may go on from there.
            return self._first_end - 1
        return self._held[0].seq - 1 if self._held else self.seq

    def attach(self, sink: Sink) -> None:
        """Show it what comes: nothing, when the session is closed."""
        self.sinks.append(sink)
        if self._closed and isinstance(sink, SessionWatcher):
            sink.close()

    def subscribe(self, length: int) -> Subscription:
        """A watcher of what comes."""
        subscription = Subscription(self._unsubscribe, length, after=self.shown_seq)
        if not self._subscribers.readers:
            self.sinks.append(self._subscribers)
        # What the others have not been given yet is not for one who comes now.
        self._subscribers.flush()
        self._subscribers.readers[subscription] = None
        if self._closed:
            subscription.close()
        return subscription

    def _unsubscribe(self, subscription: Subscription) -> None:
        del self._subscribers.readers[subscription]
        if not self._subscribers.readers:
            self.sinks.remove(self._subscribers)

    def read(self, since: int, until: int, *, judged: bool = False) -> Iterator[Envelope | Gap]:
        """The public events from the log, after one sequence number and up to another; with `judged` also those."""
        for item in self._log.read(since):
            if isinstance(item, Gap):
                yield item
            elif item.seq > until:
                return
            elif not item.event.private or (judged and type(item.event) is ToolJudged):
                yield item

    async def watch(self, live: Subscription, since: int | None) -> AsyncIterator[Envelope | Gap]:
        """What a subscription is given: from the log what came after `since`, then what comes, without a hole."""
        # What is on its way to the disk has a number already, and is shown later to those who do not know it.
        seen = min(since or 0, self.seq)
        try:
            if since is not None:
                try:
                    for read, item in enumerate(self.read(seen, live.after), 1):
                        yield item
                        seen = last_seq(item)
                        if read % EVENTS_PER_TICK == 0:
                            await asyncio.sleep(0)
                except ValueError:
                    # The log was closed in the middle.
                    yield Gap(seen + 1, live.after)
            is_new = False
            while await live.more():
                while (found := live.pop()) is not None:
                    # Numbers only increase: once one is new, all that follow are.
                    is_new = is_new or last_seq(found) > seen
                    if is_new:
                        yield found
        finally:
            live.close()

    def checkpoint_if_due(self) -> None:
        """Between turns: write down what resuming needs, if enough has happened since the last time."""
        if self._frozen or self._since_checkpoint < max(CHECKPOINT_BYTES, CHECKPOINT_RATIO * self._checkpoint_size):
            return
        checkpoint = Checkpointed(self.state.snapshot())
        self._checkpoint_size = self._log.append(Envelope(self.session, self.seq + 1, 0, self._clock(), checkpoint))
        self.seq += 1
        self._since_checkpoint = 0

    def ending(self) -> None:
        """The log will be let go of soon."""
        if not self._closed:
            self._log.ending()

    async def close(self, *, keep_unused: bool = True) -> None:
        """Write and show what is left, and let go of the log; or forget it, if it was not used and need not be kept."""
        if self._syncing is not None:
            await self._syncing
        try:
            await self._log.sync()
        except LogLost:
            self._give_up()
        except Exception as error:
            self._report(error)
        self._show(self.seq)
        self._closed = True
        for sink in tuple(self.sinks):
            if isinstance(sink, SessionWatcher):
                sink.close()
        with suppress(OSError):
            self._log.close() if keep_unused or self.state.was_used else self._log.discard()

    def _end_of_tick(self) -> None:
        self._flush_scheduled = False
        if not self._closed:
            self.flush()

    async def _sync(self) -> None:
        """Make turns' ends durable and show each as soon as it is, while others may wait for the next round."""
        try:
            while self._first_end is not None:
                durable = self.seq
                try:
                    await self._log.sync()
                except LogLost:
                    self._give_up()
                    return
                except Exception as error:
                    if self._shows_kept:
                        # Nobody knows what is kept.
                        logger.exception("the session cannot be kept")
                        self._give_up()
                        return
                    # Also a thread that cannot be started: the answer must not be lost with the disk.
                    self._report(error)
                self._first_end = self._next_end(durable)
                self._show(durable)
        finally:
            self._syncing = None
        self.flush()

    def _next_end(self, durable: int) -> int | None:
        if self._shows_kept:
            return durable + 1 if self.seq > durable else None
        later = (item.seq for item in self._held if item.seq > durable and type(item.event) is TurnEnded)
        return next(later, None)

    def _give_up(self) -> None:
        """The session is another's: say nothing more of it."""
        was_lost, self.is_lost = self.is_lost, True
        self._frozen = True
        # What was not kept never happened: its numbers are for what the new owner says.
        self.seq = self.shown_seq
        self._held.clear()
        self._first_end = None
        self._all_shown.set()
        if not was_lost:
            self.lost()

    def _show(self, up_to: int) -> None:
        held = self._held
        if held and held[-1].seq <= up_to:
            batch = list(held)
            held.clear()
        else:
            batch = []
            while held and held[0].seq <= up_to:
                batch.append(held.popleft())
        if batch and not self._judged:
            for sink in tuple(self.sinks):
                sink.show(batch)
        elif batch:
            self._judged = any(type(envelope.event) is ToolJudged for envelope in held)
            self._show_judged(batch)
        if not held:
            self._all_shown.set()

    def _show_judged(self, batch: Sequence[Envelope]) -> None:
        """What may hold a `ToolJudged`, which is for those alone who want it."""
        public = [envelope for envelope in batch if not envelope.event.private]
        for sink in tuple(self.sinks):
            if shown := batch if getattr(sink, "sees_judged", False) else public:
                sink.show(shown)

    def _report(self, error: Exception) -> None:
        """Tell the user, once per trouble, and not in the log, which cannot be written."""
        if self._log_broken:
            return
        self._log_broken = True
        logger.error("the session could not be saved: %s", error, extra={"session": self.session})
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        failed = Failed("internal", f"Failed to save session: {reason}", retryable=True)
        turn = max(self.state.open_turns, default=0)
        self._held.append(Envelope(self.session, self.seq, turn, self._clock(), failed))
