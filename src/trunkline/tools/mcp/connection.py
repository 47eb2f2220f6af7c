"""One life of one MCP server: handshake, list of tools, calls, end.

The SDK's contexts must be entered and left in one task, so each connection has a task of its own that does nothing but
hold them. Calls are made from wherever they come; a call that is cancelled tells the server so and returns at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

from trunkline import __version__
from trunkline.base.values import Value
from trunkline.tools.mcp.transport import Transport, in_short

if TYPE_CHECKING:
    from mcp.client.session import ClientSession, IncomingMessage
    from mcp_types import CallToolResult

logger = logging.getLogger(__name__)

#: How long a connection may take to close by itself. Then it is cut off.
CLOSE_SECONDS = 5.0
#: After a lost call, how long to wait for the reason: the exit code of a server that has just died.
REASON_SECONDS = 2.0
#: Between two lists of tools of a server that has new ones all the time.
RELIST_SECONDS = 1.0
#: Pages of one list of tools. A server whose list never ends must not keep us for ever.
MAX_PAGES = 100


class OnProgress(Protocol):
    """Called while a tool runs, when its server says how far it is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Listed(Value):
    """A tool as its server lists it."""

    name: str
    description: str
    schema: Mapping[str, Any]


class McpError(Exception):
    """Something did not work with an MCP server. Raise one of its children."""


class ConnectionLost(McpError):
    """The connection is gone. The text is the rest of a sentence about the server."""


class ConnectionRefused(ConnectionLost):
    """The server did not know our session, and has not done what it was asked."""


class LoginRequired(ConnectionLost):
    """The server wants an account that somebody logs in to first. Trying again does not help."""


class McpConnection:
    """A connection through `transport`. `on_tools` is called when the server says that its tools have changed."""

    def __init__(self, name: str, transport: Transport, on_tools: Callable[[tuple[Listed, ...]], None]) -> None:
        self._name = name
        self._transport = transport
        self.clean = transport.clean
        self._on_tools = on_tools
        self._session: ClientSession | None = None
        self._opened: asyncio.Future[tuple[Listed, ...] | ConnectionLost] = asyncio.get_running_loop().create_future()
        self._news = asyncio.Event()
        self._over = asyncio.Event()
        self._changed = False
        self._reason = "ended the connection"
        self._owner: asyncio.Task[None] | None = None
        self._abandoned: set[asyncio.Task[CallToolResult]] = set()

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""
        return self._session is not None and not self._over.is_set()

    @property
    def needs_login(self) -> bool:
        """Whether it ended because somebody has to log in first."""
        return self._transport.needs_login

    async def open(self, seconds: float) -> tuple[Listed, ...]:
        """Connect, shake hands and list the tools. Call `close` whatever comes of it.

        Raises:
            Lost: it did not work, or not within `seconds`.
        """
        self._owner = asyncio.create_task(self._live(), name=f"mcp-{self._name}")
        try:
            async with asyncio.timeout(seconds):
                opened = await asyncio.shield(self._opened)
        except TimeoutError:
            self._owner.cancel()
            raise ConnectionLost(f"did not answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self._owner.cancel()
            raise
        if isinstance(opened, ConnectionLost):
            raise opened
        return opened

    async def call(self, tool: str, args: dict[str, Any], on_progress: OnProgress) -> CallToolResult:
        """Call a tool, and wait as long as it takes.

        Raises:
            Lost: the connection ended first; what the tool has done is not known.
            Refused: the server has not done it.
            MCPError: the server answered with an error.
            Exception: it answered with something that is not MCP.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        if self._session is None or self._over.is_set():
            raise ConnectionRefused(self._reason)
        call = asyncio.create_task(self._session.call_tool(tool, args, progress_callback=on_progress))
        try:
            await asyncio.wait({call})
        except asyncio.CancelledError:
            # Its last act is to tell the server. That may take a while, and nobody has to wait for it.
            self._abandoned.add(call)
            call.add_done_callback(self._abandoned.discard)
            call.cancel()
            raise
        try:
            return call.result()
        except MCPError as error:
            if self._transport.refused:
                raise ConnectionRefused(await self._why(error)) from error
            if error.code == CONNECTION_CLOSED and (self._over.is_set() or self._transport.remote):
                raise ConnectionLost(await self._why(error)) from error
            raise

    async def lost(self) -> str:
        """Wait for the end of the connection; why it ended."""
        if self._owner is not None:
            await asyncio.wait({self._owner})
        return self._reason

    async def close(self) -> None:
        """End the connection, and the server if it is a program. Bounded; may be called again."""
        self._end()
        if self._owner is not None:
            _, late = await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
            if late:
                self._owner.cancel()
                await asyncio.wait(late)
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=CLOSE_SECONDS)

    async def _live(self) -> None:
        """The owner's task: everything that the SDK wants entered is entered and left here."""
        problem: BaseException | None = None
        try:
            async with AsyncExitStack() as stack:
                await self._hold(stack)
        except Exception as error:
            problem = error
        finally:
            self._session = None
            self._over.set()
            self._reason = self._transport.explain(problem)
            if not self._opened.done():
                lost = LoginRequired if self._transport.needs_login else ConnectionLost
                self._opened.set_result(lost(self._reason))

    async def _hold(self, stack: AsyncExitStack) -> None:
        from mcp.client.session import ClientSession
        from mcp_types import Implementation

        incoming, outgoing = await stack.enter_async_context(self._transport.connect(self._end))
        session = ClientSession(
            _Watched(incoming, self._end),
            outgoing,
            message_handler=self._hear,
            client_info=Implementation(name="trunkline", version=__version__),
        )
        await stack.enter_async_context(session)
        await _shake_hands(session)
        tools = await _list_tools(session)
        self._session = session
        if not self._opened.done():
            self._opened.set_result(tools)
        while not self._over.is_set():
            await self._news.wait()
            self._news.clear()
            if self._changed and not self._over.is_set():
                self._changed = False
                await self._list_again(session)
                await self._rest()

    async def _list_again(self, session: ClientSession) -> None:
        from mcp import MCPError
        from pydantic import ValidationError

        try:
            self._on_tools(await _list_tools(session))
        except (MCPError, ValidationError) as error:
            logger.warning(
                "MCP server `%s` has new tools, but cannot list them: %s", self._name, in_short(error, self.clean)
            )

    async def _rest(self) -> None:
        """Some servers announce new tools whenever they are asked for their tools."""
        try:
            async with asyncio.timeout(RELIST_SECONDS):
                await self._over.wait()
        except TimeoutError:
            return

    async def _hear(self, message: IncomingMessage) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed = True
            self._news.set()
        elif isinstance(message, Exception):
            logger.info("MCP server `%s` sent something that is not a message: %s", self._name, type(message).__name__)

    def _end(self) -> None:
        self._over.set()
        self._news.set()

    async def _why(self, error: Exception) -> str:
        """The reason of the end, which is known when everything was let go; else what the SDK says."""
        if self._owner is not None:
            await asyncio.wait({self._owner}, timeout=REASON_SECONDS)
            if self._owner.done():
                return self._reason
        return f"gave no answer: {in_short(error, self.clean)}"


class _Watched:
    """A stream of the SDK that tells when it has ended, which the SDK keeps to itself."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        """Some streams of the SDK carry the sender's context; it is looked for by this name."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self.__anext__()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        from anyio import ClosedResourceError

        try:
            return await self._stream.__anext__()
        except (StopAsyncIteration, ClosedResourceError):
            self._on_end()
            raise

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        left: bool | None = await self._stream.__aexit__(*error)
        return left


async def _shake_hands(session: ClientSession) -> None:
    """The handshake that every server knows; where one knows only what came after it, that."""
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        try:
            await session.discover()
        except MCPError:
            raise error from None


async def _list_tools(session: ClientSession) -> tuple[Listed, ...]:
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams

    listed: dict[str, Listed] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                # A server of something else than tools.
                break
            raise
        for tool in page.tools:
            listed[tool.name] = Listed(tool.name, tool.description or tool.title or "", tool.input_schema)
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(listed.values())
