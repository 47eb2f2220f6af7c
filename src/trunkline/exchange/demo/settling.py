"""Sets the demonstration up on a network, through its API, as its owner would: a community, an agent, a credential.

It may be done again at every start: what is there already is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext, recursion
from trunkline.base.values import Value
from trunkline.core.faults import AgentFailed
from trunkline.exchange.chain.artefacts import artefact

if TYPE_CHECKING:
    from httpx import AsyncClient

NAME = "Demo vault"
HANDLE = "tester"
_DESCRIPTION = (
    "A small bank on the embedded chain, with one mistake in it. The agent `tester` looks for it; you are its owner if"
    " you sign in with the key that `trunkline up` printed."
)
#: Nobody's: it makes the draft of an issue visible, which is a link and nothing more.
_REPOSITORY = "https://github.com/example/demo-vault"
_OK = 200
_CONFLICT = 409


class Settled(Value):
    """What a runner needs to be the demonstration's agent."""

    slug: str
    agent_id: str
    runner_token: str

    def __repr__(self) -> str:
        return f"Settled(slug={self.slug!r}, agent_id={self.agent_id!r})"


async def settle(http: AsyncClient, url: str, owner_key: str, vault: str) -> Settled:
    """Make sure that all is there, and issue a credential: the one before is revoked by that.

    Raises:
        AgentFailed: the network refused something.
    """
    with recursion.kept():
        from eth_account import Account
    wallet = Account.from_key(owner_key).address.lower()
    api = _Api(http, url)
    await api.sign_in(wallet, owner_key)
    await _register(api, vault)
    owned = await api.get(f"/api/communities/owned?walletAddress={wallet}")
    community = next(each for each in owned["communities"] if each["name"] == NAME)
    registered = await api.post("/api/agents/register", {"handle": HANDLE, "communityId": community["id"]})
    agent_id = str(registered["agent"]["id"])
    # What it shows of its model is the truth: it has none.
    general = {"handle": HANDLE, "llmProvider": "SCRIPTED", "llmModel": "none (a script)"}
    await api.call("PATCH", f"/api/agents/{agent_id}/general", general)
    credential = await api.post(f"/api/agents/{agent_id}/runner-credential", {})
    return Settled(str(community["slug"]), agent_id, str(credential["runnerToken"]))


async def _register(api: _Api, vault: str) -> None:
    contract = artefact("Vault")
    body = {
        "serviceName": NAME,
        "chain": "Sepolia",
        "description": _DESCRIPTION,
        "githubRepositoryUrl": _REPOSITORY,
        "contracts": [{"name": "Vault", "address": vault, "abi": contract.abi, "source": contract.source}],
    }
    await api.call("POST", "/api/contracts/register", body, also=_CONFLICT)


class _Api:
    """The network's API, as an owner calls it."""

    def __init__(self, http: AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self._token: str | None = None

    async def sign_in(self, wallet: str, key: str) -> None:
        with recursion.kept():
            from eth_account import Account
            from eth_account.messages import encode_defunct
        challenge = (await self.post("/api/auth/owner/challenge", {"walletAddress": wallet}))["challenge"]
        signed = Account.sign_message(encode_defunct(text=challenge["message"]), key)
        answer = {"challengeId": challenge["id"], "signature": f"0x{bytes(signed.signature).hex()}"}
        self._token = str((await self.post("/api/auth/owner/verify", answer))["token"])

    async def get(self, path: str) -> dict[str, Any]:
        return await self.call("GET", path, None)

    async def post(self, path: str, body: Any) -> dict[str, Any]:
        return await self.call("POST", path, body)

    async def call(self, method: str, path: str, body: Any, *, also: int = _OK) -> dict[str, Any]:
        """The answer; `also` is one more status that is fine."""
        headers = {"content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        content = None if body is None else jsontext.dumps(body)
        response = await self._http.request(method, f"{self._url}{path}", headers=headers, content=content)
        answer = jsontext.loads(response.content)
        if response.status_code not in (_OK, also):
            raise AgentFailed(f"The network refused `{method} {path}`: {answer.get('error')}")
        return dict(answer)
