"""A process under test, seen as its host sees it: lines in, lines out, and every wait bounded.

Lines that are not events are recorded and otherwise passed over: one check says that there must be none, and the
others can still tell what else is right or wrong.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.base import jsontext
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.values import Value
from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.process import note, output_of
from trunkline.conform.record import Record

#: How long a process may go on after the kit is done with it and has closed its standard input, or after it has closed
#: its own output.
LEAVE_SECONDS = 0.5
#: Bytes that are handed to the process at a time.
_WRITE_BYTES = 1 << 20


class SeenEvent(Value):
    """A line from the agent that is a JSON object with a string `type`."""

    at: float
    data: Mapping[str, Any]

    @property
    def type(self) -> str:
        """Which kind of event."""
        return str(self.data["type"])

    @property
    def msg_id(self) -> str | None:
        """The message it belongs to; None when it says nothing usable."""
        return _text(self.data.get("msg_id"))

    @property
    def call_id(self) -> str | None:
        """The tool call it is about; None when it says nothing usable."""
        return _text(self.data.get("call_id"))

    def member(self, *path: str) -> Any:
        """A member of a member; None when there is none."""
        found: Any = self.data
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


Wanted = Callable[[SeenEvent], bool]


class Subject:
    """One running target. Made by `start`, ended by `close`."""

    def __init__(self, child: AsyncChild, record: Record) -> None:
        self._child = child
        self.record = record
        self._news = asyncio.Event()
        self._heard: list[SeenEvent] = []
        self._next = 0
        self._output_ended = False
        self._stderr = child.keep_stderr_tail()
        self._pump = asyncio.create_task(self._read(), name=f"output of {child.pid}")

    @classmethod
    async def start(cls, argv: Sequence[str], cwd: str, env: Mapping[str, str], record: Record) -> Subject:
        """Start a process.

        Raises:
            SpawnError: it could not be started.
        """
        child = await spawn_async(argv, cwd=cwd, env=env, stdin="pipe", stdout="pipe", stderr="pipe")
        return cls(child, record)

    # Telling it something.

    async def send(self, **command: Any) -> None:
        """Write one command."""
        await self.write(jsontext.dumps(command) + b"\n")

    async def write(self, data: bytes) -> None:
        """Write bytes as they are; what they hold in lines is recorded."""
        for line in data.removesuffix(b"\n").split(b"\n"):
            self.record.add("host", line, _parsed(line))
        for start in range(0, len(data), _WRITE_BYTES):
            self._child.write(data[start : start + _WRITE_BYTES])
            await self._child.drain()

    def close_input(self) -> None:
        """Let it see the end of its standard input."""
        self.record.remark("standard input closed")
        self._child.close_stdin()

    def terminate(self) -> None:
        """Send SIGTERM to the process itself, as a host would."""
        self.record.remark("SIGTERM")
        if self._child.returncode is None:
            os.kill(self._child.pid, signal.SIGTERM)

    # Hearing from it.

    async def collect(self, until: Wanted, within: float) -> list[SeenEvent]:
        """What is said from now on, up to the first event that is wanted, the end of the output, or the time."""
        found: list[SeenEvent] = []
        deadline = time.monotonic() + within
        while (event := await self._one(deadline)) is not None:
            found.append(event)
            if until(event):
                break
        return found

    async def expect(self, what: str, until: Wanted, within: float) -> list[SeenEvent]:
        """Like `collect`, where the wanted event has to come.

        Raises:
            Broken: it did not come.
        """
        found = await self.collect(until, within)
        if not found or not until(found[-1]):
            raise Broken(await self.missing(what, within))
        return found

    async def hope(self, what: str, until: Wanted, within: float) -> list[SeenEvent]:
        """Like `expect`, where the wanted event is only the occasion for a check.

        Raises:
            NotExercised: it did not come.
        """
        found = await self.collect(until, within)
        if not found or not until(found[-1]):
            raise NotExercised(await self.missing(what, within))
        return found

    async def listen(self, seconds: float) -> list[SeenEvent]:
        """What is said in the next seconds."""
        return await self.collect(lambda event: False, seconds)

    async def exit_code(self, within: float) -> int | None:
        """How it ended, with all its output read; None when it still runs."""
        try:
            async with asyncio.timeout(within):
                code = await self._child.wait()
                await asyncio.shield(self._pump)
        except TimeoutError:
            return None
        self.record.exit_code = code
        return code

    @property
    def stderr(self) -> str:
        """The end of what it wrote to standard error."""
        return self._stderr.text()

    async def close(self) -> None:
        """Give it a moment to leave, then end it with everything that it started. Bounded in time."""
        self._child.close_stdin()
        if await self.exit_code(LEAVE_SECONDS) is None:
            self.record.was_killed = True
            self.record.remark("ended by the kit")
        await self._child.close()
        await asyncio.wait({self._pump})
        self.record.stderr = self.stderr
        if self.record.exit_code is None:
            self.record.exit_code = self._child.returncode

    # How it is done.

    async def _one(self, deadline: float) -> SeenEvent | None:
        while self._next == len(self._heard) and not self._output_ended:
            self._news.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._news.wait()
            except TimeoutError:
                return None
        if self._next == len(self._heard):
            return None
        self._next += 1
        return self._heard[self._next - 1]

    async def _read(self) -> None:
        async for data, lines in output_of(self._child, self.record):
            # What has no line feed is no line.
            for line in lines if data else ():
                entry = note(self.record, line, _parsed)
                if isinstance(entry.data, dict) and isinstance(entry.data.get("type"), str):
                    self._heard.append(SeenEvent(entry.at, entry.data))
            self._news.set()
        self._output_ended = True
        self._news.set()

    async def missing(self, what: str, within: float) -> str:
        """Why something did not come, for people."""
        if not self._output_ended:
            return f"no {what} within {within:g} s"
        # A process that ends closes its output a moment earlier.
        code = await self.exit_code(LEAVE_SECONDS)
        ended = "closed its standard output" if code is None else f"exited with {code}"
        last = self.stderr.rsplit("\n", 1)[-1]
        return f"the agent {ended} before {what}" + (f" (it said: {last})" if last else "")


def _parsed(line: bytes) -> Any:
    try:
        return jsontext.loads(line)
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
