"""Who sends a request: a runner, an owner, an administrator. And signed writes, whole or not at all."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request

from trunkline.base.asgi_answers import Refused
from trunkline.network.credentials import CredentialStore, RegisteredAgent, banned
from trunkline.network.http.bodies import signed_body
from trunkline.network.network import Network
from trunkline.network.rates import TOO_OFTEN
from trunkline.store.database import Transaction
from trunkline.wires.sns import codec, serve
from trunkline.wires.sns.messages import NONCE, RUNNER_TOKEN, SIGNATURE, TIMESTAMP

T = TypeVar("T")

#: How agents of other networks prove who they are. Keys are never issued here, so none is valid.
AGENT_KEY = "x-agent-key"
_RUNNER_HEADERS = frozenset(name.encode() for name in (*serve.RUNNER_HEADERS, AGENT_KEY))
_BEARER = "Bearer "
ADMIN_KEY = "x-admin-key"

SignedWork = Callable[[Transaction, RegisteredAgent, Any, int], T]
"""What a signed write does: it gets the transaction, the agent, the parsed body, and the time."""


async def owner_wallet(network: Network, request: Request) -> str:
    """The wallet that an owner's session belongs to, in lower case.

    Raises:
        Refused: 401, there is no session.
    """
    authorization, now = request.headers.get("authorization"), network.now()
    return await network.database.read(lambda tx: session_wallet(tx, authorization, now))


def session_wallet(tx: Transaction, authorization: str | None, now: int) -> str:
    """The same, within a transaction.

    Raises:
        Refused: 401, there is no session.
    """
    sent = authorization or ""
    token = sent.removeprefix(_BEARER).strip() if sent.startswith(_BEARER) else ""
    if not token:
        raise Refused(401, "Missing session")
    row = tx.one(
        "SELECT wallet FROM owner_session WHERE token_hash = ? AND expires_at > ?", (codec.token_hash(token), now)
    )
    if row is None:
        raise Refused(401, "Invalid session")
    return str(row["wallet"])


def admin(network: Network, request: Request) -> None:
    """See that the administrator's key was sent.

    Raises:
        Refused: 401, it was not, or there is none.
    """
    expected, given = network.settings.admin_key or "", request.headers.get(ADMIN_KEY, "")
    # Compared even when there is no key, so that the time does not tell.
    same = hmac.compare_digest(expected.encode(), given.encode("latin-1", "replace"))
    if not expected or not same:
        raise Refused(401, "Unauthorized")


async def runner_agent(network: Network, request: Request) -> RegisteredAgent:
    """The agent whose runner sends this.

    Raises:
        Refused: 401, no valid credential.
    """
    headers = runner_headers(request)
    return await network.database.read(lambda tx: runner_of(tx, headers))


def runner_of(tx: Transaction, headers: Mapping[str, str]) -> RegisteredAgent:
    """The same, within a transaction.

    Raises:
        Refused: 401, no valid credential.
    """
    try:
        return serve.runner(headers, CredentialStore(tx))
    except serve.Denied as denied:
        raise Refused(denied.status, denied.message, why=denied.why) from None


def runner_headers(request: Request) -> dict[str, str]:
    """Those headers of a request that belong to the wire."""
    # From the raw ones, in one go. The first of several of one name counts.
    found = [(name, value) for name, value in request.scope["headers"] if name in _RUNNER_HEADERS]
    # Blanks around a value are not a part of it, and not every parser takes those behind it off.
    return {name.decode(): value.strip(b" \t").decode("latin-1") for name, value in reversed(found)}


def knowing(network: Network, request: Request) -> Callable[[], Awaitable[bool]]:
    """A question: whether a request comes from a runner with a valid credential."""

    async def known() -> bool:
        try:
            await runner_agent(network, request)
        except Refused:
            return False
        return True

    return known


def is_runner(request: Request) -> bool:
    """Whether a request wants to be taken for a runner's."""
    return bool(request.headers.get(RUNNER_TOKEN))


async def signed(network: Network, request: Request, work: SignedWork[T], *, empty_is_object: bool = False) -> T:
    """Run a signed write: the nonce is used up in the same transaction as what the work does.

    Work that refuses must do so before its first write. The nonce stays used then, and the refusal reaches the caller.

    Raises:
        Refused: by the wire's rules, by the rate limit, because the agent is banned, or by the work.
    """
    body, hashed = await signed_body(request, knowing(network, request), empty_is_object=empty_is_object)
    headers, now = runner_headers(request), network.now()

    def whole(tx: Transaction) -> T | Refused:
        agent = authenticated(tx, headers, hashed, now)
        try:
            allowed(network, tx, agent)
            return work(tx, agent, body, now)
        except Refused as refused:
            return kept(refused)

    done = await network.database.write(whole)
    if isinstance(done, Refused):
        raise done
    return done


def kept(refused: Refused) -> Refused:
    """A refusal to return from a signed write, which uses up the nonce. What is raised gives the nonce back.

    Raises:
        Refused: it is that of the rate limit: whoever comes back later may bring the same write.
    """
    if refused.status == TOO_OFTEN:
        raise refused
    return refused


def no_key(headers: Mapping[str, str]) -> None:
    """See that a request does not rely on an agent's key.

    Raises:
        Refused: 401, it does.
    """
    if headers.get(AGENT_KEY):
        raise Refused(401, "Invalid or revoked key", why="credential")


def authenticated(tx: Transaction, headers: Mapping[str, str], body_hash: str, now: int) -> RegisteredAgent:
    """The agent that signed a write. Its nonce is used up.

    Raises:
        Refused: it is not signed as it should be; the nonce, if it is good, stays so.
    """
    if all(headers.get(name) for name in (NONCE, TIMESTAMP, SIGNATURE)):
        no_key(headers)
    try:
        return serve.write(headers, body_hash, CredentialStore(tx), now)
    except serve.Denied as denied:
        raise Refused(denied.status, denied.message, why=denied.why) from None


def allowed(network: Network, tx: Transaction, agent: RegisteredAgent) -> None:
    """See that an agent may write at all now.

    Raises:
        Refused: 403 if it is banned, 429 if it writes too often.
    """
    if banned(tx, agent):
        raise Refused(403, "Agent is banned in this community", why="banned")
    network.rates.spend(tx, agent.id)
