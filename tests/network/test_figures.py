"""What a network tells of itself, for Prometheus."""

from __future__ import annotations

import asyncio

import pytest

from tests.network.world import OWNER, World, world
from trunkline.network import figures
from trunkline.network.ids import new_id
from trunkline.store.database import Database, DatabaseGone

BANNED = "0x" + "c3" * 20


async def told(net: World) -> list[str]:
    """The samples."""
    text = await net.network.figures.text(net.network)
    return [line.removeprefix("trunkline_network_") for line in text.splitlines() if not line.startswith("#")]


async def test_what_there_is_and_what_was_written_is_counted(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    await net.agent(community, "bob", OWNER)
    thread = await alice.thread(community)
    await alice.comment(thread["id"])
    await net.execute(
        "INSERT INTO delivery (id, community_id, event, body, created_at, next_at) VALUES (?, ?, 'e', '{}', 1, 1)",
        new_id(), community,
    )  # fmt: skip
    with net.network.live.watching():
        found = await told(net)
    counts = ["database_up 1", "agents 2", "communities 1", "deliveries_waiting 1", "live_pages 1"]
    assert found[:5] == counts
    assert {'writes_total{kind="thread"} 1', 'writes_total{kind="comment"} 1'} <= set(found)
    assert "live_pages 0" in await told(net)


async def test_requests_are_counted_by_how_they_were_answered(lite: World) -> None:
    for path, host in (("/livez", "localhost"), ("/nowhere", "localhost"), ("/livez", "evil.example")):
        await lite.get(path, {"host": host})
    assert [line for line in await told(lite) if line.startswith("requests_total")] == [
        'requests_total{status="2xx"} 1',
        'requests_total{status="3xx"} 0',
        'requests_total{status="4xx"} 2',
        'requests_total{status="5xx"} 0',
    ]


async def test_what_is_refused_to_runners_is_counted_by_its_reason(sqlite_database: Database) -> None:
    async with world(sqlite_database, writes_per_minute=1) as net:
        community = await net.community()
        alice, banned = await net.agent(community), await net.agent(community, "bob", BANNED)
        await net.execute("INSERT INTO ban (community_id, owner_wallet, banned_at) VALUES (?, ?, 1)", community, BANNED)
        body = {"communityId": community, "title": "t", "body": "b"}
        used = await alice.signed(body)
        sent = (
            (await alice.send("POST", "/api/threads", body, used), 200),
            (await alice.send("POST", "/api/threads", body, used), 401),
            (await alice.send("POST", "/api/threads", body), 429),
            (await alice.send("POST", "/api/threads", body, await alice.signed({})), 401),
            (await alice.send("POST", "/api/threads", body, alice.headers), 401),
            (await banned.send("POST", "/api/threads", body), 403),
            (await net.client.post("/api/agents/nonce", headers=alice.headers | {"x-runner-token": "wrong"}), 401),
            # Nothing that a runner did wrong.
            (await net.get("/api/threads/none"), 404),
        )
        assert [answer.status_code for answer, _ in sent] == [status for _, status in sent]
        assert [line for line in await told(net) if line.startswith("refused_total")] == [
            'refused_total{reason="credential"} 1',
            'refused_total{reason="nonce"} 1',
            'refused_total{reason="signature"} 2',
            'refused_total{reason="banned"} 1',
            'refused_total{reason="rate_limit"} 1',
        ]


@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "silent"])
async def test_a_database_that_does_not_answer_is_told_and_takes_nothing_else_away(
    lite: World, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(work: object) -> None:
        if hangs:
            await asyncio.Event().wait()
        raise DatabaseGone("it is away")

    monkeypatch.setattr(figures, "DATABASE_SECONDS", 0.01)
    monkeypatch.setattr(lite.network.database, "read", read)
    found = await told(lite)
    assert found[:2] == ["database_up 0", "live_pages 0"]
    assert 'requests_total{status="5xx"} 0' in found
