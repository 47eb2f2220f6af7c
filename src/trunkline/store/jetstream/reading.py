"""The events of a session as they come from the stream: up to a point, or for as long as somebody listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from trunkline.core.events import Envelope
from trunkline.store.jetstream.batches import BatchReader
from trunkline.store.jetstream.errors import StreamError, translated
from trunkline.store.jetstream.stream import SessionStream

if TYPE_CHECKING:
    from nats.aio.msg import Msg

logger = logging.getLogger(__name__)

#: How long nothing comes before it is looked whether something should have.
QUIET_SECONDS = 2.0
_AGAIN_SECONDS = 0.25


class _Removed(StreamError):
    """There is nothing about the session any more."""


class StreamedBatch:
    """What one message brought: some events, or a new owner."""

    def __init__(self, number: int, events: Sequence[Envelope], owner: bytes | None, whole: int) -> None:
        self.number = number
        """Of the message in the stream."""
        self.whole = whole
        """The number after which somebody else can go on, and misses nothing: not in the middle of a batch."""
        self.events = events
        self.owner = owner
        """The record about the owner, if it is one."""


async def follow(stream: SessionStream, session: str, after: int = 0) -> AsyncGenerator[StreamedBatch, None]:
    """Every message about a session with a number above `after`, in order and without a hole, until it is removed. Goes
    on when servers go away and come back."""
    reader = BatchReader(session)
    owner_subject, pattern = stream.owner_subject(session), stream.both_subjects(session)
    whole = after
    while True:
        try:
            async with aclosing(_messages(stream, pattern, after)) as messages:
                async for message in messages:
                    after = message.metadata.sequence.stream
                    is_owner = message.subject == owner_subject
                    if is_owner:
                        reader.leave()
                    events = () if is_owner else reader.take(message.headers, message.data)
                    whole = whole if reader.is_between else after
                    yield StreamedBatch(after, events, message.data if is_owner else None, whole)
        except _Removed:
            return
        except StreamError as error:
            logger.info("the events of session %s are interrupted: %s", session, error)
        await asyncio.sleep(_AGAIN_SECONDS)


async def read_until(stream: SessionStream, session: str, number: int) -> AsyncGenerator[StreamedBatch, None]:
    """Every message about a session up to that of that number, which must be one of the session's."""
    async with aclosing(follow(stream, session)) as batches:
        async for batch in batches:
            yield batch
            if batch.number >= number:
                return


async def _messages(stream: SessionStream, pattern: str, after: int) -> AsyncGenerator[Msg, None]:
    """The messages on some subjects, until it is known that one is missing."""
    from nats.errors import TimeoutError as NothingCame
    from nats.js.api import ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1)
    with translated():
        subscription = await stream.context.subscribe(pattern, stream=stream.name, config=config, ordered_consumer=True)
    try:
        while True:
            try:
                with translated():
                    message = await subscription.next_msg(timeout=QUIET_SECONDS)
            except StreamError as error:
                if not isinstance(error.__cause__, NothingCame):
                    raise
                last, _ = await stream.last(pattern)
                if not last and after:
                    raise _Removed("The session was removed.") from None
                if last > after:
                    return
                continue
            after = message.metadata.sequence.stream
            yield message
    finally:
        with suppress(StreamError), translated():
            await subscription.unsubscribe()
