"""The log of a session that this node owns: the stream for keeping, and a file for reading.

What is appended counts when the stream has it: `sync` publishes, one batch at a time, since the server cannot check the
fence of a second one while the first is on its way. What gathers meanwhile is the next batch. The file has what the
stream has, and nothing else: whoever reads it reads what is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator

from trunkline.base import backoff
from trunkline.core.events import Envelope, Gap
from trunkline.core.log import LogLost, Restored
from trunkline.store.filelog import FileLog
from trunkline.store.jetstream import batches
from trunkline.store.jetstream.errors import StreamError, WrongSequence
from trunkline.store.jetstream.ownership import SessionOwner
from trunkline.store.jetstream.stream import SessionStream

logger = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.02
_LONGEST_DELAY_SECONDS = 0.5

LOST = "Another node has the session now."
CUT_OFF = "This node is cut off from the others, and lets go of its sessions."


class StreamedLog:
    """A `core.log.EventLog`. What it has appended is shown when the stream has it."""

    shows_kept = True

    def __init__(
        self, file: FileLog, stream: SessionStream, owner: SessionOwner, is_held: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_held`: whether this node may still count itself alive; asked while nobody answers."""
        self.file = file
        self.owner = owner
        self._stream = stream
        self._is_held = is_held
        self._gathered = batches.Batch()
        """What was appended and is in no batch yet."""
        self._last = int(file.restore().seq)
        self._sending: tuple[bytes, int] | None = None
        """The batch that is being published: its lines, and its last number."""
        self._batch: deque[tuple[str, dict[str, str], bytes]] = deque()
        """The messages of a batch that are still to be published: as they are, or the servers would take a second try
        for something new."""
        self._tried = ""
        """The message that was sent last, and may have arrived."""
        self._publishing = asyncio.Lock()
        self._lost = ""

    @property
    def session(self) -> str:
        return self.file.session

    def append(self, envelope: Envelope) -> int:
        if envelope.seq <= self._last:
            raise ValueError(f"record {envelope.seq} comes after record {self._last}")
        size = self._gathered.add(envelope)
        self._last = envelope.seq
        return size

    def flush(self) -> None:
        """Nothing outlives this process before `sync`."""

    async def sync(self) -> None:
        """Publish what was appended so far, and wait until the servers have it on their disks. What comes meanwhile is
        for the next call: from an agent that is quicker than they are, nothing would be shown before it rests.

        Raises:
            LogLost: it is another node's now, or this one is cut off; what was not published never counts.
        """
        until = self._last
        async with self._publishing:
            while self._sending is not None or (self._gathered and self._gathered.first <= until):
                if self._sending is None:
                    self._gather()
                while self._batch:
                    await self._publish(*self._batch[0])
                    self._batch.popleft()
                self._kept()

    def _gather(self) -> None:
        name = f"{self.owner.fence}-{self._gathered.first}"
        lines = self._gathered.taken()
        self._sending = lines, self._last
        self._batch.extend((f"{name}-{number}", *each) for number, each in enumerate(batches.parts(name, lines)))

    def _kept(self) -> None:
        """The stream has the batch: now the file may have it."""
        if self._sending is not None:
            self.file.append_kept(*self._sending)
            self._sending = None
            try:
                self.file.flush()
            except OSError as error:
                # It is in memory, and in the stream.
                logger.warning("the file of session %s cannot be written: %s", self.session, error)

    async def _publish(self, id: str, headers: dict[str, str], piece: bytes) -> None:
        subject = self._stream.log_subject(self.session)
        about = self._stream.owner_subject(self.session)
        token = subject.removeprefix(self._stream.prefix)
        failures = 0
        while True:
            if self._lost or not self._is_held():
                self.lose(CUT_OFF)
                raise LogLost(self._lost)
            again, self._tried = self._tried == id, id
            try:
                await self._stream.publish(
                    subject,
                    piece,
                    expected=self.owner.fence,
                    about=about,
                    id=f"{token} {id}",
                    again=again,
                    headers=headers,
                )
                return
            except WrongSequence:
                self.lose(LOST)
                raise LogLost(self._lost) from None
            except StreamError as error:
                # Also what is refused: a duplicate of what is on its way, or no room on a disk. It passes, or the lease
                # does.
                failures += 1
                if failures == 3:
                    logger.warning("the events of session %s cannot be kept yet: %s", self.session, error)
                await asyncio.sleep(backoff.delay(failures, _FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS))

    def lose(self, why: str) -> None:
        """Publish no more: the session is another's, or about to be."""
        self._lost = self._lost or why

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        return self.file.read(since)

    def restore(self) -> Restored:
        return self.file.restore()

    def close(self) -> None:
        self.file.close()

    def ending(self) -> None:
        self.file.ending()

    def discard(self) -> None:
        self.file.discard()
