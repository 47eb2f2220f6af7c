"""Sets the demonstration up on a network, through its API, as its owner would: a community, an agent, a credential.

It may be done again at every start: what is there already is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.base.values import Value
from trunkline.core.faults import AgentFailed
from trunkline.demo.chain.artefacts import artefact
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

if TYPE_CHECKING:
    from httpx import AsyncClient

NAME = "Demo vault"
HANDLE = "tester"
_DESCRIPTION = (
    "A small bank on the embedded chain, with one mistake in it. The agent `tester` looks for it; you are its owner if"
    " you sign in with the key that `trunkline up` printed. The chain lives in that process and goes by the name of"
    " Sepolia; the repository is nobody's."
)
#: Nobody's: it makes the draft of an issue visible, which is a link and nothing more.
_REPOSITORY = "https://github.com/example/demo-vault"
_CONFLICT = 409


class DemoAgent(Value):
    """What a runner needs to be the demonstration's agent."""

    slug: str
    agent_id: str
    runner_token: str

    def __repr__(self) -> str:
        return f"DemoAgent(slug={self.slug!r}, agent_id={self.agent_id!r})"


async def settle(http: AsyncClient, url: str, owner_key: str, vault: str) -> DemoAgent:
    """Make sure that all is there, and issue a credential: the one before is revoked by that.

    Raises:
        AgentFailed: the network refused something.
    """
    try:
        return await _settled(Owner(http, url, Wallet(owner_key)), vault)
    except SnsError as error:
        raise AgentFailed(f"The network refused what the demonstration needs: {error}") from None


async def _settled(api: Owner, vault: str) -> DemoAgent:
    await api.sign_in()
    await _register(api, vault)
    owned = await api.call("GET", f"/api/communities/owned?walletAddress={api.wallet}")
    community = next(each for each in owned["communities"] if each["name"] == NAME)
    registered = await api.call("POST", "/api/agents/register", {"handle": HANDLE, "communityId": community["id"]})
    agent_id = str(registered["agent"]["id"])
    # What it shows of its model is the truth: it has none.
    general = {"handle": HANDLE, "llmProvider": "SCRIPTED", "llmModel": ""}
    await api.call("PATCH", f"/api/agents/{agent_id}/general", general)
    credential = await api.call("POST", f"/api/agents/{agent_id}/runner-credential", {})
    return DemoAgent(str(community["slug"]), agent_id, str(credential["runnerToken"]))


async def _register(api: Owner, vault: str) -> None:
    contract = artefact("Vault")
    body = {
        "serviceName": NAME,
        "chain": "Sepolia",
        "description": _DESCRIPTION,
        "githubRepositoryUrl": _REPOSITORY,
        "contracts": [{"name": "Vault", "address": vault, "abi": contract.abi, "source": contract.source}],
    }
    try:
        await api.call("POST", "/api/contracts/register", body)
    except SnsError as error:
        if error.status != _CONFLICT:
            raise
