"""OpenAI's HTTP on the exchange: `/v1`."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from trunkline.agents.machine import CatalogModels
from trunkline.exchange.api.face_keeper import keeper_of
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.wires.openai.machine import MachineRoutes
from trunkline.wires.openai.serve import OpenAIApplication

WIRE = "openai"


class OpenAIFace:
    """A `FaceApp`."""

    def __init__(self, exchange: Exchange) -> None:
        def keeper(scope: Scope) -> ExchangeKeeper:
            return keeper_of(exchange, scope, WIRE)

        self._machine = CatalogModels()
        self._app = OpenAIApplication(keeper, MachineRoutes(self._machine, keeper).routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End the answers that are being given, and let go of what is loaded."""
        self._app.close()
        await self._app.closed()
        await self._machine.close()
