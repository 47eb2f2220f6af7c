"""A program run as a tool: no input, bounded output, and nothing of it left when it is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from trunkline.base.redact import Redactor
from trunkline.base.values import Value

#: What is kept of a program's output, in bytes: the first and the last half of it.
MAX_OUTPUT = 50_000
#: How long a program may take to obey SIGTERM. A stop has less than a second in all.
GRACE_SECONDS = 0.25


class Ran(Value):
    """How a program ended. `code` is None when it could not be started; then `output` says why."""

    code: int | None
    output: str


class ByteClip:
    """The beginning and the end of a stream of bytes; memory is bounded."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        """Add bytes; those in the middle are dropped."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    def text(self) -> str:
        """What is kept, with a mark where something is missing; no half of a secret stands beside that."""
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (half.decode("utf-8", "replace") for half in (self._head, self._tail))
        known = Redactor.from_environ(os.environ)
        return f"{known.beginning(head)}\n\n... [truncated {self._dropped} bytes] ...\n\n{known.ending(tail)}"


async def run(argv: Sequence[str], cwd: str, limit: int = MAX_OUTPUT) -> Ran:
    """Run a program to its end. Its output is what it wrote to both streams, in the order in which it came.

    Cancelling this ends the program and all that it started, in bounded time.
    """
    # Only scripts that run programs pay for it.
    from trunkline.base.process import SpawnError
    from trunkline.base.process_async import spawn_async

    try:
        child = await spawn_async(argv, cwd=cwd)
    except SpawnError as error:
        return Ran(None, str(error))
    clip = ByteClip(limit)
    try:
        async with asyncio.TaskGroup() as group:
            for read in (child.read_stdout, child.read_stderr):
                group.create_task(_collect(read, clip), name=f"output of {argv[0]}")
        return Ran(await child.wait(), clip.text())
    except asyncio.CancelledError:
        await child.stop(GRACE_SECONDS)
        raise
    finally:
        await child.close()


async def _collect(read: Callable[[], Awaitable[bytes]], clip: ByteClip) -> None:
    while data := await read():
        clip.feed(data)
