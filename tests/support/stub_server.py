"""A server on the loopback interface that says what a test wants, one task for each connection."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from typing import Self

from tests.support.ports import free_port

#: Longer than any head of a request.
_HEAD_LIMIT = 1024 * 1024


class StubServer(ABC):
    """In the loop that entered it. A second entry takes the port of the first, which nobody gets in between."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.port = 0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self.port = self.port or free_port()
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, limit=_HEAD_LIMIT, ssl=self._tls
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Cut every connection and take no more; the port is refused from here on."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer all requests of a connection, which is cut when this returns."""
