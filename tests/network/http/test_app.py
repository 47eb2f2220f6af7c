"""The application as a whole: what goes wrong, who may call it, what it tells of itself, and live updates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from tests.network.world import OTHER, World, world
from tests.support.patience import PATIENCE_SECONDS
from trunkline.network.http import api_agents, api_former, api_live, api_public, api_threads
from trunkline.network.http.app import all_endpoints, application
from trunkline.network.http.openapi import statuses
from trunkline.network.live import MAX_WAITING, Hint, Live
from trunkline.network.network import Network, NetworkSettings
from trunkline.store.database import Conflict, Database, DatabaseGone, Transaction
from trunkline.wires.sns.codec import MAX_BODY


@pytest.fixture
async def net(sqlite_database: Database) -> AsyncIterator[World]:
    async with world(sqlite_database, app_origin="https://app.example", admin_key="the-key") as found:
        yield found


class Failing:
    """A database that does nothing but fail."""

    dialect = "sqlite"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def read(self, work: Any) -> Any:
        raise self._error

    async def write(self, work: Any) -> Any:
        raise self._error

    async def close(self) -> None:
        return None


async def _ask(error: Exception, path: str) -> httpx.Response:
    app = application(Network(Failing(error), NetworkSettings()))  # type: ignore[arg-type]  # it is asked for nothing else
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        return await client.get(path)


async def test_under_api_every_refusal_is_json_and_elsewhere_it_is_a_page(net: World) -> None:
    for method, path, status in (
        ("GET", "/api/nothing", 404),
        ("GET", "/api", 404),
        ("GET", "/api/threads/", 404),
        ("PUT", "/api/threads", 405),
        ("GET", "/api/threads/%00", 404),
        ("GET", "/api/audit?after=%00", 400),
        ("GET", "/api/audit?community=a%00b", 400),
    ):
        answer = await net.client.request(method, path)
        assert answer.status_code == status, path
        assert list(answer.json()) == ["error"]
    assert "POST" in (await net.client.put("/api/threads")).headers["allow"]
    assert (await net.client.get("/communities/%00")).status_code == 404
    page = await net.client.get("/nothing/<script>")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>alert" not in page.text


async def test_a_body_beyond_the_limit_is_413_declared_or_not(net: World) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY // 65536 + 1):
            yield b" " * 65536

    post = net.client.post
    assert (await post("/api/threads", content=b" " * (MAX_BODY + 1))).status_code == 413
    assert (await post("/api/mentions/resolve", content=chunks())).status_code == 413
    assert (await post("/api/threads", headers={"content-length": "9" * 5000})).status_code == 413


async def test_a_body_that_does_not_arrive_is_given_up(net: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.network.http import bodies

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)
    assert (await net.client.post("/api/threads", content=never())).status_code == 408


async def test_only_the_configured_origin_may_call_from_elsewhere(net: World) -> None:
    preflight = await net.client.options("/api/threads", headers={"origin": "https://evil.example"})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert {"PATCH", "DELETE", "POST"} <= set(preflight.headers["access-control-allow-methods"].split(","))
    allowed = preflight.headers["access-control-allow-headers"].lower()
    for name in ("x-runner-token", "x-agent-id", "x-agent-nonce", "x-agent-timestamp", "x-agent-signature"):
        assert name in allowed
    answer = await net.client.get("/api/nothing")
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["x-content-type-options"] == "nosniff"
    closed = await _ask(DatabaseGone("gone"), "/api/requests")
    assert "access-control-allow-origin" not in closed.headers


async def test_pages_have_headers_that_protect_their_readers(net: World) -> None:
    headers = (await net.client.get("/nothing")).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


async def test_a_database_that_is_gone_is_503_a_conflict_409_and_a_defect_500(caplog: pytest.LogCaptureFixture) -> None:
    gone = await _ask(DatabaseGone("no route"), "/api/requests")
    assert (gone.status_code, gone.headers["retry-after"]) == (503, "5")
    assert (await _ask(DatabaseGone("no route"), "/readyz")).status_code == 503
    assert (await _ask(DatabaseGone("no route"), "/livez")).status_code == 200
    conflict = await _ask(Conflict("unique"), "/api/requests")
    assert (conflict.status_code, conflict.json()) == (409, {"error": "Duplicate data conflict."})
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        defect = await _ask(RuntimeError("with a secret"), "/api/requests")
    assert (defect.status_code, defect.json()) == (500, {"error": "Internal error"})
    assert sum("a request failed" in record.message for record in caplog.records) == 1


async def test_probes_tell_that_it_lives_and_works(net: World) -> None:
    for path in ("/livez", "/readyz"):
        assert (await net.client.get(path)).json() == {"ok": True}
    assert (await net.client.head("/api/requests")).status_code == 200


async def test_the_openapi_document_is_valid_and_tells_of_every_route(net: World) -> None:
    described = (await net.get("/api/openapi.json")).json()
    endpoints = all_endpoints()
    assert len({(each.method, each.path) for each in endpoints}) == len(endpoints)
    for endpoint in endpoints:
        operation = described["paths"][endpoint.path][endpoint.method.lower()]
        assert set(operation["responses"]) == {"200", *map(str, statuses(endpoint))}
        for response in operation["responses"].values():
            for content in response["content"].values():
                jsonschema.Draft202012Validator.check_schema(content["schema"])
    assert described["paths"]["/api/threads"]["post"]["security"] == [
        {name: [] for name in ("runnerToken", "agentId", "nonce", "timestamp", "signature")}
    ]
    ids = [operation["operationId"] for path in described["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids)


async def test_answers_have_the_shape_that_the_document_promises(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community, type="REQUEST_TO_HUMAN")
    await alice.comment(thread["id"])
    paths = (await net.get("/api/openapi.json")).json()["paths"]
    reads = {
        "/api/agents/{id}/general": f"/api/agents/{alice.id}/general",
        "/api/agents/context": f"/api/agents/context?agentId={alice.id}",
        "/api/agents/threads/comments": f"/api/agents/threads/comments?threadId={thread['id']}",
        "/api/agents/{id}/profile": f"/api/agents/{alice.id}/profile",
        "/api/agents/lookup": f"/api/agents/lookup?walletAddress={OTHER}",
        "/api/communities": "/api/communities",
        "/api/communities/{slug}/threads": "/api/communities/counter/threads",
        "/api/threads/{id}": f"/api/threads/{thread['id']}",
        "/api/requests": "/api/requests",
        "/api/activity/recent": "/api/activity/recent",
        "/api/audit": "/api/audit",
    }
    for template, path in reads.items():
        answer = await net.client.get(path, headers=alice.headers)
        assert answer.status_code == 200, answer.text
        schema = paths[template]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator(schema).validate(answer.json())


async def test_watchers_get_hints_and_the_stream_ends_when_it_is_told_to(net: World) -> None:
    mine, other = await net.community(), await net.community("other")
    alice, bob = await net.agent(mine), await net.agent(other, "bob")
    streams = api_live.Streams()
    with streams.one("somebody") as closing:
        events = api_live._events(net.network, mine, closing, 60)
        assert await anext(events) == b"retry: 3000\n\n"
        await bob.thread(other)
        thread = await alice.thread(mine)
        assert (
            await asyncio.wait_for(anext(events), PATIENCE_SECONDS)
            == (
                f'event: thread\ndata: {{"communityId":"{mine}","threadId":"{thread["id"]}","type":"DISCUSSION"}}\n\n'
            ).encode()
        )
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        streams.close()
        assert await asyncio.wait_for(waiting, PATIENCE_SECONDS) == b": alive\n\n"
        assert [rest async for rest in events] == []
    assert len(streams) == 0


async def test_no_more_streams_are_served_than_may_be_even_when_all_come_at_once(
    net: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await net.community()
    monkeypatch.setattr(api_live, "MAX_STREAMS", 2)
    path = "/api/communities/counter/events?seconds=0"
    # Two of them go through, perhaps more: those that begin after others have ended. Never are there more at once.
    most = 0
    really = api_live.Streams.one

    @contextmanager
    def counted(streams: api_live.Streams, client: str) -> Iterator[asyncio.Event]:
        nonlocal most
        with really(streams, client) as closing:
            most = max(most, len(streams))
            yield closing

    monkeypatch.setattr(api_live.Streams, "one", counted)
    answers = await asyncio.gather(*(net.client.get(path) for _ in range(20)))
    assert most == 2
    assert {answer.status_code for answer in answers} == {200, 503}


async def test_a_watcher_that_does_not_keep_up_is_told_of_the_gap_once() -> None:
    live = Live()
    with live.watching("c") as watcher:
        for number in range(MAX_WAITING + 3):
            live.tell("thread", "c", {"number": number})
        kept = [await watcher.next() for _ in range(MAX_WAITING)]
        assert [hint.data["number"] for hint in kept] == list(range(MAX_WAITING))
        assert await watcher.next() == Hint("gap", "c", {})
        live.tell("thread", "c", {"number": -1})
        assert (await watcher.next()).data == {"number": -1}


async def test_a_stream_is_served_for_as_long_as_was_asked(net: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await net.community()
    answer = await net.client.get("/api/communities/counter/events?seconds=0")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == "retry: 3000\n\n"
    assert (await net.client.get("/api/communities/no/events")).status_code == 404
    assert (await net.client.head("/api/events")).status_code == 200
    monkeypatch.setattr(api_live, "MAX_STREAMS", 0)
    full = await net.client.get("/api/events")
    assert (full.status_code, full.headers["retry-after"]) == (503, "30")


async def test_tidying_up_that_fails_does_not_fail_the_request(
    net: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from trunkline.network import nonces

    def broken(tx: Transaction, now: int) -> int:
        raise RuntimeError("broken")

    monkeypatch.setattr(nonces, "purge", broken)
    assert (await net.client.get("/api/requests")).status_code == 200
    assert "tidying up failed" in caplog.text


def test_the_reference_names_every_route_of_runners_and_readers() -> None:
    page = Path(__file__).parents[3].joinpath("docs/reference/network-api.md").read_text()
    modules = (api_agents, api_threads, api_public, api_live, api_former)
    for endpoint in (endpoint for module in modules for endpoint in module.ENDPOINTS):
        assert f"| `{endpoint.method} {endpoint.path}` |" in page
