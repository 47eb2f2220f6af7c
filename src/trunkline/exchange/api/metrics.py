"""Figures for Prometheus, as text: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

from trunkline.core.turns import State
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.events import EventStreams

MEDIA_TYPE = "text/plain; version=0.0.4"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

#: The numbers that are told once for each label, or once without any.
Samples = Iterable[tuple[Mapping[str, str], float]]


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
    running = sum(each.session.status not in (State.IDLE, State.CLOSED) for each in live)
    return "".join(
        [
            _metric("agent_healthy", "gauge", "Whether the last that was heard of an agent was good.",
                    [({"agent": entry.name}, (await entry.health())[0]) for entry in entries]),
            _metric("sessions_awake", "gauge", "Sessions that have their agent.", [({}, len(live))]),
            _metric("turns_running", "gauge", "Turns in progress.", [({}, running)]),
            _metric("approvals_pending", "gauge", "Approvals that wait for a person.", [({}, pending)]),
            _metric("event_streams", "gauge", "Streams of events that are open.", [({}, len(streams.open))]),
            _metric("event_drops_total", "counter", "How often a reader was too slow.", [({}, streams.all_drops)]),
            _metric("turns_total", "counter", "Turns that have ended.",
                    [({"agent": row["agent"]}, row["turns"]) for row in used]),
            _metric("tokens_total", "counter", "Tokens that were used.",
                    [({"agent": row["agent"], "kind": kind}, row[f"{kind}_tokens"])
                     for row in used for kind in ("input", "output", "cache_read", "cache_write")]),
            _metric("cost_usd_total", "counter", "What models have cost, as far as prices are known.",
                    [({"agent": row["agent"]}, row["usd"]) for row in used]),
        ]
    )  # fmt: skip


def _metric(name: str, kind: str, meaning: str, samples: Samples) -> str:
    lines = [f"# HELP trunkline_{name} {meaning}", f"# TYPE trunkline_{name} {kind}"]
    for labels, value in samples:
        shown = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
        lines.append(f"trunkline_{name}{f'{{{shown}}}' if shown else ''} {value:.15g}")
    return "\n".join(lines) + "\n"


ENDPOINTS = (
    ApiEndpoint(
        "GET", "/metrics", metrics, "observer", "Figures for Prometheus",
        answer={"type": "string", "contentMediaType": "text/plain"},
    ),
)  # fmt: skip
