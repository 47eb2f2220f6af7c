"""Who plays: agents with a credential, and owners with a wallet. They are the same in all checks of a run.

`Given` are agents that somebody else has registered. `Own` are registered by the kit itself, as a person would do it:
with a wallet that signs in, registers a contract and so makes a community, and registers agents in it. Each of them
comes into being when a check first asks for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar, cast

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform.kit import NotExercised
from trunkline.conform.sns.exchange import Exchanges, RunMemory, SnsResponse
from trunkline.wires.sns.wallet import Wallet

T = TypeVar("T")

#: What a check may need besides an agent: another agent of its community, an agent of another community, the wallets
#: behind them, and two minutes of time.
Need = Literal["peer", "stranger", "owner", "patience"]

#: What owners sign to register contracts, and in front of a community's slug to register agents.
FIXED_MESSAGE = "24-7-playground"

_ABI = [
    {
        "type": "function",
        "name": "increment",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "by", "type": "uint256"}],
        "outputs": [],
    }
]
_JSON = {"content-type": "application/json"}


class CastAgent(Value):
    """An agent, as its runner knows it."""

    id: str
    token: str

    @property
    def credential(self) -> dict[str, str]:
        """The headers of everything that its runner sends."""
        return {"x-runner-token": self.token, "x-agent-id": self.id}


class Community(Value):
    """A community, as much of it as requests name."""

    id: str
    slug: str
    name: str


class CastOwner(Value):
    """Somebody with a wallet, signed in."""

    wallet: Wallet
    session: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of everything that a signed-in owner sends."""
        return {"authorization": f"Bearer {self.session}"}


class Cast:
    """What all of them share. Those that there are not are not exercised."""

    has: frozenset[Need] = frozenset()

    def __init__(self) -> None:
        self.memory = RunMemory()
        self.offset_ms = 0
        """How far the network's clock is before ours."""
        self._made: dict[str, Any] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def agent(self, ask: Exchanges) -> CastAgent:
        """The agent that most checks are played with."""
        raise NotExercised("there is no agent")

    async def peer(self, ask: Exchanges) -> CastAgent:
        """Another agent of its community."""
        raise NotExercised("there is no other agent of the community")

    async def stranger(self, ask: Exchanges) -> CastAgent:
        """An agent of another community."""
        raise NotExercised("there is no agent of another community")

    async def owner(self, ask: Exchanges) -> CastOwner:
        """The owner of the community."""
        raise NotExercised("there is no owner")

    async def newcomer(self, ask: Exchanges) -> tuple[CastAgent, CastOwner]:
        """One more agent of the community, for one check alone, and its owner."""
        raise NotExercised("there is no owner")

    async def closing(self, ask: Exchanges) -> tuple[CastAgent, Callable[[], Awaitable[None]]]:
        """An agent of a community of its own, and what closes that."""
        raise NotExercised("there is no owner")

    async def tidy(self, ask: Exchanges) -> None:
        """Leave as little behind as possible."""

    async def community(self, ask: Exchanges, agent: CastAgent) -> Community:
        """The community of an agent, as the network tells it."""

        async def read() -> Community:
            answer = await ask.ask("GET", f"/api/agents/{agent.id}/general", agent.credential)
            found = _done(answer, "The agent's general data cannot be read")["community"]
            return Community(found["id"], found["slug"], found["name"])

        return await self.once(f"community of {agent.id}", read)

    async def once(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """What was made under that name, made now if it was not."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name not in self._made:
                self._made[name] = await make()
            return cast(T, self._made[name])


class Given(Cast):
    """Agents that somebody else has registered."""

    def __init__(self, agent: CastAgent, peer: CastAgent | None = None, stranger: CastAgent | None = None) -> None:
        super().__init__()
        self._agent = agent
        self._peer = peer
        self._stranger = stranger
        others: Mapping[Need, CastAgent | None] = {"peer": peer, "stranger": stranger}
        self.has = frozenset(need for need, other in others.items() if other)
        self.memory.keep(*(each.token for each in (agent, peer, stranger) if each))

    async def agent(self, ask: Exchanges) -> CastAgent:
        return self._agent

    async def peer(self, ask: Exchanges) -> CastAgent:
        return self._peer or await super().peer(ask)

    async def stranger(self, ask: Exchanges) -> CastAgent:
        return self._stranger or await super().stranger(ask)


class Own(Cast):
    """Agents and communities that the kit registers, and closes when the run is over."""

    has: frozenset[Need] = frozenset(("peer", "stranger", "owner"))

    def __init__(self, owner: Wallet | None = None) -> None:
        """`owner` registers the communities: a throw-away wallet unless given."""
        super().__init__()
        self._wallet = owner

    async def agent(self, ask: Exchanges) -> CastAgent:
        return await self._member(ask, "agent", "main")

    async def peer(self, ask: Exchanges) -> CastAgent:
        return await self._member(ask, "peer", "main")

    async def stranger(self, ask: Exchanges) -> CastAgent:
        return await self._member(ask, "stranger", "elsewhere")

    async def owner(self, ask: Exchanges) -> CastOwner:
        return await self.once("owner", lambda: self._signed_in(ask, self._wallet))

    async def newcomer(self, ask: Exchanges) -> tuple[CastAgent, CastOwner]:
        return await self._registered(ask, await self._open(ask, "main"))

    async def closing(self, ask: Exchanges) -> tuple[CastAgent, Callable[[], Awaitable[None]]]:
        # Not the same for two checks: what is closed stays so.
        community = await self._opened(ask, "closing")
        agent, _ = await self._registered(ask, community)

        async def close() -> None:
            _done(await self._close(ask, community), "The community cannot be closed")

        return agent, close

    async def tidy(self, ask: Exchanges) -> None:
        for name in ("main", "elsewhere"):
            if name in self._made:
                await self._close(ask, self._made[name])

    async def _member(self, ask: Exchanges, name: str, where: str) -> CastAgent:
        async def make() -> CastAgent:
            return (await self._registered(ask, await self._open(ask, where)))[0]

        return await self.once(name, make)

    async def _open(self, ask: Exchanges, name: str) -> Community:
        return await self.once(name, lambda: self._opened(ask, name))

    async def _opened(self, ask: Exchanges, name: str) -> Community:
        owner = await self.owner(ask)
        body = {
            "serviceName": f"Conform {name} {os.urandom(4).hex()}",
            "chain": "Sepolia",
            "description": "Made by a conformance kit, which closes it again.",
            "signature": owner.wallet.sign(FIXED_MESSAGE),
            "contracts": [{"name": "Counter", "address": f"0x{os.urandom(20).hex()}", "abi": _ABI}],
        }
        answer = await post(ask, "/api/contracts/register", body, owner.headers)
        found = _done(answer, "A community cannot be registered")["community"]
        return Community(found["id"], found["slug"], found["name"])

    async def _close(self, ask: Exchanges, community: Community) -> SnsResponse:
        owner = await self.owner(ask)
        body = {
            "communityId": community.id,
            "confirmName": community.name,
            "signature": owner.wallet.sign(FIXED_MESSAGE),
        }
        return await post(ask, "/api/communities/close", body, owner.headers)

    async def _registered(self, ask: Exchanges, community: Community) -> tuple[CastAgent, CastOwner]:
        owner = await self._signed_in(ask, None)
        body = {
            "handle": f"conform{os.urandom(4).hex()}",
            "communityId": community.id,
            "signature": owner.wallet.sign(FIXED_MESSAGE + community.slug),
        }
        answer = await post(ask, "/api/agents/register", body, owner.headers)
        id = str(_done(answer, "An agent cannot be registered")["agent"]["id"])
        return CastAgent(id, await self.credential(ask, id, owner)), owner

    async def credential(self, ask: Exchanges, agent_id: str, owner: CastOwner) -> str:
        """A new token for an agent."""
        answer = await ask.ask("POST", f"/api/agents/{agent_id}/runner-credential", owner.headers)
        return str(_done(answer, "A credential cannot be issued")["runnerToken"])

    async def _signed_in(self, ask: Exchanges, wallet: Wallet | None) -> CastOwner:
        # The first wallet loads a library for half a second.
        wallet = await asyncio.to_thread(Wallet) if wallet is None else wallet
        answer = await post(ask, "/api/auth/owner/challenge", {"walletAddress": wallet.address})
        challenge = _done(answer, "An owner cannot get a challenge")["challenge"]
        body = {"challengeId": challenge["id"], "signature": wallet.sign(challenge["message"])}
        answer = await post(ask, "/api/auth/owner/verify", body)
        return CastOwner(wallet, str(_done(answer, "An owner cannot sign in")["token"]))


async def post(
    ask: Exchanges, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> SnsResponse:
    """An ordinary request with a body."""
    return await ask.ask("POST", path, {**_JSON, **(headers or {})}, jsontext.dumps(dict(body)))


class _Object(dict[str, Any]):
    """The members of an answer, at every depth; without one that is missing, nothing is exercised."""

    def __init__(self, members: Mapping[str, Any], asked: str) -> None:
        super().__init__(
            (name, _Object(each, asked) if isinstance(each, dict) else each) for name, each in members.items()
        )
        self._asked = asked

    def __missing__(self, name: str) -> Any:
        raise NotExercised(f"the answer to {self._asked} has no `{name}`")


def _done(answer: SnsResponse, otherwise: str) -> Mapping[str, Any]:
    if answer.status != 200 or not isinstance(answer.data, dict):
        raise NotExercised(f"{otherwise}: {answer.asked} was answered with {answer.status}, {answer.shown!a}")
    return _Object(answer.data, answer.asked)
