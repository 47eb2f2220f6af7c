"""The page as a service of `trunkline up`: talk to the agents of its Tryll server in a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from trunkline.base import asgi
from trunkline.exchange.talk.conversation import MAX_READ, Where

#: Where people look for the page.
PORT = 9180


class Server(Protocol):
    """Where the agents are; `tryll_service.TryllService` is one."""

    @property
    def address(self) -> str:
        """Its address, as `HOST:PORT`."""


class TalkService:
    """The page. On its usual port, or on any that is free."""

    name = "talk"

    def __init__(self, server: Server, port: int = PORT) -> None:
        self._server = server
        self._wanted = self._port = port

    @property
    def where(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def about(self) -> str:
        return "a page to talk to an agent, by voice or by typing"

    @property
    def trial(self) -> str:
        return f"open {self.where} in a browser, and talk to an agent"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.exchange.talk.app import application

        def begun(host: str, port: int) -> None:
            self._port = port
            reachable()

        app = application(self._address)
        try:
            await asgi.serve(app, "127.0.0.1", self._wanted, stop, begun, websockets=MAX_READ)
        except asgi.CannotListen:
            await asgi.serve(app, "127.0.0.1", 0, stop, begun, websockets=MAX_READ)

    def _address(self) -> Where:
        host, _, port = self._server.address.rpartition(":")
        return Where(host, int(port))
