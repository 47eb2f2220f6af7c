"""A way to a server that can be cut, as when a cable is pulled: nothing is closed, nothing arrives any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

_PIECE = 65536


class Cuttable:
    """Ports on loopback that lead to others, as long as they are not cut."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._servers: list[asyncio.Server] = []
        self.ports: list[int] = []

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let everything through again. What was sent meanwhile is lost with its connection, as with a real one."""
        self._loop.call_soon_threadsafe(self._mend)

    def _mend(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._whole.set()

    async def _connected(self, to: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        await self._whole.wait()
        try:
            there, back = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        finally:
            self._writers -= {writer, back}
            for each in (writer, back):
                each.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_PIECE):
                await self._whole.wait()
                target.write(data)
                await target.drain()
        target.transport.abort()

    def _run(self, targets: list[int], ready: threading.Event) -> None:
        async def serve() -> None:
            for target in targets:
                server = await asyncio.start_server(partial(self._connected, target), "127.0.0.1", 0)
                self._servers.append(server)
                self.ports.append(server.sockets[0].getsockname()[1])
            ready.set()

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(serve())
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for writer in self._writers:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # The transports close their sockets in the next tick.
        await asyncio.sleep(0)

    @classmethod
    @contextmanager
    def to(cls, targets: list[int]) -> Iterator[Cuttable]:
        """Ways to these ports, for the duration of the block."""
        way = cls()
        ready = threading.Event()
        thread = threading.Thread(target=way._run, args=(targets, ready), name="a way that can be cut", daemon=True)
        thread.start()
        ready.wait(30)
        try:
            yield way
        finally:
            way._loop.call_soon_threadsafe(way._loop.stop)
            thread.join(10)
