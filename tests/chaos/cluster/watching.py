"""Those who do not talk: who watches a session over SSE, on any node, and who answers what is asked, twice at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx

from tests.chaos.cluster.clients.wire import PAUSE_SECONDS, TRY_SECONDS, Choose
from tests.chaos.cluster.hearing import name_of
from tests.chaos.cluster.history import ClientView, History
from trunkline.exchange.api.event_form import NAMES

KINDS = {name: kind.__name__ for kind, name in NAMES.items()}
#: How often is looked for something to answer.
LOOK_SECONDS = 0.3
_OK = 200


async def watch(http: httpx.AsyncClient, session: str, view: ClientView, choose: Choose) -> None:
    """Watch a session, and go on after the last number that was seen, on any node; until cancelled."""
    last = 0
    while True:
        with suppress(httpx.HTTPError, OSError):
            url = f"{choose().url}/api/sessions/{session}/events"
            timeout = httpx.Timeout(TRY_SECONDS, read=TRY_SECONDS)
            async with http.stream("GET", url, params={"since": last}, timeout=timeout) as answer:
                if answer.status_code == _OK:
                    async for kind, data in _events(answer):
                        last = max(last, _seen(view, kind, data))
        await asyncio.sleep(PAUSE_SECONDS)


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: ") and name != "gap":
            yield KINDS[name], json.loads(line[6:])


def _seen(view: ClientView, kind: str, data: dict[str, Any]) -> int:
    seq: int = data["seq"]
    view.saw(seq, kind, data.get("msg_id") or data.get("text") or data.get("call_id"))
    if kind == "TurnStarted":
        view.turns[name_of(data.get("msg_id"), data["message"])] = data["turn"]
    elif kind == "TurnEnded":
        view.ends.setdefault(data["turn"], time.monotonic())
    return seq


async def approve(http: httpx.AsyncClient, history: History, choose: Choose) -> None:
    """Say yes to everything, until cancelled."""
    while True:
        with suppress(httpx.HTTPError, OSError):
            found = await http.get(f"{choose().url}/api/approvals", params={"state": "pending"})
            for approval in found.json()["approvals"] if found.status_code == _OK else ():
                # Two at once, on two nodes: one of them is told that the other was faster.
                answers = await asyncio.gather(
                    *(_decide(http, choose, approval["id"]) for _ in range(2)), return_exceptions=True
                )
                call = f"{approval['turn']} {approval['call_id']}"
                count = sum(answer == _OK for answer in answers)
                history.clients[approval["session"]].answered += [call] * count
        await asyncio.sleep(LOOK_SECONDS)


async def _decide(http: httpx.AsyncClient, choose: Choose, id: str) -> int:
    answer = await http.post(f"{choose().url}/api/approvals/{id}", json={"decision": "approve"})
    return answer.status_code
