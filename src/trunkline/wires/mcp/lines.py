"""A server on a pair of pipes: lines in, lines out. Whoever has the pipes feeds it; it never waits for them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from mcp import types
from mcp.server import Server
from mcp.shared.message import SessionMessage

from trunkline.base.lines import LineOutput
from trunkline.wires import jsonrpc
from trunkline.wires.mcp import codec

#: Requests that are under way at once. A client that sends more is not read until some are answered.
MOST_OPEN = 256


class McpLines:
    """One connection."""

    def __init__(self, server: Server[Any], output: LineOutput, max_line: int = codec.MAX_LINE) -> None:
        self._server = server
        self._output = output
        self._decoder = codec.LineDecoder(max_line)
        self._incoming = _Incoming()
        self._open: set[codec.RequestId] = set()
        """The requests that have no answer yet."""
        self._relieved = asyncio.Event()
        self._task = asyncio.create_task(self._serve(), name="an MCP connection")

    @property
    def flooded(self) -> bool:
        """Whether the client should not be read for now."""
        return len(self._open) >= MOST_OPEN or self._output.congested

    async def relief(self) -> None:
        """Wait until the client can be read again."""
        while self.flooded and not self._task.done():
            if self._output.congested:
                await self._output.drain()
            else:
                self._relieved.clear()
                await self._relieved.wait()

    def feed(self, data: bytes) -> None:
        """Some bytes from the client."""
        for message in self._decoder.feed(data):
            self._take(message)
        self._output.flush()

    def end(self) -> None:
        """The client has closed its end."""
        for message in self._decoder.finish():
            self._take(message)
        self._output.flush()

    async def finish(self, seconds: float) -> None:
        """Let requests that are under way have their answers, for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open and not self._task.done():
                    self._relieved.clear()
                    await self._relieved.wait()

    async def close(self) -> None:
        """End the connection, and every request that is under way."""
        self._incoming.close()
        await asyncio.wait({self._task})

    def sent(self, message: types.JSONRPCMessage) -> None:
        """A message for the client."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._answered(message.id)
        self._output.write(codec.encode(message.model_dump(by_alias=True, mode="json", exclude_unset=True)))
        self._output.flush()

    async def room(self) -> None:
        """Wait until the client has read enough."""
        if self._output.congested:
            await self._output.drain()

    def _take(self, message: dict[str, Any] | codec.BrokenMessage) -> None:
        if isinstance(message, codec.BrokenMessage):
            self._output.write(codec.encode_error(message))
            return
        request = message.get("id") if "method" in message else None
        if request is not None and request in self._open:
            used = f"The id `{request}` is that of a request without an answer."
            self._output.write(codec.encode_error(codec.BrokenMessage(jsonrpc.INVALID_REQUEST, used)))
            return
        try:
            parsed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValueError:
            broken = codec.BrokenMessage(jsonrpc.INVALID_REQUEST, "This is not a message of JSON-RPC.", request)
            self._output.write(codec.encode_error(broken))
            return
        if request is not None:
            self._open.add(request)
        elif message.get("method") == "notifications/cancelled":
            # It is never answered.
            self._answered((message.get("params") or {}).get("requestId"))
        self._incoming.put(SessionMessage(parsed))

    def _answered(self, request: Any) -> None:
        if isinstance(request, str | int):
            self._open.discard(request)
        self._relieved.set()

    async def _serve(self) -> None:
        try:
            options = self._server.create_initialization_options()
            await self._server.run(self._incoming, _Outgoing(self), options)
        finally:
            self._relieved.set()


class _SdkStream:
    """A stream as the SDK enters and leaves it; the pipes are somebody else's."""

    async def aclose(self) -> None:
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class _Incoming(_SdkStream):
    """The stream that the SDK reads."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[SessionMessage | None] = asyncio.Queue()

    def put(self, message: SessionMessage) -> None:
        self._queue.put_nowait(message)

    def close(self) -> None:
        self._queue.put_nowait(None)

    async def receive(self) -> SessionMessage | Exception:
        return await self.__anext__()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = await self._queue.get()
        if message is None:
            # For whoever reads next.
            self.close()
            raise StopAsyncIteration
        return message


class _Outgoing(_SdkStream):
    """The stream that the SDK writes to."""

    def __init__(self, lines: McpLines) -> None:
        self._lines = lines

    async def send(self, item: SessionMessage, /) -> None:
        self._lines.sent(item.message)
        await self._lines.room()
