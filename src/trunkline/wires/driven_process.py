"""A program of somebody else's that is driven over its standard streams: what the wires that do so have in common.

- Reading is pulled: a program that floods waits for its reader.
- Writing never blocks. What a program does not read is held up to a limit; then it counts as failed.
- It ends as a tree: standard input is closed, it gets a while to leave, then it is killed with all that it started.
- Texts of errors end with the last words of its standard error, in which the secrets of its environment are masked.
- One that dies again and again is left alone for a while, longer each time (`Deaths`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Self

from trunkline.base import backoff
from trunkline.base.cutting import cut_between_words
from trunkline.base.process import SpawnError
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.redact import Redactor
from trunkline.base.stderr_lines import StderrLines
from trunkline.base.values import Value
from trunkline.core.faults import AgentFailed, ConfigError

#: How long a program may take to leave after its input was closed; most need a fraction.
CLOSE_SECONDS = 2.0
#: What is left to one that did not leave, between SIGTERM and SIGKILL.
TERM_SECONDS = 0.1
#: How long a program that has closed its output may take to end as well.
EXIT_SECONDS = 0.3
#: What is repeated of standard error in an error: enough for the end of a stack trace.
STDERR_LINES = 10
STDERR_CHARS = 2000
#: Of one line that is no message, until the secrets are out of it: far more than is shown.
NOISE_BYTES = 1 << 14
#: What is kept of lines that are no protocol, for a program that fails at its start and says why on the wrong stream.
KEPT_NOISE = 5

#: Deaths that cost nothing: one is an accident, and the next turn starts the program at once.
FREE_DEATHS = 1
#: After the next one, without an ended turn between them, it is left alone for so long; after each more, twice as long.
FIRST_REST_SECONDS = 0.25
#: However many there are: whoever has mended the program does not wait longer than this. One that lived as long has not
#: died of its start.
REST_SECONDS = 30.0
#: Waits that the user is told of.
TOLD_SECONDS = 1.0

#: Exit codes above this are signals: 128 + n.
_SIGNAL_EXIT = 128


class ProgramEnding(Value):
    """How a program ended. `how` is for people, and `last_words` the end of its standard error."""

    code: int
    how: str
    last_words: str = ""

    def __str__(self) -> str:
        return f"{self.how}.{self.last_words}"


class DrivenProcess:
    """One running program. Made by `start`; must be closed."""

    def __init__(self, child: AsyncChild, name: str, env: Mapping[str, str] | None) -> None:
        self.name = name
        self._child = child
        self._env = env
        self._reading = asyncio.Lock()
        self._silent = False
        self._stderr = child.keep_stderr_tail(also=StderrLines(name, lambda: self._redactor().text).feed)
        self._noise: deque[bytes] = deque(maxlen=KEPT_NOISE)
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Self:
        """Start a program. `env` is its whole environment, ours unless given.

        Raises:
            ConfigError: there is no such program, or it cannot be started.
        """
        try:
            child = await spawn_async(argv, cwd=cwd, env=env, stdin="pipe")
        except SpawnError as error:
            raise ConfigError(f"The agent cannot be started: {error.message}.", hint=_sentence(error.hint)) from error
        return cls(child, name or os.path.basename(argv[0]), env)

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._child.pid

    @property
    def usable(self) -> bool:
        """Whether it runs and reads, as far as the loop has seen."""
        return self._child.returncode is None and not self._child.stdin_broken and not self._silent

    async def look(self) -> bool:
        """`usable`, with what has happened by now: the loop needs two rounds to see the end of a process."""
        for _ in range(2):
            await asyncio.sleep(0)
        return self.usable

    def write(self, data: bytes) -> None:
        """Send it something, which is on its way when this returns, or will be as soon as the program reads.

        Raises:
            AgentFailed: it has ended, or does not read what it is sent.
        """
        if not self.usable:
            raise AgentFailed(f"`{self.name}` has ended, or closed its input.")
        try:
            self._child.write(data)
        except BufferError as error:
            raise AgentFailed(f"`{self.name}` does not read its input: {error}.") from None

    async def is_reading(self) -> bool:
        """Whether the program has taken what it was sent, all but a pipe's fill."""
        try:
            async with asyncio.timeout(0):
                await self._child.drain()
        except TimeoutError:
            return False
        return True

    async def read(self) -> bytes:
        """What it says, as it comes; nothing at the end of its output. Safe to cancel."""
        async with self._reading:
            data = b"" if self._silent else await self._child.read_stdout()
            self._silent = self._silent or not data
            return data

    def keep_noise(self, text: str) -> None:
        """Note something that it said instead of what it should have: it may be the reason why it fails."""
        self._noise.append(cut_between_words(text, NOISE_BYTES).encode("utf-8", "replace"))

    async def ending(self) -> ProgramEnding:
        """How it ended. One that closed its output and lives on is ended here."""
        forced = False
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                await self._child.wait()
                await self._child.drained()
        except TimeoutError:
            forced = self._child.returncode is None
            await self._child.stop(TERM_SECONDS)
        code = self._child.returncode or 0
        how = "it closed its output and had to be ended" if forced else _how_it_ended(code)
        return ProgramEnding(code, how, self.last_words())

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close its input, give it `seconds` to leave, and kill what is left. May be called again.

        Goes on when the caller is cancelled.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(seconds), name=f"close {self.name}")
        await asyncio.shield(self._closing)

    async def kill(self) -> None:
        """End it at once, with all that it started. May be called again; goes on when the caller is cancelled."""
        await self._child.close()

    def last_words(self) -> str:
        """For the end of an error: what it last said on standard error, or instead of what it should have said."""
        words = self._stderr.text() or b"\n".join(self._noise).decode("utf-8", "replace").strip()
        if not words:
            return ""
        # Masked before it is cut: half a secret would not be recognised.
        lines = self.redacted(words).splitlines()
        return " Its last words: " + " / ".join(lines[-STDERR_LINES:])[-STDERR_CHARS:]

    def redacted(self, text: str) -> str:
        """A text of the program without the secrets that it was given."""
        return self._redactor().text(text)

    def _redactor(self) -> Redactor:
        return Redactor.from_environ(os.environ if self._env is None else self._env)

    async def _close(self, seconds: float) -> None:
        self._child.close_stdin()
        # Nobody listens any more; but a program that still has something to say must be able to, or it could not leave.
        self._silent = True
        try:
            async with asyncio.timeout(seconds):
                async with self._reading:
                    while await self._child.read_stdout():
                        pass
                await self._child.wait()
        except TimeoutError:
            await self._child.stop(TERM_SECONDS)
        finally:
            await self._child.close()


class Deaths:
    """How often a program has died in a row, without an ended turn between, and how long it is left alone for it."""

    def __init__(self, most_seconds: float = REST_SECONDS) -> None:
        self.count = 0
        self._most_seconds = most_seconds
        self._loop = asyncio.get_running_loop()
        self._rest_until = 0.0
        self._started = self._loop.time()

    def started(self) -> None:
        """It was started."""
        self._started = self._loop.time()

    def died(self) -> None:
        """It has died. One that had lived for long has not died of its start."""
        if self._loop.time() - self._started >= REST_SECONDS:
            self.count = 0
        self.failed()

    def failed(self) -> None:
        """It could not even be started."""
        self.count += 1
        rest = backoff.delay(self.count - FREE_DEATHS, FIRST_REST_SECONDS, self._most_seconds)
        self._rest_until = self._loop.time() + rest

    def forget(self) -> None:
        """It has ended a turn as it should."""
        self.count = 0

    @property
    def told(self) -> str:
        """What to tell a user who has to wait until it is started again; empty if that is not worth a word."""
        left = self._rest_until - self._loop.time()
        if left < TOLD_SECONDS:
            return ""
        return f"The program has died {self.count} times in a row; it is started again in {left:.0f} s."

    async def rest(self) -> None:
        """Wait until it may be started again."""
        await asyncio.sleep(self._rest_until - self._loop.time())


def _how_it_ended(code: int) -> str:
    try:
        name = signal.Signals(code - _SIGNAL_EXIT).name
    except ValueError:
        return f"exit code {code}"
    return f"ended by signal {name}, exit code {code}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
