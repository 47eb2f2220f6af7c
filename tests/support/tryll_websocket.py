"""WebSockets to a Tryll server in the test's own event loop, by somebody else's client and by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, served
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import decode, encode

#: A request for a WebSocket; the key is the one of RFC 6455.
OPENING = (
    b"GET /?format=%s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9


class Socket:
    """One WebSocket, whose messages are FlatBuffers or JSON."""

    def __init__(self, websocket: ClientConnection) -> None:
        self.websocket = websocket

    async def said(self) -> str | bytes | None:
        """The next message as it came; None at the end."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.websocket.recv()
        except ConnectionClosed:
            return None

    async def hear(self) -> m.Message | None:
        """The next message of the binary form; None at the end."""
        said = await self.said()
        assert not isinstance(said, str)
        return None if said is None else decode(said)

    async def ask(self, message: m.Message) -> Any:
        await self.websocket.send(encode(message))
        return await self.hear()

    async def told(self) -> dict[str, Any]:
        """The next message of the JSON form."""
        said = await self.said()
        assert isinstance(said, str)
        found = json.loads(said)
        assert isinstance(found, dict)
        return found

    async def tell(self, type: str, **members: Any) -> dict[str, Any]:
        await self.websocket.send(json.dumps({"type": type, **members}))
        return await self.told()

    async def code(self) -> int | None:
        """Why the server ended the WebSocket; what it still said is passed over."""
        while await self.said() is not None:
            pass
        return self.websocket.close_code


@asynccontextmanager
async def websocket(address: str, *, greeted: bool = True, **options: Any) -> AsyncIterator[Socket]:
    """A WebSocket at an address, which is gone after the block."""
    async with connect(address, max_size=None, close_timeout=PATIENCE_SECONDS, **options) as made:
        socket = Socket(made)
        if greeted:
            await socket.said()
        yield socket


def masked(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """A frame of a client's, whose mask changes nothing."""
    size = len(payload)
    length = (
        bytes((0x80 | size,))
        if size < 126
        else b"\xfe" + size.to_bytes(2)
        if size < 1 << 16
        else b"\xff" + size.to_bytes(8)
    )
    return bytes((opcode | 0x80 * fin,)) + length + bytes(4) + payload


@asynccontextmanager
async def opened_by_hand(
    port: int, form: bytes = b"binary"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The bytes of a WebSocket that was opened, and whose server has not been listened to any further."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(OPENING % form)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        yield reader, writer
    finally:
        writer.transport.abort()


GRAPH = {"start_node": "say", "nodes": [{"name": "say", "params": {"type": "GenerateParams", "stream": True}}]}


class BothServed(Served):
    """A server that has WebSockets, too, also for the pages of https://game.example."""

    ws = 0

    @property
    def address(self) -> str:
        return f"ws://127.0.0.1:{self.ws}"

    @property
    def json(self) -> str:
        return f"{self.address}/?format=json"

    async def works(self) -> None:
        """Whoever else is there: a turn is answered."""
        async with asyncio.timeout(PATIENCE_SECONDS), websocket(self.json) as other:
            await other.tell("ConfigureSessionRequest", request_id=1)
            made = await other.tell("CreateAgentRequest", request_id=2, graph=GRAPH, default_model_name="any")
            told = [await other.tell("SendMessageRequest", request_id=3, agent_id=made["agent_id"], text="fine")]
            while told[-1]["type"] != "TurnComplete":
                told.append(await other.told())
            assert "".join(each.get("text", "") for each in told) == "You said: fine"


@asynccontextmanager
async def both_served(folder: Path, **settings: Any) -> AsyncIterator[BothServed]:
    async with served(folder, **settings) as made:
        both = BothServed(made.server, made.host, made.port)
        _, both.ws = await made.server.listen_websocket("127.0.0.1", 0, origins=["https://game.example:443"])
        yield both
