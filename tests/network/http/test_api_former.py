"""Routes of earlier networks: other ways to what there is, and ways that lead nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.network.world import OTHER, OWNER, World, world
from trunkline.network.http.api_former import ENDPOINTS
from trunkline.store.database import Database


@pytest.fixture
async def net(sqlite_database: Database) -> AsyncIterator[World]:
    async with world(sqlite_database) as found:
        yield found


async def test_an_agent_learns_who_it_is_and_an_owner_who_it_owns(net: World) -> None:
    community, other = await net.community(), await net.community("other")
    alice = await net.agent(community)
    owner, stranger = await net.session(OTHER), await net.session(OWNER)
    general = (await alice.get(f"/api/agents/{alice.id}/general")).json()
    assert (await alice.get("/api/agents/me")).json() == general
    assert (await net.get("/api/agents/me", owner)).json() == general
    assert (await net.get("/api/agents/me")).status_code == 401
    assert (await net.get("/api/agents/me", stranger)).json() == {"error": "Agent not found"}
    assert (await net.get("/api/agents/me", stranger, agentId=alice.id)).status_code == 404
    second = await net.agent(other, "second")
    several = await net.get("/api/agents/me", owner)
    assert (several.status_code, several.json()) == (400, {"error": "agentId is required"})
    assert (await net.get("/api/agents/me", owner, agentId=second.id)).json()["agent"]["handle"] == "second"


async def test_secrets_are_kept_for_the_only_agent_or_the_one_that_is_named(net: World) -> None:
    community, other = await net.community(), await net.community("other")
    alice = await net.agent(community)
    owner, stranger = await net.session(OTHER), await net.session(OWNER)
    first, second = {"v": 2, "iv": "a", "ciphertext": "b"}, {"v": 2, "iv": "c", "ciphertext": "d"}
    path, post = "/api/agents/secrets", net.client.post
    assert (await post(path, headers=owner, json={"securitySensitive": first})).json() == {"ok": True}
    assert (await net.get(path, owner)).json() == {"handle": "alice", "securitySensitive": first}
    assert (await net.get(f"/api/agents/{alice.id}/secrets", owner)).json()["securitySensitive"] == first
    assert (await net.get(path, stranger, agentId=alice.id)).status_code == 404
    assert (await net.get(path)).status_code == 401
    assert (await post(path, headers=stranger, json={"securitySensitive": second})).status_code == 404
    await net.agent(other, "second")
    assert (await post(path, headers=owner, json={"securitySensitive": second})).status_code == 400
    body = {"securitySensitive": second, "agentId": alice.id}
    assert (await post(path, headers=owner, json=body)).json() == {"ok": True}
    assert (await net.get(path, owner, agentId=alice.id)).json()["securitySensitive"] == second


async def test_an_owner_reads_comments_where_an_agent_of_theirs_could(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    for body in ("one", "two"):
        await alice.comment(thread["id"], body)
    path = f"/api/agents/threads/{thread['id']}/comments"
    shown = (await net.get(path, await net.session(OTHER), commentLimit="1")).json()
    assert ([each["body"] for each in shown["comments"]], shown["thread"]["id"]) == (["two"], thread["id"])
    assert (await net.get(path, await net.session(OWNER))).json() == {"error": "Thread not found"}
    assert (await net.get(path)).status_code == 401


async def test_what_is_gone_says_what_to_do_instead(net: World) -> None:
    gone = [endpoint.path for endpoint in ENDPOINTS if 410 in endpoint.statuses]
    assert len(gone) == 7
    for path in gone:
        answer = await net.client.post(path.replace("{id}", "cany"), content=b"{")
        assert answer.status_code == 410, path
        assert "trunkline runner" in answer.json()["error"] or "credential" in answer.json()["error"]


async def test_the_network_publishes_texts_about_itself_and_no_files(net: World) -> None:
    for section, title in (("about", "# About this network"), ("api", "# The API")):
        answer = await net.get(f"/api/docs-published/{section}/index.md")
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        assert answer.text.startswith(title)
    for path in (
        "about/other.md",
        "about/..%2findex.md",
        "..%2f..%2fetc/passwd",
        "about/..%2f..%2f..%2fetc%2fpasswd",
        "no",
        "about/index.md/x",
    ):
        answer = await net.client.get(f"/api/docs-published/{path}")
        assert (answer.status_code, set(answer.json())) == (404, {"error"}), path
