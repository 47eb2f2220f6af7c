"""Figures of an exchange, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from trunkline.base.prometheus import MEDIA_TYPE, metric
from trunkline.core.turns import State
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.events import EventStreams
from trunkline.models import model_server


async def metrics(call: ApiCall) -> Any:
    """`GET /metrics`."""
    return Response(await _text(call), media_type=MEDIA_TYPE)


async def _text(call: ApiCall) -> str:
    exchange = call.exchange
    streams: EventStreams = call.request.app.state.streams
    live = exchange.switchboard.at_work
    entries = exchange.directory.entries
    used = await exchange.budgets.usage("agent")
    pending = await exchange.switchboard.approvals.count_pending()
    # What another node has is counted there.
    ours = [each for each in live if not each.is_followed]
    running = sum(each.session.status not in (State.IDLE, State.CLOSED) for each in ours)
    cluster = exchange.cluster
    nodes = [] if cluster is None else [*cluster.nodes.others.values(), cluster.me]
    return "".join(
        [
            *([metric("cluster_node_up", "gauge", "Whether a node of the cluster is alive, as this one sees it.",
                       [({"node": node.name}, node is not cluster.me or cluster.nodes.is_held) for node in nodes]),
               metric("sessions_owned", "gauge", "Sessions whose turns this node runs.", [({}, len(cluster.owned))]),
               metric("sessions_followed", "gauge", "Sessions of other nodes that clients here watch.",
                       [({}, len(live) - len(ours))]),
               metric("cluster_wire_served", "gauge", "Chat platforms that this node serves for all.",
                       [({"wire": wire}, 1) for wire in cluster.wires])] if cluster is not None else []),
            metric("wire_up", "gauge", "Whether a wire that has a section of the file is served by this process.",
                    [({"wire": name}, name in exchange.reached) for name in exchange.settings.wires]),
            metric("agent_healthy", "gauge", "Whether the last that was heard of an agent was good.",
                    [({"agent": entry.name}, (await entry.health())[0]) for entry in entries]),
            metric("sessions_awake", "gauge", "Sessions that have their agent.", [({}, len(ours))]),
            metric("turns_running", "gauge", "Turns in progress.", [({}, running)]),
            metric("approvals_pending", "gauge", "Approvals that wait for a person.", [({}, pending)]),
            metric("event_streams", "gauge", "Streams of events that are open.", [({}, len(streams.open))]),
            metric("event_drops_total", "counter", "How often a reader was too slow.", [({}, streams.all_drops)]),
            metric("turns_total", "counter", "Turns that have ended.",
                    [({"agent": row["agent"]}, row["turns"]) for row in used]),
            metric("tokens_total", "counter", "Tokens that were used.",
                    [({"agent": row["agent"], "kind": kind}, row[f"{kind}_tokens"])
                     for row in used for kind in ("input", "output", "cache_read", "cache_write")]),
            metric("cost_usd_total", "counter", "What models have cost, as far as prices are known.",
                    [({"agent": row["agent"]}, row["usd"]) for row in used]),
            *_model_servers(),
        ]
    )  # fmt: skip


def _model_servers() -> Iterator[str]:
    """What is known of the servers of models: nothing where no model has one."""
    found = model_server.servers()
    if not found:
        return
    # Nobody looks whether one works that nobody uses.
    used = [each for each in found if each.users]
    for name, kind, meaning, samples in (
        ("up", "gauge", "Whether a server of a model that is in use works.", [(each, each.up) for each in used]),
        ("inflight", "gauge", "Requests that a server of a model is answering.",
         [(each, each.in_flight) for each in found]),
        ("requests_total", "counter", "Requests that were sent to a server of a model.",
         [(each, each.requests) for each in found]),
        ("failures_total", "counter", "Requests at which a server of a model failed.",
         [(each, each.failures) for each in found]),
    ):  # fmt: skip
        labelled = [({"server": each.place, "model": each.model}, value) for each, value in samples]
        yield metric(f"model_server_{name}", kind, meaning, labelled)
    yield metric(
        "model_requests_waiting", "gauge", "Requests that wait for a server of their model.",
        [({"model": model}, count) for model, count in model_server.waiting().items()],
    )  # fmt: skip


ENDPOINTS = (
    ApiEndpoint(
        "GET", "/metrics", metrics, "observer", "Figures for Prometheus",
        answer={"type": "string", "contentMediaType": "text/plain"},
    ),
)  # fmt: skip
