"""A network in this process, and people with wallets who use its API."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import httpx

from trunkline.base import recursion
from trunkline.network.http.app import application
from trunkline.network.network import Network, NetworkSettings
from trunkline.store.database import Database, Row, Transaction
from trunkline.wires.sns import codec
from trunkline.wires.sns.canonical import stable

with recursion.kept():
    from eth_account import Account
    from eth_account.messages import encode_defunct

ADMIN_KEY = "the-administrators-key"
BASE = "http://localhost"
ABI = [
    {"type": "function", "name": "inc", "stateMutability": "nonpayable", "inputs": [{"name": "n", "type": "uint256"}]},
    {"type": "function", "name": "Faucet", "stateMutability": "nonpayable", "inputs": []},
]

Answer = tuple[int, dict[str, Any]]


class Person:
    """Somebody with a wallet, and a session if signed in."""

    def __init__(self, key: str | None = None) -> None:
        self._account = Account.from_key(key or "0x" + secrets.token_hex(32))
        self.wallet: str = self._account.address.lower()
        self.token: str | None = None

    def sign(self, message: str) -> str:
        """The signature that a wallet makes of a text."""
        signature: str = self._account.sign_message(encode_defunct(text=message)).signature.hex()
        return f"0x{signature.removeprefix('0x')}"


class World:
    """The network, its clock, and short ways to its routes."""

    def __init__(self, database: Database, **settings: Any) -> None:
        self.now = 1_800_000_000_000
        self.network = Network(database, NetworkSettings(admin_key=ADMIN_KEY, **settings), now=lambda: self.now)
        transport = httpx.ASGITransport(application(self.network))
        self.client = httpx.AsyncClient(transport=transport, base_url=BASE)

    def pass_seconds(self, seconds: float) -> None:
        """Let time go by."""
        self.now += round(seconds * 1000)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        person: Person | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request, with the session of a person if one is given."""
        sent = dict(headers or {})
        if person is not None:
            sent["authorization"] = f"Bearer {person.token}"
        content = body if body is None or isinstance(body, bytes) else stable(body).encode()
        response = await self.client.request(method, path, content=content, headers=sent)
        return response.status_code, response.json()

    async def get(self, path: str, person: Person | None = None) -> Answer:
        """Read something."""
        return await self.ask("GET", path, person=person)

    async def post(self, path: str, body: Any, person: Person | None = None) -> Answer:
        """Send something."""
        return await self.ask("POST", path, body, person)

    async def admin(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask as the administrator."""
        return await self.ask(method, f"/api/admin/{path}", body, headers={"x-admin-key": ADMIN_KEY})

    async def challenge(self, person: Person) -> dict[str, Any]:
        """A text for a person to sign."""
        status, answer = await self.post("/api/auth/owner/challenge", {"walletAddress": person.wallet})
        assert status == 200, answer
        found: dict[str, Any] = answer["challenge"]
        return found

    async def owner(self, key: str | None = None) -> Person:
        """A person who has signed in."""
        person = Person(key)
        challenge = await self.challenge(person)
        signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
        status, answer = await self.post("/api/auth/owner/verify", signed)
        assert status == 200, answer
        person.token = answer["token"]
        return person

    async def community(self, owner: Person, name: str = "My dApp", **members: Any) -> dict[str, Any]:
        """A community with one contract of its own."""
        contract = {"name": "Counter", "address": address(), "abi": ABI}
        body = {"serviceName": name, "chain": "Sepolia", "contracts": [contract], **members}
        status, answer = await self.post("/api/contracts/register", body, owner)
        assert status == 200, answer
        found: dict[str, Any] = answer["community"]
        return found

    async def agent(self, owner: Person, community_id: str, handle: str = "Ada") -> dict[str, Any]:
        """A registered agent."""
        body = {"handle": handle, "communityId": community_id}
        status, answer = await self.post("/api/agents/register", body, owner)
        assert status == 200, answer
        found: dict[str, Any] = answer["agent"]
        return found

    async def runner_token(self, owner: Person, agent_id: str) -> str:
        """A token for an agent's runner."""
        status, answer = await self.post(f"/api/agents/{agent_id}/runner-credential", None, owner)
        assert status == 200, answer
        token: str = answer["runnerToken"]
        return token

    async def write(self, token: str, agent_id: str, path: str, body: Any) -> Answer:
        """A signed write of an agent's runner."""
        runner = {"x-runner-token": token, "x-agent-id": agent_id}
        status, answer = await self.ask("POST", "/api/agents/nonce", headers=runner)
        if status != 200:
            return status, answer
        nonce, timestamp = answer["nonce"], str(self.now)
        payload = codec.payload(nonce, timestamp, codec.body_hash(body), agent_id)
        signed = {
            "x-agent-nonce": nonce,
            "x-agent-timestamp": timestamp,
            "x-agent-signature": codec.sign(token, payload),
        }
        return await self.ask("POST", path, body, headers={**runner, **signed})

    async def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """What the database holds."""

        def work(tx: Transaction) -> list[Row]:
            return tx.all(sql, parameters)

        return await self.network.database.read(work)

    async def actions(self, community_id: str | None = None) -> list[str]:
        """What the audit trail tells, oldest first."""
        rows = await self.rows("SELECT action, community_id FROM audit ORDER BY number")
        return [row["action"] for row in rows if community_id in (None, row["community_id"])]


def address() -> str:
    """The address of a contract that nobody has registered."""
    return "0x" + secrets.token_hex(20)
