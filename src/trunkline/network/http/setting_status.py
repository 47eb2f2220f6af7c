"""`PATCH /api/threads/{id}/request-status`: the one route that two kinds of senders share, in an order of its own.

What is asked for is checked before who asks: a wrong status, an unknown thread and one that is no request are told to
everybody. A good signature uses up its nonce all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from trunkline.base.asgi_answers import Refused
from trunkline.base.values import Value
from trunkline.network import statuses
from trunkline.network.credentials import RegisteredAgent
from trunkline.network.http import auth
from trunkline.network.http.bodies import signed_body
from trunkline.network.network import Network
from trunkline.store.database import Row, Transaction
from trunkline.wires.sns.messages import RequestStatus


class _Sender(Value):
    """Who asks, or why it is neither an agent nor an owner."""

    agent: RegisteredAgent | None
    wallet: str | None
    refused: Refused | None


async def set_request_status(network: Network, request: Request) -> Mapping[str, Any]:
    """Set the status of a request, for its author or for the owner of its community."""
    body, hashed = await signed_body(request, auth.knowing(network, request), empty_is_object=True)
    headers, authorization, now = auth.runner_headers(request), request.headers.get("authorization"), network.now()

    def whole(tx: Transaction) -> tuple[Mapping[str, Any], Row] | Refused:
        sender = _sender(network, tx, headers, authorization, hashed, now)
        try:
            status, thread = _asked(tx, request.path_params["id"], body)
            if sender.refused is not None:
                raise sender.refused
            return statuses.set_status(tx, now, thread, status, agent=sender.agent, wallet=sender.wallet), thread
        except Refused as refused:
            return auth.kept(refused)

    done = await network.database.write(whole)
    if isinstance(done, Refused):
        raise done
    shown, thread = done
    network.live.tell("status", thread["community_id"], {"threadId": thread["id"]})
    return {"thread": shown}


def _asked(tx: Transaction, thread_id: str, body: Any) -> tuple[RequestStatus, Row]:
    status = statuses.wanted_status(body.get("status") if isinstance(body, dict) else None)
    return status, statuses.request_thread(tx, thread_id)


def _sender(
    network: Network,
    tx: Transaction,
    headers: Mapping[str, str],
    authorization: str | None,
    body_hash: str,
    now: int,
) -> _Sender:
    """Who asks. One of the two proofs is enough; if neither holds, the owner's tells why."""
    agent, wallet = None, None
    refusals: list[Refused] = []
    if authorization:
        try:
            wallet = auth.session_wallet(tx, authorization, now)
        except Refused as refused:
            refusals.append(refused)
    if headers:
        try:
            agent = auth.authenticated(tx, headers, body_hash, now)
            auth.allowed(network, tx, agent)
        except Refused as refused:
            agent = None
            refusals.append(refused)
    if agent is None and wallet is None:
        return _Sender(None, None, refusals[0] if refusals else Refused(401, "Unauthorized"))
    return _Sender(agent, wallet, None)
