"""Stamps the events of a session, writes them to its log and shows them to its sinks.

The order is always log first, sinks second: nothing is shown that a crash could take back, and a turn's end is shown
only once it would survive a power cut. Both happen at the end of the loop's tick in which the event came, so that a
burst of text costs one write and a single word is never held.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from trunkline.core.events import Checkpointed, Envelope, Event, Failed, Gap, TextDelta, TurnEnded
from trunkline.core.feed import Subscription
from trunkline.core.log import EventLog, Restored
from trunkline.core.state import SessionState

logger = logging.getLogger(__name__)

#: A checkpoint is due when that many bytes were logged since the last one, and four times its own size: resuming
#: then reads a bounded amount, and all checkpoints together stay a fraction of the log.
CHECKPOINT_BYTES = 256 * 1024
CHECKPOINT_RATIO = 4
#: What a record is taken to be long that was written before the session was resumed: a word of text, with its frame.
RECORD_BYTES = 128


class Sink(Protocol):
    """Who is shown the events, in order. `accept` must not fail or wait."""

    @property
    def congested(self) -> bool:
        """Whether the agent should wait before it says more."""

    def accept(self, envelope: Envelope) -> None:
        """One more event. It may be held until `flush`."""

    def flush(self) -> None:
        """Show what was accepted."""

    async def drain(self) -> None:
        """Wait until it is not congested."""


class Recorder:
    """The way of every event: stamp, state, log, sinks."""

    def __init__(
        self,
        log: EventLog,
        restored: Restored | None,
        clock: Callable[[], float],
        redact: Callable[[Event], Event] | None,
    ) -> None:
        self.session = log.session
        self.state = restored.state if restored else SessionState()
        self.sinks: list[Sink] = []
        self._log = log
        self._seq = restored.seq if restored else 0
        self._clock = clock
        self._redact = redact
        self._loop = asyncio.get_running_loop()
        self._flush_scheduled = False
        self._sync_due = False
        self._syncing: asyncio.Task[None] | None = None
        self._log_broken = False
        self._since_checkpoint = restored.records * RECORD_BYTES if restored else 0
        self._checkpoint_size = 0

    def emit(self, turn: int, event: Event) -> None:
        """Record and show one event."""
        kind = type(event)
        if self._redact is not None and kind is not TextDelta:
            event = self._redact(event)
        envelope = Envelope(self.session, self._seq + 1, turn, self._clock(), event)
        self._since_checkpoint += self._log.append(envelope)
        # Only now: what the log refuses, because it is not JSON, leaves no hole in the numbers.
        self._seq += 1
        if kind is not TextDelta:
            self.state.apply(envelope)
            if kind is TurnEnded:
                self._sync_due = True
        if not event.private:
            for sink in self.sinks:
                sink.accept(envelope)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._end_of_tick)

    def flush(self) -> None:
        """Log and show now what waits for the end of the tick; but never a turn's end before it is durable."""
        if self._sync_due and self._syncing is None:
            self._syncing = self._loop.create_task(self._sync(), name="sync the log")
        if self._syncing is None:
            self._flush_now()

    def subscribe(self, length: int) -> Subscription:
        """A watcher of what comes."""
        subscription = Subscription(self.sinks.remove, length)
        self.sinks.append(subscription)
        return subscription

    def read(self, since: int) -> Iterator[Envelope | Gap]:
        """The public events from the log, up to the latest one so far."""
        latest = self._seq
        for item in self._log.read(since):
            if isinstance(item, Gap):
                yield item
            elif item.seq > latest:
                return
            elif not item.event.private:
                yield item

    def checkpoint_if_due(self) -> None:
        """Between turns: write down what resuming needs, if enough has happened since the last time."""
        if self._since_checkpoint < max(CHECKPOINT_BYTES, CHECKPOINT_RATIO * self._checkpoint_size):
            return
        checkpoint = Checkpointed(self.state.snapshot())
        self._checkpoint_size = self._log.append(Envelope(self.session, self._seq + 1, 0, self._clock(), checkpoint))
        self._seq += 1
        self._since_checkpoint = 0

    async def close(self) -> None:
        """Write and show what is left, and let go of the log."""
        if self._syncing is not None:
            await self._syncing
        self._flush_now()
        for sink in tuple(self.sinks):
            if isinstance(sink, Subscription):
                sink.close()
        try:
            await self._log.sync()
        except OSError as error:
            logger.error("the session could not be saved: %s", error)
        with suppress(OSError):
            self._log.close()

    def _end_of_tick(self) -> None:
        self._flush_scheduled = False
        self.flush()

    async def _sync(self) -> None:
        """Make the log durable, while whatever comes meanwhile is held; then show it all."""
        while self._sync_due:
            self._sync_due = False
            try:
                await self._log.sync()
            except OSError as error:
                self._report(error)
        self._syncing = None
        self._flush_now()

    def _flush_now(self) -> None:
        try:
            self._log.flush()
            self._log_broken = False
        except OSError as error:
            self._report(error)
        for sink in self.sinks:
            sink.flush()

    def _report(self, error: OSError) -> None:
        """Tell the user, once per trouble, and not in the log, which cannot be written."""
        if self._log_broken:
            return
        self._log_broken = True
        logger.error("the session could not be saved: %s", error)
        failed = Failed("internal", f"Failed to save session: {error.strerror or error}", retryable=True)
        turn = self.state.open_turn or 0
        for sink in self.sinks:
            sink.accept(Envelope(self.session, self._seq, turn, self._clock(), failed))
