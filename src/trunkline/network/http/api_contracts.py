"""Registering contracts, which makes communities, and changing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trunkline.base.asgi_answers import Refused
from trunkline.network import contract_update, contracts, policies
from trunkline.network.explorer import Explorer
from trunkline.network.http import schemas, shapes
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.http.owners import acting_wallet, session_wallet
from trunkline.network.network import Network
from trunkline.network.texts import limited, text
from trunkline.network.wallets import FIXED_MESSAGE

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "contracts"


async def register(network: Network, request: Request) -> Mapping[str, Any]:
    """Register contracts. Those of a new service make a community."""
    body, limits = await object_body(request), await policies.text_limits(network)
    signature = text(body.get("signature"))
    session = await session_wallet(network, request, signature)
    service = contracts.service(body, limits)
    if not (session or signature):
        raise Refused(400, "signature is required")
    wallet = await acting_wallet(session, FIXED_MESSAGE, signature)
    new = await network.database.read(lambda tx: contracts.missing(tx, wallet, service))
    explorer = Explorer(network.settings)
    found = await explorer.contracts([contract.address for contract in new if contract.abi is None])
    now = network.now()
    done = await network.database.write(lambda tx: contracts.register(tx, now, wallet, service, found))
    network.live.tell("thread", done["community"]["id"], {"threadId": done["systemThreadId"], "type": "SYSTEM"})
    return done


async def update(network: Network, request: Request) -> Mapping[str, Any]:
    """Change a community's description or contracts, or tell what a change would come to."""
    body, limits = await object_body(request), await policies.text_limits(network)
    signature = text(body.get("signature"))
    session = await session_wallet(network, request, signature)
    community_id = text(body.get("communityId"))
    if not (community_id and (session or signature)):
        raise Refused(400, "communityId and signature are required")
    limited("communityId", community_id, limits["ids"]["communityId"])
    change = contract_update.change(body, limits)
    wallet = await acting_wallet(session, FIXED_MESSAGE, signature)
    explorer = Explorer(network.settings)
    asked = await network.database.read(
        lambda tx: contract_update.to_look_up(tx, wallet, community_id, change, explorer.configured)
    )
    found = await explorer.contracts(asked)
    check_only, now = body.get("checkOnly") is True, network.now()
    done = await network.database.write(
        lambda tx: contract_update.apply(tx, now, wallet, community_id, change, found, check_only=check_only)
    )
    if done.get("updated"):
        network.live.tell("thread", community_id, {"threadId": done["systemThreadId"], "type": "SYSTEM"})
    return done


_ABI = schemas.array({"type": "object"})
_WANTED = shapes.thing(
    {"address": shapes.ADDRESS},
    {
        "name": schemas.TEXT,
        "abi": {**_ABI, "description": "Without it, the block explorer is asked."},
        "source": {"description": "The source code: a string, or files by path as `{path: {content}}`."},
    },
)
_CONTRACT = shapes.thing(
    {
        "id": schemas.TEXT,
        "name": schemas.TEXT,
        "address": shapes.WALLET,
        "chain": schemas.TEXT,
        "communityId": schemas.TEXT,
        "abi": _ABI,
        "faucetFunction": schemas.maybe(schemas.TEXT),
        "createdAt": schemas.MOMENT,
    }
)
_DIFFERENCES = shapes.thing(
    {
        "nameChanged": schemas.FLAG,
        "addressChanged": schemas.FLAG,
        "abiChanged": schemas.FLAG,
        "sourceChanged": schemas.FLAG,
    }
)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/api/contracts/register", register, "none",
        "Register contracts, by a session or by the signature of `24-7-playground`", _TAG,
        body=shapes.thing(
            {
                "serviceName": shapes.WORDS,
                "chain": {"const": "Sepolia"},
                "contracts": {**schemas.array(_WANTED), "minItems": 1, "maxItems": contracts.MAX_CONTRACTS},
            },
            {"signature": schemas.TEXT, "description": schemas.TEXT, "githubRepositoryUrl": schemas.TEXT},
        ),
        answer=shapes.thing(
            {
                "contracts": schemas.array(_CONTRACT),
                "community": shapes.COMMUNITY,
                "contractCount": schemas.COUNT,
                "systemThreadsCreated": schemas.COUNT,
                "systemThreadId": schemas.TEXT,
            }
        ),
        statuses=(400, 401, 403, 409),
    ),
    Endpoint(
        "POST", "/api/contracts/update", update, "none",
        "Change contracts or a description, by a session or by the signature of `24-7-playground`", _TAG,
        body=shapes.thing(
            {"communityId": schemas.TEXT, "action": {"enum": list(contract_update.ACTIONS)}},
            {
                "signature": schemas.TEXT,
                "contractId": schemas.TEXT,
                "name": schemas.TEXT,
                "address": shapes.ADDRESS,
                "abi": _ABI,
                "description": schemas.TEXT,
                "githubRepositoryUrl": schemas.TEXT,
                "checkOnly": schemas.FLAG,
            },
        ),
        answer=shapes.thing(
            {},
            {
                "updated": schemas.FLAG,
                "canUpdate": schemas.FLAG,
                "differences": _DIFFERENCES,
                "action": schemas.TEXT,
                "changedContractCount": schemas.COUNT,
                "contractCount": schemas.COUNT,
                "systemThreadId": schemas.TEXT,
                "systemThreadCreated": schemas.FLAG,
                "removedSystemThreadCount": schemas.COUNT,
            }
        ),
        statuses=(400, 401, 403, 404, 409),
    ),
)  # fmt: skip
