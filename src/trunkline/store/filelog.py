"""The log of one session in one file: appended to, read back, never rewritten.

Deltas that follow each other become one record when something else is appended, when there are many of them, or when
the log is synced or closed. Until then a `flush` puts them into the file beside the log, see `store.deltas`.

Records stay in memory until `flush`, however many: `append` says how long they are, so that the caller can tell when
to flush. After a failed `flush` they still are, and the next one goes on at the very byte where the file ends: nothing
appended is forgotten, up to `appending.UNWRITTEN_BYTES` (64 MiB). When more than that could not be written, the oldest
of those records are given up, so that a full disk does not become full memory. Their sequence numbers are not given to
others: `read` shows a `Gap` in their place, at once and for ever. What a `flush` has written is never given up.

A `flush` that fails costs no more than what was appended since the one before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from trunkline.core import records
from trunkline.core.events import Envelope, Gap, TextDelta, ThinkingDelta
from trunkline.core.log import Restored
from trunkline.store import appending, deltas, durable, locks, logfile, names
from trunkline.store.reading import restored, with_gaps

_LINE_FEED = ord("\n")


class FileLog:
    """An `EventLog` in a file. Made by `FileStore`."""

    shows_kept = False

    def __init__(
        self,
        fd: int,
        path: str,
        session: str,
        header: logfile.Header,
        *,
        start: int,
        size: int,
        last: int,
        made: tuple[str, ...] = (),
    ) -> None:
        self.workspace = header.workspace
        """The directory that the session was begun in."""
        self.agent = header.agent
        """Who answers in the session, if that was said when it was made."""
        self._fd = fd
        self._path = path
        self._session = session
        self._start = start
        """Where the records begin in the file."""
        self._size = size
        """How many bytes the file has."""
        self._last: float = last
        """The last sequence number; infinite when closed, so that one comparison guards `append`."""
        self._buffer: list[bytes] = []
        self._unwritten = bytearray()
        """What was flushed and could not be written. Adding to the end and taking from the front are cheap."""
        self._is_torn = False
        """Whether the file ends within a record, whose rest `_unwritten` begins with."""
        self._synced = 0
        self._unsynced_dirs = made
        """The directories that a new log, or its directory, was made in."""
        self._is_new = bool(made)
        self._lost: OSError | None = None
        self._run = deltas.DeltaRun()
        """The deltas that are no record yet."""
        self._mark = deltas.mark(header)
        self._tail = deltas.Tail(path, self._mark)
        self._joins = header.records >= records.VERSION_WITH_PARTS
        """Whether deltas become one record: not in a log that was begun without that."""

    @property
    def session(self) -> str:
        return self._session

    def append(self, envelope: Envelope) -> int:
        """Add a record. Touches no file.

        Raises:
            ValueError: its sequence number is not above the last one, or the log is closed.
            TypeError: its event holds something that is not JSON, or is nested too deep to be read back. It is not
                added.
        """
        seq, event = envelope.seq, envelope.event
        if seq <= self._last:
            self._refuse(seq)
        if (type(event) is TextDelta or type(event) is ThinkingDelta) and self._joins:
            size = self._run.add(envelope, event.text)
            if not size:
                self._seal()
                size = self._run.add(envelope, event.text)
            self._last = seq
            return size
        line = logfile.encode_record(envelope)
        self._seal()
        self._buffer.append(line)
        self._last = seq
        return len(line)

    def append_kept(self, lines: bytes, last: int) -> None:
        """Add lines as `logfile` encodes them, with everything up to the record `last`: they are kept elsewhere, too,
        and were encoded for that."""
        self._check()
        self._seal()
        self._buffer.append(lines)
        self._last = last

    def recover(self) -> None:
        """Take over what the last process put beside the log and did not live to put into it."""
        if not self._joins:
            return
        for delta in deltas.missing(deltas.read(self._path, self._session, self._mark), int(self._last)):
            self.append(delta)
        self._seal()
        # What cannot be written stays in memory, and where it is.
        with suppress(OSError):
            self.flush()
            self._tail.close(remove=True)

    def flush(self) -> None:
        unwritten = self._unwritten
        if self._buffer:
            unwritten += b"".join(self._buffer)
            self._buffer.clear()
        try:
            while unwritten:
                if written := os.write(self._fd, unwritten):
                    self._is_torn = unwritten[written - 1] != _LINE_FEED
                    del unwritten[:written]
                    self._size += written
        except OSError:
            self._give_up_oldest()
            raise
        run = self._run
        if not run.kept:
            self._tail.start_over()
        if len(run.deltas) > run.kept:
            self._tail.write(run.line(run.kept))
            run.kept = len(run.deltas)

    async def sync(self) -> None:
        """Flush, and wait until a power cut cannot take it back.

        Raises:
            OSError: it could not be written. If the disk failed after it had taken the data, every later `sync`
                fails, too: the kernel forgets what it could not write, and a second try would seem to succeed.
        """
        # Imported here, since logs are also read by programs that have no event loop.
        from asyncio import get_running_loop, shield

        self._seal()
        self.flush()
        self._check()
        if self._synced == self._size and not self._unsynced_dirs:
            return
        size, directories = self._size, self._unsynced_dirs
        # A duplicate, so that `close` in the meantime does not pull the file away.
        fd = os.dup(self._fd)
        try:
            work = get_running_loop().run_in_executor(None, self._make_durable, fd, directories)
        except BaseException:
            os.close(fd)
            raise
        # Shielded: a job that is cancelled before it begins would never close its file.
        await shield(work)
        self._synced = max(self._synced, size)
        self._unsynced_dirs = ()

    def read(self, since: int = 0) -> Iterator[Envelope | Gap]:
        """The records after `since`, as many as there are now. Holds no more than a chunk and a line in memory."""
        self._check()
        source = _Source(self)
        return with_gaps(self._records(source, since), since, int(self._last))

    def restore(self) -> Restored:
        self._check()
        source = _Source(self)
        lines = logfile.lines_backward(source.read_at, self._start, source.end)
        found = (logfile.decode_record(self._session, line) for _, line in lines)
        return restored((envelope for envelope in found if envelope is not None), int(self._last))

    def close(self) -> None:
        """Flush and let go of the session. Idempotent.

        Raises:
            OSError: the last records could not be written. The session is let go of nevertheless.
        """
        if self._fd < 0:
            return
        is_written = False
        try:
            self._seal()
            self.flush()
            is_written = True
        finally:
            self._tail.close(remove=is_written)
            fd, self._fd = self._fd, -1
            self._last = float("inf")
            # A sync in progress holds a duplicate, and with it the lock.
            locks.unlock(fd)
            os.close(fd)

    def ending(self) -> None:
        if self._fd >= 0:
            locks.say_ending(self._fd)

    def discard(self) -> None:
        """Close, and remove the file if this log was made and not opened."""
        if self._fd >= 0 and self._is_new:
            self._run = deltas.DeltaRun()
            self._buffer.clear()
            self._unwritten.clear()
            # While it is locked: nobody else can have put another file in its place.
            if locks.is_at(self._fd, self._path):
                os.unlink(self._path)
        self.close()

    def _seal(self) -> None:
        if self._run.deltas:
            self._buffer.append(self._run.taken())

    def _give_up_oldest(self) -> None:
        excess = appending.excess(len(self._unwritten))
        if excess:
            # A record that the file has the beginning of is to be completed: what follows needs a line of its own.
            start = self._unwritten.find(b"\n") + 1 if self._is_torn else 0
            end = self._unwritten.find(b"\n", start + excess - 1) + 1
            del self._unwritten[start:end]

    def _records(self, source: _Source, since: int) -> Iterator[Envelope]:
        start = logfile.find(source.read_at, self._start, source.end, since) if since else self._start
        for _, line in logfile.lines_forward(source.read_at, start, source.end):
            seq = logfile.seq_of(line)
            if seq is None or seq > since:
                yield from logfile.decode_events(self._session, line)

    def _make_durable(self, fd: int, directories: tuple[str, ...]) -> None:
        """In a thread."""
        try:
            if self._lost is not None:
                raise OSError(self._lost.errno, f"an earlier write was lost: {self._lost.strerror}")
            durable.sync_data(fd)
            for directory in directories:
                durable.sync_directory(directory)
        except OSError as error:
            self._lost = error
            raise
        finally:
            os.close(fd)

    def _check(self) -> None:
        if self._fd < 0:
            raise ValueError(f"the log of session '{names.shown(self._session)}' is closed")

    def _refuse(self, seq: int) -> None:
        self._check()
        raise ValueError(f"record {seq} comes after record {self._last}")


class _Source:
    """A log's bytes as they were when reading began: the file, then what was still in memory."""

    def __init__(self, log: FileLog) -> None:
        self._log = log
        self._size = log._size
        self._tail = b"".join((log._unwritten, *log._buffer, log._run.line()))
        self.end = self._size + len(self._tail)

    def read_at(self, length: int, offset: int) -> bytes:
        """Some bytes from an offset on."""
        # Also in the middle of reading: the number of a closed file may be another file's by now.
        self._log._check()
        in_file = self._size - offset
        data = os.pread(self._log._fd, min(length, in_file), offset) if in_file > 0 else b""
        if length <= in_file:
            return data
        start = max(0, -in_file)
        return data + self._tail[start : start + length - len(data)]
