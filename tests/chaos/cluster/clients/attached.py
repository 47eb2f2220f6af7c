"""A program at the socket in a node's home: what `trunkline ... --attach` says there, without its process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.chaos.cluster.clients.wire import TRY_SECONDS
from tests.support.cluster_process import NodeProcess
from trunkline.base import attach, jsontext
from trunkline.base.attach import AttachEnding, AttachHeader, BadAttachment, FrameReader

_PIECE = 65536


class AttachRefused(Exception):
    """The node said that it does not let the program in, or does not take what it said: nothing was done."""


#: How a client hears that its node is gone, or has nothing for it.
BROKEN = (OSError, EOFError, TimeoutError, BadAttachment, AttachRefused)


class Attached:
    """One connection. Made by `to`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._lines: list[bytes] = []
        self._rest = b""
        self.ending: AttachEnding | None = None
        """How it ended, as the node says; None while it goes on, and if it was broken off."""

    @classmethod
    async def to(cls, node: NodeProcess, header: AttachHeader) -> Attached:
        """Be let in.

        Raises:
            AttachRefused: the node says no.
            OSError, EOFError, TimeoutError: it says nothing. It may read the header later.
        """
        path = node.directory / "home" / "exchange" / attach.ATTACH_SOCKET
        async with asyncio.timeout(TRY_SECONDS):
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                writer.write(attach.encode(header))
                answer = attach.decode_answer(await reader.readuntil(b"\n"))
            except BaseException:
                writer.close()
                raise
        if answer.error:
            writer.close()
            raise AttachRefused(answer.error)
        return cls(reader, writer)

    def send(self, said: Mapping[str, Any]) -> None:
        """One line."""
        self._writer.write(jsontext.dumps(said) + b"\n")

    async def line(self) -> dict[str, Any] | None:
        """The next line; None at the end.

        Raises:
            OSError: the connection is lost.
        """
        while not self._lines:
            data = await self._reader.read(_PIECE)
            if not data:
                self.ending = self._frames.finish()
                return None
            *self._lines, self._rest = (self._rest + self._frames.feed(data)).split(b"\n")
        found: dict[str, Any] = jsontext.loads(self._lines.pop(0))
        return found

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
