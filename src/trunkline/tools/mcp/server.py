"""One MCP server, kept at hand: when its connection is lost it is connected to again, with a new handshake.

It is tried again after half a second, then after twice as long each time. One that fails too often in a row is left
alone: its tools then say so, until somebody asks for it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trunkline.base import backoff
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.connection import (
    ConnectionLost,
    ConnectionRefused,
    Listed,
    LoginRequired,
    McpConnection,
    McpError,
    OnProgress,
)
from trunkline.tools.mcp.transport import Transport

if TYPE_CHECKING:
    from mcp_types import CallToolResult

logger = logging.getLogger(__name__)

#: The first wait before a server is tried again, and the longest.
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
#: Failures in a row after which a server is left alone; the waits between them add up to a minute.
MAX_FAILURES = 8
#: A server that has lived this long has not failed to start.
STABLE_SECONDS = 60.0
#: How long a call waits for a server that is being started again.
RETURN_SECONDS = 30.0


class Unavailable(McpError):
    """A call could not be made, or came to nothing. The text is for the model: what happened, and what to do."""


class McpServer:
    """One server. `on_tools` gets its list whenever that is known anew, `on_problem` a sentence about each trouble."""

    def __init__(
        self,
        spec: AddMcpServer,
        make_transport: Callable[[], Transport],
        *,
        on_tools: Callable[[tuple[Listed, ...]], None],
        on_problem: Callable[[str], None],
        startup_seconds: float,
    ) -> None:
        self.spec = spec
        self._make_transport = make_transport
        self._on_tools = on_tools
        self._on_problem = on_problem
        self._startup_seconds = startup_seconds
        self._connection: McpConnection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._given_up = ""
        self.needs_login = False
        """Whether that is why it was given up."""
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.spec.name

    @property
    def connected(self) -> bool:
        """Whether it can be called now."""
        return self._connection is not None and self._connection.alive

    @property
    def why_given_up(self) -> str:
        """Why it is left alone, as the rest of a sentence about it; empty: it is not."""
        return self._given_up

    @property
    def given_up(self) -> bool:
        """Whether it has failed too often and is left alone."""
        return bool(self._given_up)

    async def start(self) -> None:
        """Connect for the first time.

        Raises:
            Lost: it did not work.
        """
        await self._connect()
        if self._closed:
            raise ConnectionLost("was removed")
        self._keeper = asyncio.create_task(self._keep(), name=f"mcp-{self.name}-keeper")

    async def call(self, tool: str, args: dict[str, Any], on_progress: OnProgress) -> CallToolResult:
        """Call a tool; waits for a server that is being started again.

        Raises:
            Unavailable: there is no server, or it was lost meanwhile.
            MCPError: the server answered with an error.
            Exception: it answered with something that is not MCP.
        """
        for _ in range(2):
            connection = await self._connected()
            try:
                return await connection.call(tool, args, on_progress)
            except ConnectionRefused:
                # It has not been done, so it may be asked for again: once, of a new session.
                continue
            except ConnectionLost as lost:
                raise Unavailable(
                    f"MCP server `{self.name}` {lost}, while `{tool}` was running. Whether the call had an effect is "
                    "not known: check before you repeat it. Later calls wait until the server is back."
                ) from None
        raise Unavailable(f"MCP server `{self.name}` refuses every session. Tell the user, and go on without it.")

    async def close(self) -> None:
        """Let go of it. Bounded; may be called again."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self._connection is not None:
            await self._connection.close()
        self._note_change()

    async def _connect(self) -> None:
        connection = McpConnection(self.name, self._make_transport(), self._on_tools)
        self._connection = connection
        tools = await connection.open(self._startup_seconds)
        self._on_tools(tools)
        self._note_change()

    async def _keep(self) -> None:
        """Watch over the connection for as long as the server is wanted."""
        loop = asyncio.get_running_loop()
        failures = 0
        while failures < MAX_FAILURES and self._connection is not None:
            since = loop.time()
            reason = await self._connection.lost()
            if self._connection.needs_login:
                self._give_up_until_login(reason)
                return
            failures = 1 if loop.time() - since >= STABLE_SECONDS else failures + 1
            if failures < MAX_FAILURES:
                self._on_problem(f"MCP server `{self.name}` {reason}. It is connected to again.")
            try:
                while failures < MAX_FAILURES and not await self._retry(self._connection, failures):
                    failures += 1
            except LoginRequired as needed:
                self._give_up_until_login(str(needed))
                return
        self._give_up(
            f"failed {failures} times in a row and is left alone", f" Check it, then use `/mcp reconnect {self.name}`."
        )

    async def _retry(self, old: McpConnection, failures: int) -> bool:
        """Wait, and try once more."""
        await old.close()
        await asyncio.sleep(backoff.delay(failures, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))
        try:
            await self._connect()
        except LoginRequired:
            raise
        except ConnectionLost as lost:
            logger.info("MCP server `%s` %s", self.name, lost)
            return False
        return True

    def _give_up_until_login(self, why: str) -> None:
        self.needs_login = True
        self._give_up(why, "")

    def _give_up(self, why: str, advice: str) -> None:
        self._given_up = why
        self._on_problem(f"MCP server `{self.name}` {why}.{advice}")
        self._note_change()

    async def _connected(self) -> McpConnection:
        """A connection that is open, when there is one.

        Raises:
            Unavailable: there will be none, or not soon.
        """
        try:
            async with asyncio.timeout(RETURN_SECONDS):
                while True:
                    if self._closed:
                        raise Unavailable(f"MCP server `{self.name}` was removed.")
                    if self._given_up:
                        advice = "" if self.needs_login else f" to check it and to use `/mcp reconnect {self.name}`"
                        raise Unavailable(
                            f"MCP server `{self.name}` {self._given_up}. Tell the user{advice}, and go on without it."
                        )
                    if self._connection is not None and self._connection.alive:
                        return self._connection
                    await self._changed.wait()
        except TimeoutError:
            raise Unavailable(
                f"MCP server `{self.name}` was lost and is not back yet. Try again later, or go on without it."
            ) from None

    def _note_change(self) -> None:
        """Wake everybody who waits for a connection."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
