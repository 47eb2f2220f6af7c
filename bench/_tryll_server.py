"""The servers of the Tryll benchmark: the wire with nobody behind it, all of it, and a bare echo.

    python bench/_tryll_server.py wire|echo|graphs|websocket

Writes its port on a line, and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.wires.tryll.codec import answer_frame, complete_frame
from trunkline.wires.tryll.messages import Message, SendMessageRequest, TurnStatus
from trunkline.wires.tryll.serve import TryllServer
from trunkline.wires.tryll.serve.connection import ServerConnection

#: What the wire alone answers to everything. As long as what the Mock engine says.
ANSWER = "You said: Good morning!"
#: Connections that wait to be accepted.
BACKLOG = 1024


class Answering:
    """Stands in for a session: every message is answered, and ends a turn, on the spot."""

    crowded = False
    idle = True

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def handle(self, message: Message, size: int) -> None:
        if not isinstance(message, SendMessageRequest):
            raise AssertionError(f"a `{type(message).__name__}` came")
        request_id, agent_id = message.request_id, message.agent_id
        self._connection.send(
            answer_frame(request_id, agent_id, ANSWER, False, True)
            + complete_frame(request_id, agent_id, TurnStatus.SUCCESS, "", 8)
        )

    def end(self) -> None:
        self._connection.finish()

    def lost(self) -> None:
        pass


class Wire(ServerConnection):
    """A connection without agents: frames are cut, verified, decoded and answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP has both ends
        stand_in: Any = Answering(self)
        self.session = stand_in
        super().connection_made(transport)


class Echo(asyncio.Protocol):
    """What comes goes back as it is."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP has both ends
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._write(data)


async def serve(kind: str) -> None:
    loop = asyncio.get_running_loop()
    pool = ModelPool()
    server = TryllServer(LocalGraphHost(pool))
    factories: dict[str, Any] = {"wire": lambda: Wire(server), "echo": Echo, "graphs": lambda: ServerConnection(server)}
    if kind == "websocket":
        _, port = await server.listen_websocket("127.0.0.1", 0)
        listening = None
    else:
        listening = await loop.create_server(factories[kind], "127.0.0.1", 0, backlog=BACKLOG)
        port = listening.sockets[0].getsockname()[1]
    # As `trunkline tryll serve` does when it is up.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    if listening is not None:
        listening.close()
    await server.close()
    await pool.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
