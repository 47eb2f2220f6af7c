"""Graph agents on local models, as a service: a Tryll server with the built-in models and the echo agent, or the
agents of an exchange.

Nothing is downloaded or loaded before somebody asks for a model.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trunkline.base import config_addresses, paths
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from trunkline.agents.graph.agent_models import SharedAgents
    from trunkline.wires.tryll.serve import TryllServer

#: The default port of clients.
PORT = 9100


class TryllService:
    """The server. On its usual port, or on any that is free."""

    name = "tryll"

    def __init__(
        self,
        port: int = PORT,
        host: str = "127.0.0.1",
        elsewhere: SharedAgents | None = None,
        *,
        strict: bool = False,
        token: str = "",
        models_dir: str | None = None,
        storage_root: str | None = None,
        websocket: tuple[str, int] | None = None,
        websocket_strict: bool = False,
        origins: Iterable[str] = (),
        max_clients: int = 0,
        max_agents: int = 0,
        turns_per_minute: int = 0,
    ) -> None:
        """`elsewhere`: agents in place of the echo agent. `strict`: use that port or fail. `token`: what clients
        must send; empty: none is needed. `websocket`: where to listen for WebSockets, too, with
        `websocket_strict` there or not at all, and `origins`: of whose pages, besides those of this machine. The last
        three: how much there may be of each; 0 for no such limit."""
        self._token = token
        self._models_dir = models_dir
        self._storage_root = storage_root
        self._wanted = self._port = port
        self._host = host
        self._elsewhere = elsewhere
        self._strict = strict
        self._websocket = self._websocket_wanted = websocket
        self._websocket_strict = websocket_strict
        self._origins = tuple(origins)
        self._limits = {"max_clients": max_clients, "max_agents": max_agents, "turns_per_minute": turns_per_minute}

    @property
    def address(self) -> str:
        """Where it takes TCP connections."""
        return config_addresses.joined(self._host, self._port)

    @property
    def where(self) -> str:
        """The address, and that of its WebSockets, if it takes them."""
        return (
            self.address
            if self._websocket is None
            else f"{self.address} and ws://{config_addresses.joined(*self._websocket)}/"
        )

    @property
    def about(self) -> str:
        return "the Tryll server: graph agents on local models, for games and apps"

    @property
    def trial(self) -> str:
        address = "" if self._port == PORT else f" {self.address}"
        return f"trunkline tryll chat{address} --graph npc"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.agents.graph.agent_models import AgentModels, offered
        from trunkline.agents.graph.hosting import LocalGraphHost
        from trunkline.agents.graph.pool import ModelPool
        from trunkline.agents.graph.vectors import VectorStore
        from trunkline.wires.tryll.serve import ServerSettings, TryllServer

        cache = paths.cache_dir()
        # An exchange offers what its file names: an echo of the server's own would have no session there.
        own = offered(()) if self._elsewhere is None else {}
        models = AgentModels(ModelPool(models_dir=self._models_dir), own, elsewhere=self._elsewhere)
        vectors = VectorStore(os.path.join(cache, "tryll-vectors"))
        graphs = LocalGraphHost(models, self._storage_root, vectors)
        server = TryllServer(graphs, ServerSettings(token=self._token, **self._limits))
        try:
            try:
                _, self._port = await server.listen(self._host, self._wanted)
            except OSError as error:
                if self._strict:
                    why = error.strerror or error
                    raise ConfigError(f"The Tryll server cannot listen on `{self.address}`: {why}.") from None
                if error.errno != errno.EADDRINUSE:
                    raise
                _, self._port = await server.listen(self._host, 0)
            if self._websocket_wanted is not None:
                self._websocket = await self._listen_for_websockets(server, *self._websocket_wanted)
            self._serving(True)
            reachable()
            await stop.wait()
        finally:
            self._serving(False)
            try:
                await server.close()
            finally:
                # A caller in a hurry may cancel `close`. A model that keeps writing would keep the process alive.
                await graphs.close()

    async def _listen_for_websockets(self, server: TryllServer, host: str, port: int) -> tuple[str, int]:
        try:
            _, port = await server.listen_websocket(host, port, origins=self._origins)
        except OSError as error:
            if self._websocket_strict:
                why, where = error.strerror or error, config_addresses.joined(host, port)
                raise ConfigError(f"The Tryll server cannot listen for WebSockets on `{where}`: {why}.") from None
            if error.errno != errno.EADDRINUSE:
                raise
            _, port = await server.listen_websocket(host, 0, origins=self._origins)
        return host, port

    def _serving(self, serving: bool) -> None:
        if self._elsewhere is not None:
            self._elsewhere.serving = serving
