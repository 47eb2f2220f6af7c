"""The cluster: which nodes there are, and letting one go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base.values import Value
from trunkline.core.faults import Fault
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, FLAG, MOMENT, TEXT, array, obj
from trunkline.exchange.cluster.cluster import Cluster
from trunkline.exchange.cluster.nodes import ClusterNode


class NodeNamed(Value):
    """A node of the cluster."""

    node: str


async def status(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/cluster`."""
    cluster = _cluster(call)
    try:
        await cluster.nodes.look()
        # Also when servers answer: they may not have let this node say that it is alive.
        cluster.check()
        why = ""
    except Fault as fault:
        why = str(fault)
    live = call.exchange.switchboard.at_work
    me = cluster.me.replace(sessions=sum(not each.is_followed for each in live))
    is_ready = not why
    others = [_members(each, True) for each in cluster.nodes.others.values()]
    nodes = sorted([*others, _members(me, is_ready)], key=lambda node: str(node["name"]))
    return {"cluster": cluster.settings.name, "node": me.name, "ready": is_ready, "why": why, "nodes": nodes}


async def drain(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/cluster/drain`."""
    wanted = await call.body(NodeNamed)
    cluster = _cluster(call)
    cluster.check()
    await cluster.nodes.look()
    node = cluster.me if wanted.node == cluster.me.name else cluster.nodes.others.get(wanted.node)
    if node is None:
        known = ", ".join(f"`{name}`" for name in sorted((*cluster.nodes.others, cluster.me.name)))
        raise ApiRefused(404, f"There is no node `{wanted.node[:80]}` now. There are {known}.")
    return {"node": node.name, "sessions": await cluster.ask(node, {"do": "drain"})}


def _members(node: ClusterNode, ready: bool) -> Mapping[str, Any]:
    return {
        "name": node.name,
        "address": node.address,
        "ready": ready,
        "draining": node.draining,
        "sessions": node.sessions,
        "started_at": node.started_at,
    }


def _cluster(call: ApiCall) -> Cluster:
    if call.exchange.cluster is None:
        raise ApiRefused(409, "This exchange is alone: its file has no section `[cluster]`.")
    return call.exchange.cluster


_NODE = obj(name=TEXT, address=TEXT, ready=FLAG, draining=FLAG, sessions=COUNT, started_at=MOMENT)

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/cluster", status, "observer", "The nodes of the cluster",
        answer=obj(cluster=TEXT, node=TEXT, ready=FLAG, why=TEXT, nodes=array(_NODE)), statuses=(409,),
    ),
    ApiEndpoint(
        "POST", "/api/cluster/drain", drain, "admin", "Let a node go: its sessions move when their turns have ended",
        NodeNamed, answer=obj(node=TEXT, sessions=COUNT), statuses=(404, 409, 503),
    ),
)  # fmt: skip
