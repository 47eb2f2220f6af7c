"""Talk to a child through its pipes without an event loop and without ever being stuck on one of them.

`pump` is the simple way: input in, output out. `Pump` is the same step by step, for those who have a clock of their
own, or something to say while the child runs.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Literal, TypeAlias

from trunkline.base.process import DRAIN_SECONDS, Child
from trunkline.base.process_guard import make_pipe
from trunkline.base.watchdog import open_pidfd

OutputName: TypeAlias = Literal["stdout", "stderr"]
Chunk: TypeAlias = tuple[OutputName, bytes]

#: As much as a pipe holds by default: one read empties it.
CHUNK_BYTES = 1 << 16
#: The largest pipe an ordinary user can have: what is read of a pipe at most when its time is over.
LAST_LOOK_BYTES = 1 << 20
#: Where there is no pidfd, how often to look whether the leader has ended.
_LOOK_SECONDS = 0.02


def pump(child: Child, data: bytes = b"", timeout: float | None = None) -> Generator[Chunk, None, None]:
    """Write `data` to the child and close its input; meanwhile yield what it says, as it says it.

    Ends when all output has ended, or `DRAIN_SECONDS` after the leader has: a grandchild that holds a pipe open does
    not hold us. A child that does not read its input, or closes it early, is no error. The pipes are closed at the end.

    Raises:
        TimeoutError: the child still runs `timeout` seconds after the call's first step. It is left running.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with Pump(child, data) as pipes:
        while not pipes.drained:
            if deadline is not None and not pipes.ended and time.monotonic() >= deadline:
                raise TimeoutError(f"process {child.pid} did not end in time")
            yield from pipes.step(deadline)
        yield from pipes.last_look()


class Pump:
    """The pipes of one child. Use it as a context manager: the pipes are closed at the end.

    The input is closed behind `data`, unless it is `open_input`: then behind the last `send`, by `close_input`. When
    there is something to read from `wake_up`, it is read, and a wait ends: see `signals.waking`.
    """

    def __init__(
        self, child: Child, data: bytes = b"", *, open_input: bool = False, wake_up: int | None = None
    ) -> None:
        self._child = child
        self._unwritten = memoryview(data)
        self._poller = select.poll()
        self._outputs: dict[int, OutputName] = {}
        self._drain_until: float | None = None
        self._to_send: deque[bytes] = deque()
        self._input_open = open_input
        # A signal handler that sends may interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._waker = make_pipe() if open_input else None
        if self._waker is not None:
            os.set_blocking(self._waker[1], False)
            self._poller.register(self._waker[0], select.POLLIN)
        self._wake_up = wake_up
        if wake_up is not None:
            self._poller.register(wake_up, select.POLLIN)
        self._watch(child.stdout, "stdout")
        self._watch(child.stderr, "stderr")
        # Also of one that has ended, which is then told at once.
        self._pidfd = None if child.gone else open_pidfd(child.pid)
        if self._pidfd is not None:
            self._poller.register(self._pidfd, select.POLLIN)
        self._is_writing = False
        if child.stdin is not None:
            os.set_blocking(child.stdin, False)
            self._write()

    @property
    def ended(self) -> bool:
        """Whether the leader has ended."""
        # While there is a pidfd that said nothing, it has not.
        if self._drain_until is None and self._pidfd is None and self._child.poll() is not None:
            self._drain_until = time.monotonic() + DRAIN_SECONDS
        return self._drain_until is not None

    @property
    def finished(self) -> bool:
        """Whether the leader has ended and all that it said was read, or its time to be read is over."""
        if not self.ended:
            return False
        return not self._outputs or (self._drain_until is not None and time.monotonic() >= self._drain_until)

    @property
    def drained(self) -> bool:
        """Whether nothing is left to read or write. A leader that closed its output may still be reading."""
        if self.ended:
            return self.finished
        return not self._outputs and self._child.stdin is None

    def run(self, take: Callable[[OutputName, bytes], None]) -> None:
        """Read until `finished`, and give each piece to `take` as it comes. One turn of an agent is spent here."""
        poll, outputs = self._poller.poll, self._outputs
        # While there is a pidfd that said nothing, the leader runs, and there is nothing to look at but the pipes.
        while self._pidfd is not None or not self.finished:
            for fd, event in poll(None if self._pidfd is not None else self._patience(None)):
                name = outputs.get(fd)
                if name is None:
                    self._attend(fd)
                elif event == select.POLLHUP:
                    # Its end, and nothing in front of it.
                    self._forget(fd)
                elif chunk := self._read(fd):
                    take(name, chunk)
        for name, chunk in self.last_look():
            take(name, chunk)

    def step(self, until: float | None = None) -> list[Chunk]:
        """Wait for something to happen, but not longer than until then by the monotonic clock; deal with it.

        Gives what was read. It may be nothing.
        """
        chunks: list[Chunk] = []
        for fd, _ in self._poller.poll(self._patience(until)):
            name = self._outputs.get(fd)
            if name is None:
                self._attend(fd)
            elif chunk := self._read(fd):
                chunks.append((name, chunk))
        return chunks

    def _attend(self, fd: int) -> None:
        """Something other than output has happened."""
        if fd == self._pidfd:
            self._forget_pidfd()
            self._drain_until = time.monotonic() + DRAIN_SECONDS
        elif fd == self._child.stdin:
            self._write()
        elif self._waker is not None and fd == self._waker[0]:
            os.read(fd, CHUNK_BYTES)
            self._write()
        elif fd == self._wake_up:
            os.read(fd, CHUNK_BYTES)

    def last_look(self) -> list[Chunk]:
        """What lies in the pipes when their time is over."""
        chunks: list[Chunk] = []
        for fd, name in list(self._outputs.items()):
            # Only here: a pipe that the poller names has something to read, or its end.
            os.set_blocking(fd, False)
            seen = 0
            while seen < LAST_LOOK_BYTES and (chunk := self._read(fd)):
                seen += len(chunk)
                chunks.append((name, chunk))
        return chunks

    def send(self, data: bytes) -> None:
        """Write more to the child, whose input is open. From any thread; never waits."""
        self._to_send.append(data)
        self._wake()

    def close_input(self) -> None:
        """Close the child's input behind all that was sent. From any thread."""
        self._input_open = False
        self._wake()

    def close(self) -> None:
        """Close the pipes. May be called again."""
        self._forget_pidfd()
        self._child.close_pipes()
        with self._lock:
            waker, self._waker = self._waker, None
            for fd in waker or ():
                os.close(fd)

    def __enter__(self) -> Pump:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watch(self, fd: int | None, name: OutputName) -> None:
        if fd is not None:
            self._outputs[fd] = name
            self._poller.register(fd, select.POLLIN)

    def _patience(self, until: float | None) -> float | None:
        """Milliseconds to wait at most."""
        now = time.monotonic()
        if self._drain_until is not None:
            until = self._drain_until
        elif self._pidfd is None:
            until = now + _LOOK_SECONDS if until is None else min(until, now + _LOOK_SECONDS)
        return None if until is None else max(until - now, 0) * 1000

    def _read(self, fd: int) -> bytes:
        try:
            chunk = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not chunk:
            self._forget(fd)
        return chunk

    def _forget(self, fd: int) -> None:
        self._poller.unregister(fd)
        self._child.close_pipe(self._outputs.pop(fd))

    def _write(self) -> None:
        """Write what there is, as far as the child takes it; ask to be woken for the rest."""
        fd = self._child.stdin
        if fd is None:
            return
        try:
            while self._unwritten or self._to_send:
                if not self._unwritten:
                    self._unwritten = memoryview(self._to_send.popleft())
                self._unwritten = self._unwritten[os.write(fd, self._unwritten[:CHUNK_BYTES]) :]
        except BlockingIOError:
            if not self._is_writing:
                self._is_writing = True
                self._poller.register(fd, select.POLLOUT)
            return
        except BrokenPipeError:
            self._unwritten = self._unwritten[:0]
            self._to_send.clear()
            self._input_open = False
        if self._is_writing:
            self._is_writing = False
            self._poller.unregister(fd)
        if not self._input_open and not self._to_send:
            self._child.close_pipe("stdin")

    def _wake(self) -> None:
        with self._lock:
            if self._waker is not None:
                try:
                    os.write(self._waker[1], b"\0")
                except BlockingIOError:
                    # It is full of calls that were not heard yet: one more is not needed.
                    return

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            self._poller.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
