"""Graph agents on local models, as a service: a Tryll server with the built-in models, and the agent that echoes.

Nothing is downloaded or loaded before somebody asks for a model.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable

from trunkline.base import paths

#: Where clients look for a server.
PORT = 9100


class TryllService:
    """The server. On its usual port, or on any that is free."""

    name = "tryll"

    def __init__(self, port: int = PORT) -> None:
        self._wanted = self._port = port

    @property
    def where(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def about(self) -> str:
        return "the Tryll server: graph agents on local models, for games and apps"

    @property
    def trial(self) -> str:
        address = "" if self._port == PORT else f" {self.where}"
        return f"trunkline tryll chat{address} --graph npc"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        from trunkline.agents.graph.agent_models import AgentModels, offered
        from trunkline.agents.graph.hosting import LocalGraphHost
        from trunkline.agents.graph.pool import ModelPool
        from trunkline.agents.graph.vectors import VectorStore
        from trunkline.wires.tryll.serve import TryllServer

        cache = paths.cache_dir()
        models = AgentModels(ModelPool(), offered(()))
        graphs = LocalGraphHost(models, None, VectorStore(os.path.join(cache, "tryll-vectors")))
        server = TryllServer(graphs)
        try:
            try:
                _, self._port = await server.listen("127.0.0.1", self._wanted)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                _, self._port = await server.listen("127.0.0.1", 0)
            reachable()
            await stop.wait()
        finally:
            try:
                await server.close()
            finally:
                # Whoever is in a hurry may cancel the former. A model that goes on writing would keep the process.
                await graphs.close()
