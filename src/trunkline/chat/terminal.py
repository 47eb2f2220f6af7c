"""The simplest platform: lines of standard input are messages, and answers are written to standard output.

For trying a bridge, and for tests: one chat, one person, nothing that can be changed once it was written. It ends when
its input does.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

from trunkline.base import stdio
from trunkline.chat.platform import Button, File, FileType, Inbound, Limits, Pressed, SendFailed

CHAT = "terminal"
SENDER = "you"

#: Lines that may wait to be taken before no more is read.
MOST_LINES = 100
#: A longer line is cut into several messages: what never ends must not fill the memory.
LONGEST_LINE = 1024 * 1024

#: Screens have no limit; this keeps a runaway answer in pieces that the rest of the machinery can handle.
_LIMITS = Limits(text_chars=100_000, edits=False)
# What a terminal would obey instead of showing it: all control characters but the line feed and the tab.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TerminalPlatform:
    """Standard input and output as a chat."""

    name = "terminal"
    limits = _LIMITS

    def __init__(self, reading: int = 0, writing: int = 1) -> None:
        """The two descriptors, which stay open."""
        self._reading = reading
        self._writing = writing
        self._lines: deque[str] = deque()
        self._rest = b""
        self._ended = False
        self._news = asyncio.Event()
        self._reader: stdio.Reader | None = None
        self._writer: stdio.Writer | None = None

    async def open(self) -> None:
        self._writer = stdio.Writer(self._writing, lambda: None)
        self._reader = stdio.Reader(self._reading, self._read, self._end)
        self._reader.start()

    async def receive(self) -> AsyncIterator[Inbound | Pressed]:
        while True:
            while not self._lines:
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
            line = self._lines.popleft()
            if self._reader is not None and len(self._lines) == MOST_LINES - 1 and not self._ended:
                self._reader.resume()
            yield Inbound(uuid4().hex, CHAT, SENDER, line, private=True)

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        await self._write(text)
        return key

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        raise SendFailed("what was written to a terminal cannot be changed")

    async def send_file(self, chat: str, path: str, *, type: FileType, name: str, key: str) -> str:
        await self._write(f"[{type}] {path}")
        return key

    async def fetch(self, file: File, path: str) -> None:
        raise SendFailed("a terminal brings no files")

    async def typing(self, chat: str) -> None:
        """There is nowhere to show it."""

    def measure(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._writer is not None:
            await self._writer.close()
            self._writer = None
        self._end()

    async def _write(self, text: str) -> None:
        writer = self._writer
        if writer is None or writer.broken:
            raise SendFailed("nobody reads standard output any more")
        shown = _CONTROL.sub("", text) if os.isatty(self._writing) else text
        writer.write(f"{shown}\n".encode("utf-8", "backslashreplace"))
        writer.flush()
        await writer.drain()
        if writer.broken:
            raise SendFailed("nobody reads standard output any more")

    def _read(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
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
