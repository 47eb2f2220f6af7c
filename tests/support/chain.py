"""A community with the demonstration contract, and a node that can be made to misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.patience import PATIENCE_SECONDS
from trunkline.demo.chain import accounts
from trunkline.demo.chain.artefacts import artefact
from trunkline.demo.chain.embedded import EmbeddedChain
from trunkline.runner.chain.settings import TxSettings

KEY = accounts.private_key(1)

#: What a node does with a request: the bytes of its answer, or None to close the connection without one.
Behaviour = Callable[[dict[str, Any]], Awaitable[bytes | None]]


def community(address: str, chain: str = "Sepolia") -> dict[str, Any]:
    """As it stands in an agent's context."""
    contract = {"id": "k1", "name": "Vault", "chain": chain, "address": address, "abi": artefact().abi}
    return {"id": "c1", "slug": "vault", "name": "Vault", "status": "ACTIVE", "contracts": [contract]}


def tx(function: str, *args: Any, **more: Any) -> dict[str, Any]:
    """An agent's action."""
    action = {"action": "tx", "communitySlug": "vault", "threadId": "t1", "functionName": function, "args": [*args]}
    return action | more


def settings(url: str, key: str = KEY, **more: Any) -> TxSettings:
    return TxSettings(url, key, **{"timeout_seconds": 60.0, "receipt_seconds": 60.0, **more})


@asynccontextmanager
async def embedded() -> AsyncIterator[tuple[EmbeddedChain, str]]:
    """A chain that can be reached, and the address of the contract on it."""
    chain, stop, reached = EmbeddedChain(), asyncio.Event(), asyncio.Event()
    address = await chain.deploy(artefact().bytecode)
    running = asyncio.create_task(chain.run(stop, reached.set))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reached.wait()
        yield chain, address
    finally:
        stop.set()
        await running
        chain.close()


class Node:
    """A node between us and a real one. It passes everything on, except for methods with a behaviour of their own."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._client = httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False, verify=False)
        self.behaviours: dict[str, Behaviour] = {}
        self.asked: list[str] = []
        self.status = 200
        self._news = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def reached(self, method: str) -> None:
        """Wait until somebody asks for that."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while method not in self.asked:
                self._news.clear()
                await self._news.wait()

    async def ask(self, method: str, *parameters: Any) -> Any:
        """A result from the real node."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": [*parameters]}
        return json.loads(await self.forward(asked)).get("result")

    async def forward(self, asked: dict[str, Any]) -> bytes:
        return (await self._client.post(self._upstream, json=asked)).content

    async def lose_answer(self, asked: dict[str, Any]) -> None:
        """It is done, and nobody hears of it."""
        await self.forward(asked)

    async def lose_request(self, asked: dict[str, Any]) -> None:
        """It never arrives."""

    async def hang(self, asked: dict[str, Any]) -> bytes | None:
        await asyncio.sleep(3600)
        return None

    def say(self, **answer: Any) -> Behaviour:
        """Always the same answer."""

        async def behave(asked: dict[str, Any]) -> bytes:
            return json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}).encode()

        return behave

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asking := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in asking.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                asked = json.loads(await reader.readexactly(int(length.split(b":")[1])))
                self.asked.append(asked["method"])
                self._news.set()
                body = await self.behaviours.get(asked["method"], self.forward)(asked)
                if body is None:
                    return
                head = f"HTTP/1.1 {self.status} X\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    @classmethod
    @asynccontextmanager
    async def before(cls, upstream: str) -> AsyncIterator[Node]:
        node = cls(upstream)
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(node._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        node.port = server.sockets[0].getsockname()[1]
        try:
            yield node
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await node._client.aclose()


class LedgerClock:
    """The time of a ledger, which stands still unless somebody sets it."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now
