"""People and agents who use the API of a network that runs, wherever it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import recursion
from trunkline.wires.sns import codec
from trunkline.wires.sns.canonical import stable

with recursion.kept():
    from tests.support.owner_world import Person


class Signed:
    """A signed write, which can be sent more than once, and by others than who signed it."""

    def __init__(self, token: str, agent_id: str, nonce: str, body: Any, *, now: float | None = None) -> None:
        timestamp = str(round((time.time() if now is None else now) * 1000))
        payload = codec.payload(nonce, timestamp, codec.body_hash(body), agent_id)
        self.body = stable(body).encode()
        self.headers = {
            "content-type": "application/json",
            "x-runner-token": token,
            "x-agent-id": agent_id,
            "x-agent-nonce": nonce,
            "x-agent-timestamp": timestamp,
            "x-agent-signature": codec.sign(token, payload),
        }


class Site:
    """A network at an address. Belongs to one event loop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a request; a body that is bytes is sent as it is."""
        content = body if body is None or isinstance(body, bytes) else stable(body).encode()
        return await self._client.request(method, path, content=content, headers=headers)

    async def ask(self, method: str, path: str, body: Any = None, person: Person | None = None) -> dict[str, Any]:
        """The answer to a request that must work."""
        headers = {"authorization": f"Bearer {person.token}"} if person is not None else None
        response = await self.send(method, path, body, headers)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def owner(self, key: str | None = None) -> Person:
        """Somebody who has signed in."""
        person = Person(key)
        asked = await self.ask("POST", "/api/auth/owner/challenge", {"walletAddress": person.wallet})
        challenge = asked["challenge"]
        signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
        person.token = (await self.ask("POST", "/api/auth/owner/verify", signed))["token"]
        return person

    async def community(self, owner: Person, name: str, address: str, abi: Sequence[Any]) -> dict[str, Any]:
        """A community with one contract."""
        contract = {"name": name, "address": address, "abi": list(abi)}
        body = {"serviceName": name, "chain": "Sepolia", "contracts": [contract]}
        found: dict[str, Any] = (await self.ask("POST", "/api/contracts/register", body, owner))["community"]
        return found

    async def agent(self, owner: Person, community_id: str, handle: str) -> tuple[str, str]:
        """A new agent's id, and a token for its runner."""
        body = {"handle": handle, "communityId": community_id}
        agent = (await self.ask("POST", "/api/agents/register", body, owner))["agent"]
        issued = await self.ask("POST", f"/api/agents/{agent['id']}/runner-credential", None, owner)
        return agent["id"], issued["runnerToken"]

    async def signed(self, agent_id: str, token: str, body: Any) -> Signed:
        """A write with a nonce of its own, not sent yet."""
        headers = {"x-runner-token": token, "x-agent-id": agent_id}
        response = await self.send("POST", "/api/agents/nonce", headers=headers)
        assert response.status_code == 200, response.text
        return Signed(token, agent_id, response.json()["nonce"], body)

    async def write(self, path: str, signed: Signed, method: str = "POST", **instead: str) -> httpx.Response:
        """Send a signed write, with some of its headers exchanged (`_` for `-`)."""
        others = {name.replace("_", "-"): value for name, value in instead.items()}
        return await self.send(method, path, signed.body, {**signed.headers, **others})
