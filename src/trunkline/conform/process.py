"""A process under test, seen from outside: its lines as they come, its end, and every wait bounded."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.process import Input, StderrTail
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.watchdog import HAS_PROC, all_pids, read_stat
from trunkline.conform.record import Record, RecordEntry

#: The longest line that is read from a target: four times what a bridge has to read.
MAX_LINE = 64 * 1024 * 1024
#: What one process may write in all before the kit stops listening: a flood must not exhaust memory.
MAX_OUTPUT = 256 * 1024 * 1024
#: What is kept of standard error: a bridge may show a long conversation there.
STDERR_BYTES = 1024 * 1024

Hear = Callable[[bytes], object]


def nothing(line: bytes) -> None:
    """Hears nothing in a line."""


class RunningTarget:
    """One running target. Made by `start`, ended by `close`.

    `hear` is given each line of standard output, without its line feed; what it returns is kept in the record.
    """

    def __init__(self, child: AsyncChild, record: Record, hear: Hear) -> None:
        self.record = record
        self.output = bytearray()
        self.began = time.monotonic()
        self.seconds: float | None = None
        """How long it ran; None while it does."""
        self._child = child
        self._hear = hear
        self._errors = StderrTail(STDERR_BYTES)
        self._news = asyncio.Event()
        self._tasks = {
            asyncio.create_task(self._read_output(), name=f"output of {child.pid}"),
            asyncio.create_task(self._read_errors(), name=f"errors of {child.pid}"),
        }
        self._end = asyncio.create_task(self._watch(), name=f"end of {child.pid}")

    @classmethod
    async def start(
        cls, argv: Sequence[str], cwd: str, env: Mapping[str, str], record: Record, stdin: Input, hear: Hear = nothing
    ) -> RunningTarget:
        """Start a process.

        Raises:
            SpawnError: it could not be started.
        """
        return cls(await spawn_async(argv, cwd=cwd, env=env, stdin=stdin), record, hear)

    def write(self, data: bytes) -> None:
        """Hand it some input, at most a few megabytes."""
        self._child.write(data)

    def close_input(self) -> None:
        """Let it see the end of its standard input, behind all that was written."""
        self._child.close_stdin()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        self.record.remark(number.name)
        if self._child.returncode is None:
            os.kill(self._child.pid, number)

    async def until(self, condition: Callable[[], bool], within: float) -> bool:
        """Wait until something holds; look whenever the process has said something or has ended."""
        deadline = time.monotonic() + within
        while not condition():
            if self._end.done():
                return condition()
            self._news.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._news.wait()
            except TimeoutError:
                return condition()
        return True

    async def ended(self, within: float) -> int | None:
        """How it ended, with all its output read; None when it still runs."""
        await self.until(self._end.done, within)
        return self.record.exit_code if self._end.done() else None

    @property
    def stderr(self) -> str:
        """What it wrote to standard error, the end of it if that was very much."""
        return self._errors.text()

    @property
    def how_it_ended(self) -> str:
        """With which status, and the last line of its standard error; for people, once it has ended."""
        last = self.stderr.rstrip().rsplit("\n", 1)[-1]
        return f"exited with status {self.record.exit_code}" + (f" (it said: {last})" if last else "")

    def leftovers(self) -> list[int] | None:
        """Processes of its group that live although it has ended; None where the system does not tell."""
        if not HAS_PROC:
            return None
        return [pid for pid in all_pids() if pid != self._child.pid and _lives_in(pid, self._child.pid)]

    async def close(self) -> None:
        """End it with everything that it started. Bounded in time."""
        if self._child.returncode is None:
            self.record.was_killed = True
            self.record.remark("ended by the kit")
        await self._child.close()
        await asyncio.wait({self._end, *self._tasks})
        self.record.stderr = self.stderr

    async def _watch(self) -> None:
        code = await self._child.wait()
        self.seconds = time.monotonic() - self.began
        await self._child.drained()
        await asyncio.wait(self._tasks)
        self.record.exit_code = code
        self._news.set()

    async def _read_output(self) -> None:
        async for data, lines in output_of(self._child, self.record):
            self.output += data
            for line in lines:
                note(self.record, line, self._hear)
            self._news.set()
        self._news.set()

    async def _read_errors(self) -> None:
        while data := await self._child.read_stderr():
            self._errors.feed(data)
            self._news.set()


async def output_of(child: AsyncChild, record: Record) -> AsyncIterator[tuple[bytes, list[bytes | OverlongLine]]]:
    """What a process writes to standard output, as it comes, each time with the lines that end in it.

    What followed the last line feed comes last, without data; the record has it as `unfinished`.
    """
    lines = LineSplitter(MAX_LINE)
    size = 0
    while data := await child.read_stdout():
        size += len(data)
        if size > MAX_OUTPUT:
            record.remark(f"more than {MAX_OUTPUT} bytes of output: the kit stopped reading")
            break
        yield data, lines.feed(data)
    for line in lines.finish():
        record.unfinished = line if isinstance(line, bytes) else b""
        yield b"", [line]


def note(record: Record, line: bytes | OverlongLine, hear: Hear) -> RecordEntry:
    """Keep a line of the target, with what is heard in it; of one that is too long only how long it is."""
    if isinstance(line, OverlongLine):
        return record.add("agent", b"(a line of %d bytes)" % line.size)
    return record.add("agent", line, hear(line))


def _lives_in(pid: int, group: int) -> bool:
    try:
        if os.getpgid(pid) != group:
            return False
    except OSError:
        return False
    stat = read_stat(pid)
    return stat is not None and stat.alive
