"""Talk to a child through its pipes without an event loop and without ever being stuck on one of them."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Generator, Iterator
from typing import Literal, TypeAlias

from trunkline.base.process import DRAIN_SECONDS, Child
from trunkline.base.watchdog import open_pidfd

OutputName: TypeAlias = Literal["stdout", "stderr"]

#: As much as a pipe holds by default: one read empties it.
CHUNK_BYTES = 1 << 16
#: The largest pipe an ordinary user can have: what is read of a pipe at most when its time is over.
LAST_LOOK_BYTES = 1 << 20
#: Where there is no pidfd, how often to look whether the leader has ended.
_LOOK_SECONDS = 0.02


def pump(
    child: Child, data: bytes = b"", timeout: float | None = None
) -> Generator[tuple[OutputName, bytes], None, None]:
    """Write `data` to the child and close its input; meanwhile yield what it says, as it says it.

    Ends when all output has ended, or `DRAIN_SECONDS` after the leader has: a grandchild that holds a pipe open does
    not hold us. A child that does not read its input, or closes it early, is no error. The pipes are closed at the end.

    Raises:
        TimeoutError: the child still runs `timeout` seconds after the call's first step. It is left running.
    """
    state = _Pump(child, data, None if timeout is None else time.monotonic() + timeout)
    try:
        while state.goes_on():
            yield from state.step()
        yield from state.last_look()
    finally:
        state.close()


class _Pump:
    def __init__(self, child: Child, data: bytes, deadline: float | None) -> None:
        self._child = child
        self._data = memoryview(data)
        self._deadline = deadline
        self._ended_at: float | None = None
        self._poller = select.poll()
        self._outputs: dict[int, OutputName] = {}
        if child.stdout is not None:
            self._outputs[child.stdout] = "stdout"
        if child.stderr is not None:
            self._outputs[child.stderr] = "stderr"
        for fd in self._outputs:
            os.set_blocking(fd, False)
            self._poller.register(fd, select.POLLIN)
        self._pidfd = None if child.poll() is not None else open_pidfd(child.pid)
        if self._pidfd is not None:
            self._poller.register(self._pidfd, select.POLLIN)
        self._begin_input()

    def goes_on(self) -> bool:
        """Whether there is something left to wait for. A leader that closed its output may still be reading."""
        now = time.monotonic()
        if self._ended_at is None and self._child.poll() is not None:
            self._ended_at = now
        if self._ended_at is not None:
            return bool(self._outputs) and now < self._ended_at + DRAIN_SECONDS
        if not self._outputs and self._child.stdin is None:
            return False
        if self._deadline is not None and now >= self._deadline:
            raise TimeoutError(f"process {self._child.pid} did not end in time")
        return True

    def step(self) -> Iterator[tuple[OutputName, bytes]]:
        """Wait for something to happen and deal with it."""
        for fd, _ in self._poller.poll(self._patience()):
            if fd in self._outputs:
                name = self._outputs[fd]
                if chunk := self._read(fd):
                    yield name, chunk
            elif fd == self._child.stdin:
                self._write()
            elif fd == self._pidfd:
                self._forget_pidfd()

    def last_look(self) -> Iterator[tuple[OutputName, bytes]]:
        """What lies in the pipes when their time is over."""
        for fd, name in list(self._outputs.items()):
            seen = 0
            while seen < LAST_LOOK_BYTES and (chunk := self._read(fd)):
                seen += len(chunk)
                yield name, chunk

    def close(self) -> None:
        self._forget_pidfd()
        self._child.close_pipe("stdin")
        self._child.close_pipe("stdout")
        self._child.close_pipe("stderr")

    def _patience(self) -> float | None:
        """Milliseconds to wait at most."""
        times = [self._deadline] if self._deadline is not None else []
        now = time.monotonic()
        if self._ended_at is not None:
            times.append(self._ended_at + DRAIN_SECONDS)
        elif self._pidfd is None:
            times.append(now + _LOOK_SECONDS)
        return max(min(times) - now, 0) * 1000 if times else None

    def _read(self, fd: int) -> bytes:
        try:
            chunk = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not chunk:
            self._poller.unregister(fd)
            self._child.close_pipe(self._outputs.pop(fd))
        return chunk

    def _begin_input(self) -> None:
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin, False)
            self._poller.register(self._child.stdin, select.POLLOUT)
            self._write()

    def _write(self) -> None:
        fd = self._child.stdin
        if fd is None:
            return
        try:
            while self._data:
                self._data = self._data[os.write(fd, self._data[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._data = self._data[:0]
        self._poller.unregister(fd)
        self._child.close_pipe("stdin")

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            self._poller.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
