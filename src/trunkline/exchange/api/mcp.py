"""MCP on the exchange: `/mcp`, by streamable HTTP."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.face_keeper import keeper_of, who
from trunkline.exchange.api.faces import refused
from trunkline.exchange.exchange import Exchange

if TYPE_CHECKING:
    from trunkline.wires.mcp.agents import AgentsOffer
    from trunkline.wires.mcp.http import McpHttp

WIRE = "mcp"


class McpFace:
    """A `FaceApp`. The SDK is imported with the first request, in a thread: others would wait for half a second."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._starting = asyncio.Lock()
        self._offer: AgentsOffer | None = None
        self._http: McpHttp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await refused(scope, ApiRefused(404, "There is nothing here."))(scope, receive, send)
            return
        http = await self._started()
        from trunkline.wires.mcp.serve import Client

        client = Client(keeper_of(self._exchange, scope, WIRE), who(scope).name)
        await http(scope, receive, send, client)

    async def _started(self) -> McpHttp:
        async with self._starting:
            if self._http is None:
                await asyncio.to_thread(import_module, "trunkline.wires.mcp.http")
                from trunkline.wires.mcp.agents import AgentsOffer
                from trunkline.wires.mcp.http import McpHttp

                self._offer = AgentsOffer()
                made = McpHttp(self._offer)
                await made.start()
                self._http = made
            return self._http

    async def close(self) -> None:
        """End every request and every MCP session, and stop what was being answered."""
        async with self._starting:
            if self._http is None or self._offer is None:
                return
            self._http.end()
            # First what is being answered: whoever waits for it is told that it was stopped.
            await self._offer.close()
            await self._http.close()
