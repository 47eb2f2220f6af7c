"""What `trunkline tryll serve` does once all that it was told has been looked at."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trunkline.base import jsontext, open_files, paths
from trunkline.base.config_addresses import joined
from trunkline.base.values import Value
from trunkline.cli import serving
from trunkline.cli.figures import FiguresDoor, FiguresTold
from trunkline.core.starting import another_address, cannot_listen

if TYPE_CHECKING:
    import ssl

    from trunkline.agents.graph.agent_models import AgentModels
    from trunkline.agents.graph.hosting import Models
    from trunkline.agents.graph.recorded import ConversationRecords
    from trunkline.wires.tryll.serve import TryllServer

#: Objects after which a process that serves looks for garbage, and how often it looks further.
_THRESHOLDS = (10_000, 10, 10)


class ServerDoors(Value):
    """Where the server listens: over TCP, and for WebSockets of pages of these origins."""

    host: str
    port: int
    websocket: tuple[str, int] | None
    origins: tuple[str, ...]
    tls: ssl.SSLContext | None

    async def open(self, server: TryllServer) -> tuple[tuple[str, int], tuple[str, int] | None]:
        """Listen; gives the real addresses: that for TCP, and that for WebSockets.

        Raises:
            ConfigError: that does not work.
        """
        with _listening(self.host, self.port, "--listen"):
            tcp = await server.listen(self.host, self.port, self.tls)
        if self.websocket is None:
            return tcp, None
        with _listening(*self.websocket, "--ws"):
            return tcp, await server.listen_websocket(*self.websocket, self.tls, origins=self.origins)

    def told(self, tcp: tuple[str, int], websocket: tuple[str, int] | None) -> str:
        """The real addresses, for people."""
        scheme = "ws" if self.tls is None else "wss"
        return joined(*tcp) if websocket is None else f"{joined(*tcp)} and {scheme}://{joined(*websocket)}/"


class ServePlan(Value):
    """What is served, where, and how much of it."""

    doors: ServerDoors
    models_dir: str | None
    storage_root: str | None
    vectors_dir: str | None
    among: Callable[[Models], AgentModels]
    records: ConversationRecords | None
    metrics: tuple[str, int] | None
    """Where figures are told, if anywhere."""
    as_json: bool
    token: str
    max_clients: int
    max_agents: int
    turns_per_minute: int


async def serve(plan: ServePlan, stop: asyncio.Event) -> None:
    """Serve until the event is set.

    Raises:
        ConfigError: an address cannot be had.
    """
    from trunkline.agents.graph.hosting import LocalGraphHost
    from trunkline.agents.graph.pool import ModelPool
    from trunkline.agents.graph.vectors import VectorStore
    from trunkline.wires.tryll.serve import ServerSettings, TryllServer
    from trunkline.wires.tryll.serve.figures import ServerFigures

    # Each client is one.
    open_files.allow_many()
    pool = ModelPool(models_dir=plan.models_dir)
    vectors = VectorStore(plan.vectors_dir or os.path.join(paths.cache_dir(), "tryll-vectors"))
    graphs = LocalGraphHost(plan.among(pool), plan.storage_root, vectors, records=plan.records)
    settings = ServerSettings(
        token=plan.token,
        max_clients=plan.max_clients,
        max_agents=plan.max_agents,
        turns_per_minute=plan.turns_per_minute,
    )
    server = TryllServer(graphs, settings, ServerFigures() if plan.metrics else None)
    # The token that others say there is that of the server: it needs what the server needs.
    door = FiguresDoor(plan.metrics, plan.token, plan.doors.tls)
    told = FiguresTold(door, lambda: server.figures.text(server) if server.figures else "", lambda: server.stopping)
    try:
        real = await plan.doors.open(server)
        await told.open()
        _collect_seldom()
        _tell_ready(plan.doors, *real, told.address, as_json=plan.as_json)
        told.tell()
        await stop.wait()
    finally:
        await server.close()
        await told.close()
        await graphs.close()


def _tell_ready(
    doors: ServerDoors,
    tcp: tuple[str, int],
    websocket: tuple[str, int] | None,
    figures: tuple[str, int] | None,
    *,
    as_json: bool,
) -> None:
    """Say where it is: to people, or to the program that has started it."""
    if not as_json:
        serving.told(f"The Tryll server is ready: {doors.told(tcp, websocket)} (Ctrl-C ends it.)")
        return
    from trunkline import __version__

    ports = {
        "port": tcp[1],
        "ws_port": websocket[1] if websocket is not None else None,
        "metrics_port": figures[1] if figures is not None else None,
    }
    click.echo(jsontext.dumps({"type": "ready", "host": tcp[0], **ports, "pid": os.getpid(), "version": __version__}))


@contextmanager
def _listening(host: str, port: int, flag: str) -> Iterator[None]:
    """Tell of a failure to listen there as everywhere."""
    try:
        yield
    except OSError as error:
        raise cannot_listen(host, port, error, another_address(flag)) from None


def _collect_seldom() -> None:
    """Look for garbage in cycles less often, and never in what is there from the start and stays to the end.

    A turn makes a few hundred objects and no cycles: to look for some after every 700 takes 7 % of a short turn.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
