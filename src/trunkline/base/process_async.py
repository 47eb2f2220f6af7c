"""Supervised child processes in an event loop: what `process` promises, without blocking the loop.

    async with await spawn_async(["my-agent"], stdin="pipe") as child:
        child.write(b"hello\\n")
        while data := await child.read_stdout():
            ...
        code = await child.wait()

The leader's end is seen through a pidfd (elsewhere by a thread), never through asyncio's child watchers, so it works
the same on any loop. Ending a tree happens in a thread of its own: 64 trees with 64 graces take one grace. Reading has
back-pressure, writing has a bound, and output ends at most `DRAIN_SECONDS` after the leader, whoever holds the pipe.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from trunkline.base.process import (
    DRAIN_SECONDS,
    GRACE_SECONDS,
    TAIL_BYTES,
    Child,
    Input,
    Output,
    StderrTail,
    spawn,
)
from trunkline.base.process_streams import PipeReader, PipeWriter
from trunkline.base.watchdog import open_pidfd

__all__ = ["AsyncChild", "spawn_async"]

#: Where there is no pidfd, how often to look whether the leader has ended.
_LOOK_SECONDS = 0.02


async def spawn_async(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Input = "null",
    stdout: Input = "pipe",
    stderr: Output = "pipe",
) -> AsyncChild:
    """Start a program as the leader of a tree of its own; see `spawn`.

    Raises:
        SpawnError: it could not be started; `reason` says why.
    """
    return AsyncChild(spawn(argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr))


class AsyncChild:
    """One spawned leader with its tree and its pipes, for one event loop. Close it, or use it as a context manager."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = self._loop.create_future()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        self._stdin = PipeWriter(child.detach("stdin"))
        self._stdout = PipeReader(child.detach("stdout"), self._note_drained)
        self._stderr = PipeReader(child.detach("stderr"), self._note_drained)
        self._closing: asyncio.Future[int] | None = None
        # Drains after the leader's end; before that, without a pidfd, looks for it.
        self._timer: asyncio.TimerHandle | None = None
        self._pidfd = open_pidfd(child.pid)
        if self._pidfd is None:
            self._look_for_exit()
        else:
            self._loop.add_reader(self._pidfd, self._look_for_exit)
        self._note_drained()

    @property
    def pid(self) -> int:
        """The leader's process number."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """The leader's exit code (128 + n for signal n) once its end was seen."""
        return self._exit.result() if self._exit.done() else None

    @property
    def stdin_broken(self) -> bool:
        """Whether the child has stopped reading for good; what is written is dropped then."""
        return self._stdin.broken

    async def wait(self) -> int:
        """Wait for the leader's end and return its exit code. What it left behind lives until `close`."""
        return await asyncio.shield(self._exit)

    async def drained(self) -> None:
        """Wait until both outputs have ended: by themselves, or `DRAIN_SECONDS` after the leader."""
        await asyncio.shield(self._drained)

    async def read_stdout(self) -> bytes:
        """Standard output as it comes; empty at its end. One reader at a time."""
        return await self._stdout.read()

    async def read_stderr(self) -> bytes:
        """Standard error as it comes; empty at its end. One reader at a time."""
        return await self._stderr.read()

    def keep_stderr_tail(
        self, limit: int = TAIL_BYTES, also: Callable[[bytes], None] = lambda data: None
    ) -> StderrTail:
        """Read standard error in the background and keep its end for messages; `also` is given all of it."""
        tail = StderrTail(limit)

        def feed(data: bytes) -> None:
            tail.feed(data)
            also(data)

        self._stderr.feed_to(feed)
        return tail

    def write(self, data: bytes) -> None:
        """Send input without blocking. Dropped when the child does not read any more.

        Raises:
            BufferError: too much is unwritten already; nothing was taken.
        """
        self._stdin.write(data)

    async def drain(self) -> None:
        """Wait until the child has read most of what was written, or has stopped reading for good."""
        await self._stdin.drain()

    def close_stdin(self) -> None:
        """Let the child see the end of its input, behind all that was written."""
        self._stdin.close()

    async def stop(self, grace: float = GRACE_SECONDS) -> int:
        """End the tree (SIGTERM, `grace`, SIGKILL) and return the leader's exit code.

        Goes on when the caller is cancelled; may be called again, with less grace to hurry it.
        """
        return await asyncio.shield(self._in_thread(lambda: self._child.terminate_tree(grace)))

    async def close(self) -> None:
        """Kill what is left of the tree and close the pipes. Goes on when the caller is cancelled; may be repeated."""
        if self._closing is None:
            self._stop_timer()
            self._forget_pidfd()
            self._stdin.abort()
            self._stdout.close()
            self._stderr.close()
            self._closing = self._end_now() if self._child.finish_if_clear() else self._in_thread(self._end)
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _end(self) -> int:
        code = self._child.kill_tree()
        self._child.close()
        return code

    def _end_now(self) -> asyncio.Future[int]:
        done = self._loop.create_future()
        self._deliver(done, self._end())
        return done

    def _in_thread(self, end: Callable[[], int]) -> asyncio.Future[int]:
        """Run something bounded that returns the leader's exit code, without blocking the loop."""
        done = self._loop.create_future()

        def run() -> None:
            code = end()
            try:
                self._loop.call_soon_threadsafe(self._deliver, done, code)
            except RuntimeError:
                # The loop was closed meanwhile; the tree has ended all the same, and nobody is left to be told.
                return

        try:
            threading.Thread(target=run, name=f"end-process-{self.pid}", daemon=True).start()
        except RuntimeError:
            # No more threads to be had: better a loop that waits for a moment than a tree that stays.
            run()
        return done

    def _deliver(self, done: asyncio.Future[int], code: int) -> None:
        self._note_exit(code)
        if not done.done():
            done.set_result(code)

    def _look_for_exit(self) -> None:
        code = self._child.poll()
        if code is not None:
            self._note_exit(code)
        elif self._pidfd is None:
            self._timer = self._loop.call_later(_LOOK_SECONDS, self._look_for_exit)

    def _note_exit(self, code: int) -> None:
        if self._exit.done():
            return
        self._exit.set_result(code)
        self._stop_timer()
        self._forget_pidfd()
        if self._drained.done():
            self._stdin.abort()
        else:
            self._timer = self._loop.call_later(DRAIN_SECONDS, self._finish_pipes)

    def _note_drained(self) -> None:
        if self._stdout.ended and self._stderr.ended and not self._drained.done():
            self._drained.set_result(None)
            if self._exit.done():
                self._stop_timer()
                self._stdin.abort()

    def _finish_pipes(self) -> None:
        self._stdin.abort()
        self._stdout.finish()
        self._stderr.finish()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
