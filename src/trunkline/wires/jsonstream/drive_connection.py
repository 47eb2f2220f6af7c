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
- How it is started, written to and ended is `wires.driven_process`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Self

from trunkline.base import jsontext
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, Fault, LocalProtocolError
from trunkline.wires.driven_process import CLOSE_SECONDS, DrivenProcess, ProgramEnding
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.drive_turn import Heard

#: How long a program may take until `ready`: what hosts in the field allow.
READY_SECONDS = 30.0
#: How long a program may live on after it has said why it cannot work.
FATAL_SECONDS = 2.0

#: The major version that we speak. A minor one adds, and takes nothing away (the protocol document, section 6).
MAJOR_VERSION = 0
#: From here on programs call the text of a message `content`, and look for no `input`.
_CONTENT_SINCE = (0, 1, 11)

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")


class Connection:
    """One running program that has said `ready`. Made by `start`; must be closed, or used as a context manager."""

    def __init__(self, process: DrivenProcess, max_line: int) -> None:
        self.ready = messages.Ready("", messages.Capabilities(False, False, False))
        """What it said of itself."""
        self._process = process
        self._max_line = max_line
        self._reader = codec.EventReader(max_line)
        self._reading = asyncio.Lock()
        self._inbox: deque[Heard] = deque()
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
        connection = cls(await DrivenProcess.start(argv, cwd=cwd, env=env, name=name), max_line)
        try:
            await connection._await_ready(ready_seconds)
            connection._check_version()
        except BaseException:
            await connection.kill()
            raise
        return connection

    @property
    def name(self) -> str:
        """What the program is called."""
        return self._process.name

    @property
    def pid(self) -> int:
        """The program's process number."""
        return self._process.pid

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
        return self._process.usable

    # What we say.

    def ask(self, text: str, files: Sequence[str] = (), *, steer: bool = False) -> str:
        """Send a message and return its id. One at a time: the next one after `stream_end`; with `steer`, into the
        answer under way, for a program that announces that it can.

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
        if steer:
            line["when"] = "steer"
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
        return await self._process.is_reading()

    # What the program says.

    async def receive(self) -> list[Heard]:
        """All that has come since the last time, at least one item; nothing when its output has ended.

        Events, noise, and faults for events that break the protocol. Safe to cancel.
        """
        async with self._reading:
            while not self._inbox:
                data = await self._process.read()
                self._inbox.extend(self._reader.feed(data) if data else self._reader.finish())
                if not data:
                    break
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
        """`usable`, with what has happened by now."""
        return await self._process.look()

    async def ending(self) -> ProgramEnding:
        """How it ended. One that closed its output and lives on is ended here."""
        return await self._process.ending()

    # The end.

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close its input, give it `seconds` to leave, and kill what is left. May be called again.

        Goes on when the caller is cancelled.
        """
        await self._process.close(seconds)

    async def kill(self) -> None:
        """End it at once, with all that it started. May be called again; goes on when the caller is cancelled."""
        await self._process.kill()

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
                late = f"`{self.name}` did not say `ready` within {seconds:g} s.{self._process.last_words()}"
                raise AgentTimeout(late) from None
        if refusal is not None:
            raise _refused(self._process.redacted(refusal.error.message), refusal.error)
        ending = await self.ending()
        raise AgentFailed(f"`{self.name}` ended before it was ready: {ending}")

    def _note_before_ready(self, item: Heard) -> messages.Error | None:
        if isinstance(item, codec.Noise):
            self._process.keep_noise(item.line.decode("utf-8", "replace"))
        elif isinstance(item, Fault):
            self._process.keep_noise(str(item))
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
        self._process.write(line)


def _refused(text: str, error: messages.ErrorBody) -> Fault:
    """The fault of a program that says why it cannot begin."""
    kind = ConfigError if error.code == "config_error" else AgentFailed
    return kind(text or "The agent cannot begin, and does not say why.", retryable=error.retryable)
