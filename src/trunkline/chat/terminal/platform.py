"""The simplest platform: lines of standard input are messages, and answers are written to standard output.

For trying a bridge, and for tests: one chat, one person. On a terminal answers appear as they are written; elsewhere
each message is written once, when it is whole, and as it is: who reads lines from a pipe must not wait for the rest of
one. What the bridge remarks besides goes to its log there. It ends when its input does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from trunkline.base import stdio
from trunkline.base.chat_platforms import AT_THE_TERMINAL
from trunkline.chat.platform import Button, FileType, Gone, Inbound, InboundFile, Limits, Pressed, SendFailed, nobody
from trunkline.chat.terminal.screen import ChatScreen
from trunkline.chat.terminal.text import clean

CHAT = "terminal"

#: Lines that may wait to be taken before no more is read.
MOST_LINES = 100
#: A longer line is cut into several messages: what never ends must not fill the memory.
LONGEST_LINE = 1024 * 1024

#: Screens have no limit; this keeps a runaway answer in pieces that the rest of the machinery can handle.
TEXT_CHARS = 100_000
#: A screen takes a change at any time, and people see no more than that many in a second.
EDIT_SECONDS = 0.1
#: The sign of typing tells when there may be a prompt again: soon after the end of an answer.
TYPING_SECONDS = 0.3


def make(
    table: Mapping[str, Any], environ: Mapping[str, str], is_allowed: Callable[[str], bool] = nobody
) -> TerminalPlatform:
    """Our own standard input and output, which need no configuration."""
    return TerminalPlatform()


class TerminalPlatform:
    """Standard input and output as a chat."""

    name = "terminal"

    def __init__(self, reading: int = 0, writing: int = 1) -> None:
        """The two descriptors, which stay open."""
        self._reading = reading
        self._writing = writing
        self.is_screen = os.isatty(writing) and os.environ.get("TERM") != "dumb"
        # For a program that reads or writes this, only the answers count.
        shared = Limits(TEXT_CHARS, history=False, remarks=os.isatty(writing) and os.isatty(reading))
        self.limits = (
            shared.replace(edit_seconds=EDIT_SECONDS, typing_seconds=TYPING_SECONDS)
            if self.is_screen
            else shared.replace(edits=False)
        )
        self.on_lost: Callable[[OSError], None] = lambda error: None
        """Called when nothing can be written any more, with the reason."""
        self._lost: OSError | None = None
        self._lines: deque[str] = deque()
        self._rest = b""
        self._ended = False
        self._news = asyncio.Event()
        self._reader: stdio.StdinReader | None = None
        self._writer: stdio.Writer | None = None
        self._screen: ChatScreen | None = None
        self._log: _Log | None = None

    async def open(self) -> None:
        self._writer = stdio.Writer(self._writing, self._broken)
        if self.is_screen:
            self._screen = ChatScreen(self._writing, self._put, asks=os.isatty(self._reading))
            self._screen.greet()
            if os.isatty(2):
                self._log = _Log(self._screen.disturbed)
                logging.getLogger().addHandler(self._log)
        self._reader = stdio.StdinReader(self._reading, self._read, self._end)
        self._reader.start()

    async def receive(self) -> AsyncIterator[Inbound | Pressed]:
        if self._screen is not None:
            self._screen.start()
        while True:
            while not self._lines:
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
            line = self._lines.popleft()
            if self._reader is not None and len(self._lines) == MOST_LINES - 1 and not self._ended:
                self._reader.resume()
            yield Inbound(uuid4().hex, CHAT, AT_THE_TERMINAL, line, private=True, at=time.time())

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        if self._screen is not None:
            self._screen.send(key, text)
        else:
            self._put(f"{clean(text) if os.isatty(self._writing) else text}\n")
        await self._written()
        return key

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        if self._screen is None:
            raise SendFailed("what was written cannot be changed")
        self._screen.edit(message, text)
        await self._written()

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        return await self.send(chat, f"[{type}] {path}", key=key)

    async def fetch(self, file: InboundFile, path: str) -> None:
        raise SendFailed("a terminal brings no files")

    async def typing(self, chat: str) -> None:
        """Shown at the bottom of a screen."""
        if self._screen is not None:
            self._screen.busy(TYPING_SECONDS)

    def measure(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._log is not None:
            logging.getLogger().removeHandler(self._log)
            self._log = None
        if self._screen is not None:
            self._screen.close()
            self._screen = None
        if self._writer is not None:
            await self._writer.close()
            self._writer = None
        self._end()

    def _put(self, text: str) -> None:
        if self._writer is not None:
            self._writer.write(text.encode("utf-8", "backslashreplace"))
            self._writer.flush()

    async def _written(self) -> None:
        """Wait while the reader is behind.

        Raises:
            SendFailed: there is none any more.
        """
        if self._writer is not None:
            await self._writer.drain()
        if self._lost is not None:
            raise Gone(f"standard output cannot be written: {self._lost.strerror or self._lost}")
        if self._writer is None:
            raise SendFailed("the terminal was left")

    def _broken(self) -> None:
        self._lost = (self._writer and self._writer.error) or OSError("nobody reads it")
        self.on_lost(self._lost)

    def _read(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        if lines and self._screen is not None:
            self._screen.typed()
        for line in lines:
            self._line(line)
        if self._reader is not None and len(self._lines) >= MOST_LINES:
            self._reader.pause()

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text:
            self._lines.append(text)
            self._news.set()

    def _end(self) -> None:
        self._line(self._rest)
        self._rest = b""
        self._ended = True
        self._news.set()


class _Log(logging.Handler):
    """Notices that something was logged, which appears on the same screen."""

    def __init__(self, notice: Callable[[], None]) -> None:
        super().__init__()
        self._notice = notice
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        # Any thread may log something, and may do so at the very end.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notice)
