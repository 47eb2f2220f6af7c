"""The host end, one program: start it, wait until it is ready, talk, end it.

    connection = await Connection.start(["my-agent", "--json-stream"], cwd="/project")
    try:
        msg_id = connection.ask("Explain main.rs")
        async for event in connection.events():
            ...
    finally:
        await connection.close()

- Nothing can be sent before `ready`: there is no connection before that.
- Reading is pulled. A program that floods waits for its reader, and no queue grows; what it prints besides the
  protocol (banners, warnings, half lines) is told apart and never fatal.
- Writing never blocks. What a program does not read is held up to a limit; then it counts as failed.
- It ends as a tree: standard input is closed, it gets a while to leave, then it is killed with all that it started.
- Texts of errors end with the last words of its standard error, in which the secrets of its environment are masked.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Self

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.process import SpawnError
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, Fault, LocalProtocolError
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.drive_turn import Heard

#: How long a program may take until `ready`: what hosts in the field allow.
READY_SECONDS = 30.0
#: How long a program may live on after it has said why it cannot work.
FATAL_SECONDS = 2.0
#: How long a program may take to leave after its input was closed; the protocol's own agents need a fraction.
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
#: What is kept of lines that are no protocol, for a program that fails before `ready` and says why on the wrong stream.
_KEPT_NOISE = 5

#: The major version that we speak. A minor one adds, and takes nothing away (the protocol document, section 6).
MAJOR_VERSION = 0
#: From here on programs call the text of a message `content`, and look for no `input`.
_CONTENT_SINCE = (0, 1, 11)

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
#: Exit codes above this are signals: 128 + n.
_SIGNAL_EXIT = 128


class ProgramEnding(Value):
    """How a program ended. `how` is for people, and `last_words` the end of its standard error."""

    code: int
    how: str
    last_words: str = ""

    def __str__(self) -> str:
        return f"{self.how}.{self.last_words}"


class Connection:
    """One running program that has said `ready`. Made by `start`; must be closed, or used as a context manager."""

    def __init__(self, child: AsyncChild, name: str, env: Mapping[str, str] | None, max_line: int) -> None:
        self.name = name
        self.ready = messages.Ready("", messages.Capabilities(False, False, False))
        """What it said of itself."""
        self._child = child
        self._env = env
        self._max_line = max_line
        self._reader = codec.EventReader(max_line)
        self._reading = asyncio.Lock()
        self._inbox: deque[Heard] = deque()
        self._silent = False
        self._stderr = child.keep_stderr_tail()
        self._noise: deque[bytes] = deque(maxlen=_KEPT_NOISE)
        self._closing: asyncio.Task[None] | None = None
        # Ours alone among all ids that the program has seen, also in a session that it resumes.
        self._id_prefix = os.urandom(4).hex()
        self._asked = 0

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        ready_seconds: float = READY_SECONDS,
        max_line: int = codec.MAX_LINE,
    ) -> Self:
        """Start a program and wait for its `ready`. `env` is its whole environment, ours unless given.

        Raises:
            ConfigError: there is no such program, it says that it cannot work as configured, or it speaks an
                incompatible version.
            AgentFailed: it ended before it was ready.
            AgentTimeout: it was not ready in time.
        """
        try:
            child = await spawn_async(argv, cwd=cwd, env=env, stdin="pipe")
        except SpawnError as error:
            raise ConfigError(f"The agent cannot be started: {error.message}.", hint=_sentence(error.hint)) from error
        connection = cls(child, name or os.path.basename(argv[0]), env, max_line)
        try:
            await connection._await_ready(ready_seconds)
            connection._check_version()
        except BaseException:
            await connection.kill()
            raise
        return connection

    @property
    def pid(self) -> int:
        """The program's process number."""
        return self._child.pid

    @property
    def session_id(self) -> str | None:
        """The program's own name for the conversation."""
        return self.ready.session_id

    @property
    def version(self) -> tuple[int, int, int] | None:
        """The version that the program says it speaks; None if that is no version."""
        found = _VERSION.match(self.ready.version)
        return None if found is None else (int(found[1]), int(found[2] or 0), int(found[3] or 0))

    @property
    def usable(self) -> bool:
        """Whether it runs and reads, as far as the loop has seen."""
        return self._child.returncode is None and not self._child.stdin_broken and not self._silent

    # What we say.

    def ask(self, text: str, files: Sequence[str] = ()) -> str:
        """Send a message and return its id. One at a time: the next one after `stream_end`.

        Raises:
            LocalProtocolError: it is longer than a line may be.
            AgentFailed: the program has ended, or does not read what it is sent.
        """
        self._asked += 1
        msg_id = f"{self._id_prefix}-{self._asked}"
        line: dict[str, object] = {"type": messages.UserMessage.type, "msg_id": msg_id, "input": text}
        if self.version is None or self.version >= _CONTENT_SINCE:
            line["content"] = text
        line["files"] = list(files)
        self._write(jsontext.dumps(line) + b"\n")
        return msg_id

    def send(self, command: messages.Command) -> None:
        """Send a command. It is on its way when this returns, or will be as soon as the program reads.

        Raises:
            LocalProtocolError: it cannot be written as a line.
            AgentFailed: the program has ended, or does not read what it is sent.
        """
        self._write(codec.encode(command))

    def stop(self) -> None:
        """Ask the program to abort its answer."""
        self.send(messages.Stop())

    async def is_reading(self) -> bool:
        """Whether the program has taken what it was sent, all but a pipe's fill."""
        try:
            async with asyncio.timeout(0):
                await self._child.drain()
        except TimeoutError:
            return False
        return True

    # What the program says.

    async def receive(self) -> list[Heard]:
        """All that has come since the last time, at least one item; nothing when its output has ended.

        Events, noise, and faults for events that break the protocol. Safe to cancel.
        """
        async with self._reading:
            while not self._inbox and not self._silent:
                data = await self._child.read_stdout()
                if not data:
                    self._silent = True
                self._inbox.extend(self._reader.feed(data) if data else self._reader.finish())
        items = list(self._inbox)
        self._inbox.clear()
        return items

    def put_back(self, items: Sequence[Heard]) -> None:
        """Let the next `receive` begin with these."""
        self._inbox.extendleft(reversed(items))

    async def events(self) -> AsyncIterator[messages.Event]:
        """The events as they come, until the output ends. Leaving early loses none."""
        while items := await self.receive():
            for position, item in enumerate(items):
                if isinstance(item, messages.Event):
                    self.put_back(items[position + 1 :])
                    yield item
                    break

    async def look(self) -> bool:
        """`usable`, with what has happened by now: the loop needs two rounds to see the end of a process."""
        for _ in range(2):
            await asyncio.sleep(0)
        return self.usable

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
        return ProgramEnding(code, how, self._last_words())

    # The end.

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # How it is done.

    async def _await_ready(self, seconds: float) -> None:
        refusal: messages.Error | None = None
        try:
            async with asyncio.timeout(seconds) as scope:
                while items := await self.receive():
                    for position, item in enumerate(items):
                        if isinstance(item, messages.Ready):
                            self.ready = item
                            self.put_back(items[position + 1 :])
                            return
                        if refusal is None and (refusal := self._note_before_ready(item)):
                            # It has said all that it will; what remains is that it ends.
                            scope.reschedule(asyncio.get_running_loop().time() + FATAL_SECONDS)
        except TimeoutError:
            if refusal is None:
                late = f"`{self.name}` did not say `ready` within {seconds:g} s.{self._last_words()}"
                raise AgentTimeout(late) from None
        if refusal is not None:
            raise _refused(self._redacted(refusal.error.message), refusal.error)
        ending = await self.ending()
        raise AgentFailed(f"`{self.name}` ended before it was ready: {ending}")

    def _note_before_ready(self, item: Heard) -> messages.Error | None:
        if isinstance(item, codec.Noise):
            self._noise.append(cut_between_words(item.line.decode("utf-8", "replace"), NOISE_BYTES).encode())
        elif isinstance(item, Fault):
            self._noise.append(str(item).encode("utf-8", "replace"))
        return item if isinstance(item, messages.Error) else None

    def _check_version(self) -> None:
        if self.version is not None and self.version[0] != MAJOR_VERSION:
            raise ConfigError(
                f"`{self.name}` speaks version {self.ready.version} of the JSON stream protocol, which is not "
                f"compatible with version {messages.PROTOCOL_VERSION}.",
                hint=f"Use a release of it that speaks version {MAJOR_VERSION}.x.",
            )

    def _write(self, line: bytes) -> None:
        if len(line) - 1 > self._max_line:
            raise LocalProtocolError(
                f"A command of {len(line) - 1} bytes is longer than the limit of {self._max_line} bytes.",
                hint="Put long text into a file and name the file.",
            )
        if not self.usable:
            raise AgentFailed(f"`{self.name}` has ended, or closed its input.")
        try:
            self._child.write(line)
        except BufferError as error:
            raise AgentFailed(f"`{self.name}` does not read its input: {error}.") from None

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

    def _last_words(self) -> str:
        words = self._stderr.text() or b"\n".join(self._noise).decode("utf-8", "replace").strip()
        if not words:
            return ""
        # Masked before it is cut: half a secret would not be recognised.
        lines = self._redacted(words).splitlines()
        return " Its last words:\n" + "\n".join(lines[-STDERR_LINES:])[-STDERR_CHARS:]

    def _redacted(self, text: str) -> str:
        return Redactor.from_environ(os.environ if self._env is None else self._env).text(text)


def _refused(text: str, error: messages.ErrorBody) -> Fault:
    """The fault of a program that says why it cannot begin."""
    kind = ConfigError if error.code == "config_error" else AgentFailed
    return kind(text or "The agent cannot begin, and does not say why.", retryable=error.retryable)


def _how_it_ended(code: int) -> str:
    try:
        name = signal.Signals(code - _SIGNAL_EXIT).name
    except ValueError:
        return f"exit code {code}"
    return f"ended by signal {name}, exit code {code}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
