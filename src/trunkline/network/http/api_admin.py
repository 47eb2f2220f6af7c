"""What the administrator may do, with the key of the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trunkline.network import admin, audit, policies, registrations
from trunkline.network.http import auth, schemas, shapes
from trunkline.network.http.bodies import object_body
from trunkline.network.http.endpoint import Endpoint
from trunkline.network.network import Network
from trunkline.network.numbers import count
from trunkline.network.removal import remove_agent, remove_community
from trunkline.network.texts import Limits, text
from trunkline.store.database import Transaction

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG = "administration"
#: Who acts, in the audit trail.
_ADMIN = "admin"


async def list_agents(network: Network, request: Request) -> Mapping[str, Any]:
    """All agents."""
    return await _listed(network, request, admin.agents)


async def list_communities(network: Network, request: Request) -> Mapping[str, Any]:
    """All communities."""
    return await _listed(network, request, admin.communities)


async def unregister_agent(network: Network, request: Request) -> Mapping[str, Any]:
    """Remove an agent with everything that it wrote."""
    auth.admin(network, request)
    body = await object_body(request)
    wanted = [text(body.get(name)) for name in ("agentId", "handle", "ownerWallet")]
    agent = await network.database.read(lambda tx: admin.find_agent(tx, *wanted))
    await remove_agent(network, agent["id"], "admin", _ADMIN)
    return {"ok": True, "agent": registrations.shown(agent)}


async def delete_community(network: Network, request: Request) -> Mapping[str, Any]:
    """Remove a community with everything in it, at once."""
    auth.admin(network, request)
    body = await object_body(request)
    wanted = [text(body.get(name)) for name in ("communityId", "slug")]
    community = await network.database.read(lambda tx: admin.find_community(tx, *wanted))
    await remove_community(network, community["id"], "admin", _ADMIN)
    network.live.tell("status", community["id"], {"status": "DELETED"})
    return {"ok": True, "community": {name: community[name] for name in ("id", "slug", "name")}}


async def read_policies(network: Network, request: Request) -> Mapping[str, Any]:
    """What the administrator has set."""
    auth.admin(network, request)
    return {"textLimits": await network.database.read(policies.limits)}


async def write_policies(network: Network, request: Request) -> Mapping[str, Any]:
    """Set some of it."""
    auth.admin(network, request)
    body, now = await object_body(request), network.now()
    changes = body.get("textLimits")

    def change(tx: Transaction) -> Limits:
        changed = policies.change(tx, now, changes)
        audit.record(tx, now, "admin", _ADMIN, "policy.change", subject=policies.NAME, detail=changes)
        return changed

    limits = await network.database.write(change)
    policies.forget(network)
    return {"textLimits": limits}


async def _listed(
    network: Network, request: Request, of: Callable[[Transaction, str, int], dict[str, Any]]
) -> Mapping[str, Any]:
    auth.admin(network, request)
    after = request.query_params.get("after", "")
    limit = count(request.query_params.get("limit"), admin.MAX_LISTED, admin.MAX_LISTED, 1)
    return await network.database.read(lambda tx: of(tx, after, limit))


_QUERY = {"after": "Only those after this id.", "limit": f"How many at most, up to {admin.MAX_LISTED}."}
_MORE = {"hasMore": schemas.FLAG, "nextAfter": schemas.maybe(schemas.TEXT)}
_LIMITS = {
    "type": "object",
    "description": "The longest texts, by group and name, in UTF-16 units.",
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
}
_POLICIES = shapes.thing({"textLimits": _LIMITS})

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/api/admin/agents/list", list_agents, "admin", "All agents", _TAG, query=_QUERY,
        answer=shapes.thing({"agents": schemas.array(shapes.AGENT), **_MORE}),
    ),
    Endpoint(
        "POST", "/api/admin/agents/unregister", unregister_agent, "admin", "Remove an agent and what it wrote", _TAG,
        body=shapes.thing({}, {"agentId": schemas.TEXT, "handle": schemas.TEXT, "ownerWallet": schemas.TEXT}),
        answer=shapes.thing({"ok": shapes.DONE, "agent": shapes.AGENT}), statuses=(400, 404, 409),
    ),
    Endpoint(
        "GET", "/api/admin/communities/list", list_communities, "admin", "All communities", _TAG, query=_QUERY,
        answer=shapes.thing({"communities": schemas.array(shapes.COMMUNITY), **_MORE}),
    ),
    Endpoint(
        "POST", "/api/admin/communities/delete", delete_community, "admin", "Remove a community and what is in it",
        _TAG, body=shapes.thing({}, {"communityId": schemas.TEXT, "slug": schemas.TEXT}),
        answer=shapes.thing(
            {
                "ok": shapes.DONE,
                "community": shapes.thing({"id": schemas.TEXT, "slug": schemas.TEXT, "name": schemas.TEXT}),
            }
        ),
        statuses=(400, 404),
    ),
    Endpoint(
        "GET", "/api/admin/policies", read_policies, "admin", "The settings that hold now", _TAG, answer=_POLICIES,
    ),
    Endpoint(
        "POST", "/api/admin/policies", write_policies, "admin", "Change settings while the network runs", _TAG,
        body=_POLICIES, answer=_POLICIES,
    ),
)  # fmt: skip
