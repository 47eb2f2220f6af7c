"""A network with a community or two in it, and agents and owners that talk to it over ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.patience import PATIENCE_SECONDS
from trunkline.network.delivering import Deliveries
from trunkline.network.http.app import application
from trunkline.network.ids import new_id, random_hex
from trunkline.network.network import Network, NetworkSettings
from trunkline.network.threads import insert_thread
from trunkline.store.database import Database, Transaction
from trunkline.wires.sns import codec

OWNER = "0x" + "a1" * 20
OTHER = "0x" + "b2" * 20
NOW = 1_771_400_000_000
ABI: list[dict[str, Any]] = [
    {"type": "function", "name": "inc", "stateMutability": "nonpayable", "inputs": [{"name": "n", "type": "uint256"}]},
    {"type": "event", "name": "Done", "inputs": []},
]


class Clock:
    """The time, which tests set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        self.now += 1
        return self.now


class World:
    """Everything that a test may want to do to a network."""

    def __init__(self, network: Network, client: httpx.AsyncClient, clock: Clock) -> None:
        self.network = network
        self.client = client
        self.clock = clock

    async def community(self, slug: str = "counter", owner: str = OWNER, **columns: Any) -> str:
        """A community with one contract and its thread."""

        def work(tx: Transaction) -> str:
            id = new_id()
            row = {"status": "ACTIVE", "github_repository_url": None, "description": None} | columns
            tx.execute(
                "INSERT INTO community (id, slug, name, owner_wallet, created_at, status, github_repository_url, "
                "description) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (id, slug, slug.title(), owner, self.clock(), *row.values()),
            )
            tx.execute(
                "INSERT INTO service_contract (id, community_id, name, address, chain, abi_json, source_json, "
                "created_at) VALUES (?, ?, 'Counter', ?, 'Sepolia', ?, ?, ?)",
                (new_id(), id, "0x" + codec.token_hash(slug)[:40], json.dumps(ABI), '{"a.sol": "x"}', self.clock()),
            )
            insert_thread(tx, self.clock(), community_id=id, title="Contract registry", body="SOURCE", type="SYSTEM")
            return id

        return await self.network.database.write(work)

    async def agent(self, community_id: str | None, handle: str = "alice", owner: str = OTHER) -> Runner:
        """A registered agent with a token."""
        id, token = new_id(), "rnr_" + random_hex(32)

        def work(tx: Transaction) -> None:
            tx.execute(
                "INSERT INTO agent (id, handle, owner_wallet, community_id, created_at) VALUES (?, ?, ?, ?, ?)",
                (id, handle, owner, community_id, self.clock()),
            )
            if community_id:
                tx.execute(
                    "INSERT INTO registration (agent_id, community_id, created_at) VALUES (?, ?, ?)",
                    (id, community_id, self.clock()),
                )
            tx.execute(
                "INSERT INTO runner_credential (agent_id, token_hash, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (id, codec.token_hash(token), self.clock(), self.clock()),
            )

        await self.network.database.write(work)
        return Runner(self, id, token)

    async def session(self, wallet: str = OWNER) -> dict[str, str]:
        """The header of an owner who has signed in."""
        token, now = random_hex(24), self.clock()
        await self.execute(
            "INSERT INTO owner_session (token_hash, wallet, expires_at, created_at) VALUES (?, ?, ?, ?)",
            codec.token_hash(token), wallet, now + 86_400_000, now,
        )  # fmt: skip
        return {"authorization": f"Bearer {token}"}

    async def execute(self, sql: str, *parameters: Any) -> int:
        """Change the database behind the network's back."""
        return await self.network.database.write(lambda tx: tx.execute(sql, parameters))

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> httpx.Response:
        """Read something."""
        return await self.client.get(path, headers=headers, params=query or None)


class Runner:
    """An agent's end of the wire."""

    def __init__(self, world: World, id: str, token: str) -> None:
        self.world = world
        self.id = id
        self.token = token

    @property
    def headers(self) -> dict[str, str]:
        """Those of a read."""
        return {"x-runner-token": self.token, "x-agent-id": self.id}

    async def get(self, path: str, **query: Any) -> httpx.Response:
        """Read something."""
        return await self.world.get(path, self.headers, **query)

    async def nonce(self) -> str:
        """A fresh nonce."""
        answer = await self.world.client.post("/api/agents/nonce", headers=self.headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["nonce"])

    async def signed(self, body: Any, nonce: str | None = None, timestamp: str | None = None) -> dict[str, str]:
        """The headers of a signed write."""
        nonce, timestamp = nonce or await self.nonce(), timestamp or str(self.world.clock.now)
        text = codec.payload(nonce, timestamp, codec.body_hash(body), self.id)
        return self.headers | {
            "x-agent-nonce": nonce,
            "x-agent-timestamp": timestamp,
            "x-agent-signature": codec.sign(self.token, text),
        }

    async def send(self, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
        """A signed write, or one with other headers."""
        if headers is None:
            headers = await self.signed(body)
        content = json.dumps(body).encode()
        return await self.world.client.request(method, path, headers=headers, content=content)

    async def thread(self, community_id: str, **members: Any) -> dict[str, Any]:
        """A thread that is surely written."""
        body = {"communityId": community_id, "title": "A title", "body": "A body", "type": "DISCUSSION"} | members
        answer = await self.send("POST", "/api/threads", body)
        assert answer.status_code == 200, answer.text
        thread: dict[str, Any] = answer.json()["thread"]
        return thread

    async def comment(self, thread_id: str, body: str = "A comment", **members: Any) -> dict[str, Any]:
        """A comment that is surely written."""
        answer = await self.send("POST", f"/api/threads/{thread_id}/comments", {"body": body} | members)
        assert answer.status_code == 200, answer.text
        comment: dict[str, Any] = answer.json()["comment"]
        return comment


async def deliver_due(deliveries: Deliveries) -> None:
    """Let all that is due be delivered, and return when it was tried."""
    while await deliveries._begin() or deliveries._busy:
        if deliveries._busy:
            await asyncio.wait(set(deliveries._busy.values()))


@asynccontextmanager
async def world(database: Database, **settings: Any) -> AsyncIterator[World]:
    """An empty network on a database."""
    clock = Clock()
    network = Network(database, NetworkSettings(**{"writes_per_minute": None} | settings), now=clock)
    app = application(network)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield World(network, client, clock)
    await asyncio.wait_for(app.state.housekeeping.close(), PATIENCE_SECONDS)
