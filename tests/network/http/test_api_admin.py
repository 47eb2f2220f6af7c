"""What the administrator may do, over the API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.owner_world import Person, World
from trunkline.network import removal
from trunkline.store.database import Database, Transaction


async def test_nobody_is_an_administrator_without_the_key(world: World, sqlite_database: Database) -> None:
    denied = (401, {"error": "Unauthorized"})
    for method, path in (
        ("GET", "agents/list"), ("POST", "agents/unregister"), ("GET", "communities/list"),
        ("POST", "communities/delete"), ("GET", "policies"), ("POST", "policies"),
    ):  # fmt: skip
        assert await world.ask(method, f"/api/admin/{path}") == denied
        assert await world.ask(method, f"/api/admin/{path}", headers={"x-admin-key": "no"}) == denied
    world.network.settings = world.network.settings.replace(admin_key=None)
    assert await world.ask("GET", "/api/admin/policies", headers={"x-admin-key": ""}) == denied


async def test_the_administrator_sees_everything_but_secrets(each_world: World) -> None:
    owner = await each_world.owner()
    community = await each_world.community(owner)
    agent = await each_world.agent(owner, community["id"])
    await each_world.runner_token(owner, agent["id"])
    status, answer = await each_world.admin("GET", "agents/list")
    [listed] = answer["agents"]
    assert (status, listed["id"], listed["isRegistered"], listed["hasRunnerCredential"]) == (
        200,
        agent["id"],
        True,
        True,
    )
    assert listed["community"]["slug"] == community["slug"]
    [row] = await each_world.rows("SELECT token_hash FROM runner_credential")
    assert row["token_hash"] not in repr(answer)
    status, answer = await each_world.admin("GET", "communities/list")
    [shown] = answer["communities"]
    assert (shown["id"], shown["contractCount"], shown["threadCount"], shown["agentCount"]) == (
        community["id"],
        1,
        1,
        1,
    )
    second = await each_world.community(owner, "Second")
    _, page = await each_world.admin("GET", "communities/list?limit=1")
    assert (page["hasMore"], page["nextAfter"]) == (True, community["id"])
    _, page = await each_world.admin("GET", f"communities/list?limit=1&after={community['id']}")
    assert (page["communities"][0]["id"], page["hasMore"]) == (second["id"], False)


async def test_a_removed_agent_leaves_nothing_behind(each_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "ROWS", 2)
    owner, other = await each_world.owner(), await each_world.owner()
    community = await each_world.community(owner)
    agent, stays = (
        await each_world.agent(owner, community["id"], "Gone"),
        await each_world.agent(other, community["id"]),
    )
    gone, here = await each_world.runner_token(owner, agent["id"]), await each_world.runner_token(other, stays["id"])

    async def said(token: str, by: dict[str, Any], path: str, **body: Any) -> dict[str, Any]:
        status, answer = await each_world.write(token, by["id"], path, body)
        assert status == 200, answer
        written: dict[str, Any] = answer.get("thread") or answer["comment"]
        return written

    thread = {"communityId": community["id"], "title": "topic"}
    kept = await said(here, stays, "/api/threads", body="remaining", **thread)
    lost = await said(gone, agent, "/api/threads", body="vanishing", **thread)
    for number in range(4):
        await said(gone, agent, "/api/threads", body=f"vanishing {number}", **thread)
    await said(here, stays, f"/api/threads/{lost['id']}/comments", body="lost with its thread")
    await said(gone, agent, f"/api/threads/{kept['id']}/comments", body="vanishing remark")
    await said(here, stays, f"/api/threads/{kept['id']}/comments", body="lasting remark")

    status, answer = await each_world.admin("POST", "agents/unregister", {"agentId": agent["id"]})
    assert (status, answer["ok"], answer["agent"]["handle"]) == (200, True, "Gone")
    for table in ("agent_nonce", "runner_credential", "registration", "thread", "comment"):
        assert await each_world.rows(f"SELECT * FROM {table} WHERE agent_id = ?", agent["id"]) == [], table
    assert await each_world.get("/api/agents/mine", owner) == (401, {"error": "Invalid session"})
    assert (await each_world.get("/api/agents/mine", other))[0] == 200
    [row] = await each_world.rows("SELECT comment_count FROM thread WHERE id = ?", kept["id"])
    assert row["comment_count"] == 1
    place = f"/api/communities/{community['slug']}/threads?q="
    assert (await each_world.get(f"{place}vanishing"))[1]["threads"] == []
    assert [entry["id"] for entry in (await each_world.get(f"{place}lasting"))[1]["threads"]] == [kept["id"]]
    assert "agent.delete" in await each_world.actions(community["id"])


async def test_a_removed_community_leaves_nothing_behind(each_world: World) -> None:
    owner = await each_world.owner()
    community, other = await each_world.community(owner), await each_world.community(owner, "Other")
    agent = await each_world.agent(owner, community["id"])
    token = await each_world.runner_token(owner, agent["id"])
    thread = {"communityId": community["id"], "title": "t", "body": "b"}
    await each_world.write(token, agent["id"], "/api/threads", thread)
    status, answer = await each_world.admin("POST", "communities/delete", {"slug": community["slug"]})
    gone = {"id": community["id"], "slug": community["slug"], "name": community["name"]}
    assert (status, answer) == (200, {"ok": True, "community": gone})
    for table in ("thread", "comment", "service_contract", "registration", "ban"):
        assert await each_world.rows(f"SELECT * FROM {table} WHERE community_id = ?", community["id"]) == [], table
    assert [row["id"] for row in await each_world.rows("SELECT id FROM community")] == [other["id"]]
    assert len(await each_world.rows("SELECT thread_id FROM thread_text")) == 1
    unassigned = (404, {"error": "Community not found"})
    assert await each_world.write(token, agent["id"], "/api/threads", thread) == unassigned


async def test_what_is_to_be_removed_must_be_named_clearly(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    community = await world.community(owner)
    for person in (owner, other):
        await world.agent(person, community["id"], "Twin")
    unregister = "agents/unregister"
    assert await world.admin("POST", unregister, {}) == (
        400, {"error": "agentId, handle, or ownerWallet is required"},
    )  # fmt: skip
    assert await world.admin("POST", unregister, {"agentId": "cnone"}) == (404, {"error": "Agent not found"})
    several = (409, {"error": "Several agents match: name the one that is meant by agentId"})
    assert await world.admin("POST", unregister, {"handle": "Twin"}) == several
    assert (await world.admin("POST", unregister, {"ownerWallet": other.wallet.upper()}))[0] == 200
    delete = "communities/delete"
    assert await world.admin("POST", delete, {}) == (400, {"error": "communityId or slug is required"})
    assert await world.admin("POST", delete, {"slug": "no"}) == (404, {"error": "Community not found"})


async def test_text_limits_are_changed_while_the_network_runs(each_world: World) -> None:
    owner = await each_world.owner()
    community = await each_world.community(owner)
    _, before = await each_world.admin("GET", "policies")
    assert before["textLimits"]["agent"]["handle"] == 40
    status, after = await each_world.admin("POST", "policies", {"textLimits": {"agent": {"handle": 3}}})
    assert (status, after["textLimits"]["agent"]["handle"], after["textLimits"]["thread"]["title"]) == (200, 3, 180)
    body = {"handle": "Four", "communityId": community["id"]}
    too_long = (400, {"error": "handle must be 3 characters or fewer"})
    assert await each_world.post("/api/agents/register", body, owner) == too_long
    await each_world.admin("POST", "policies", {"textLimits": {"agent": {"handle": 4}, "comment": {"body": 9}}})
    assert (await each_world.post("/api/agents/register", body, owner))[0] == 200
    assert (await each_world.actions()).count("policy.change") == 2


async def test_a_policy_that_is_none_is_refused_and_a_damaged_one_is_told(world: World) -> None:
    whole = "textLimits: `agent.handle` must be a whole number from 1 to 200000"
    wrong: list[tuple[Any, str]] = [
        (None, "textLimits must be an object of groups"),
        ({"nothing": {}}, "textLimits: `nothing` is not a group of limits"),
        ({"agent": 3}, "textLimits: `agent` is not a group of limits"),
        ({"agent": {"age": 3}}, "textLimits: `agent` has no limit `age`"),
        *(({"agent": {"handle": value}}, whole) for value in (0, 200_001, 1.5, "9", True, None, 1e400)),
    ]
    for limits, error in wrong:
        body = json.dumps({"textLimits": limits}).replace("Infinity", "1e400").encode()
        assert await world.admin("POST", "policies", body) == (400, {"error": error}), limits

    def damage(tx: Transaction) -> None:
        tx.execute("INSERT INTO policy_setting (name, value, updated_at) VALUES ('SNS_TEXT_LIMITS', '[', 0)")

    await world.network.database.write(damage)
    broken = (503, {"error": "Text limit policy is invalid."})
    wish = {"handle": "A", "communityId": "c", "signature": Person().sign("x")}
    assert await world.post("/api/agents/register", wish) == broken
