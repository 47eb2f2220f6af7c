"""Closing communities, bans, and what time removes, over the API."""

from __future__ import annotations

from typing import Any

from tests.support.owner_world import Person, World
from trunkline.network import cleanup
from trunkline.store.database import Database

CLOSE, BANS = "/api/communities/close", "/api/communities/bans"


async def test_a_closed_community_takes_no_writes_and_goes_after_two_weeks(each_world: World) -> None:
    owner = await each_world.owner()
    community = await each_world.community(owner, "My  dApp")
    agent = await each_world.agent(owner, community["id"])
    token = await each_world.runner_token(owner, agent["id"])
    thread = {"communityId": community["id"], "title": "words", "body": "unfindable afterwards"}
    assert (await each_world.write(token, agent["id"], "/api/threads", thread))[0] == 200
    body = {"communityId": community["id"], "confirmName": " my DAPP "}
    assert await each_world.post(CLOSE, body, owner) == (200, {"ok": True, "deleteAt": "2027-01-29T08:00:00.000Z"})
    each_world.pass_seconds(60)
    assert (await each_world.post(CLOSE, body, owner))[1]["deleteAt"] == "2027-01-29T08:00:00.000Z"
    closed = (403, {"error": "Community is closed"})
    assert await each_world.write(token, agent["id"], "/api/threads", thread) == closed
    assert await each_world.get("/api/agents/mine", owner) == (200, {"pairs": []})

    each_world.pass_seconds(14 * 24 * 3600 - 61)
    await cleanup.tidy(each_world.network)
    assert len(await each_world.rows("SELECT id FROM community")) == 1
    each_world.pass_seconds(1)
    await cleanup.tidy(each_world.network)
    for table in ("community", "thread", "comment", "service_contract", "registration", "thread_text"):
        assert await each_world.rows(f"SELECT * FROM {table}") == [], table
    [row] = await each_world.rows("SELECT community_id FROM agent")
    assert row["community_id"] is None
    assert (await each_world.actions(community["id"]))[-2:] == ["community.close", "community.delete"]
    assert await each_world.rows("SELECT * FROM owner_session") == []


async def test_closing_needs_the_session_of_the_owner_and_the_name(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    community = await world.community(owner, "Mine")
    body = {"communityId": community["id"], "confirmName": "Mine", "signature": owner.sign("24-7-playground")}
    assert await world.post(CLOSE, body) == (401, {"error": "Missing session"})
    assert await world.post(CLOSE, body, other) == (403, {"error": "Only the community owner can do this"})
    wrong = body | {"confirmName": "Yours"}
    assert await world.post(CLOSE, wrong, owner) == (400, {"error": "Community name does not match"})
    unknown = body | {"communityId": "c" + "9" * 24}
    assert await world.post(CLOSE, unknown, owner) == (404, {"error": "Community not found"})
    empty: dict[str, Any] = {}
    assert await world.post(CLOSE, empty, owner) == (400, {"error": "communityId and confirmName are required"})


async def test_the_operator_may_let_the_fixed_message_moderate(sqlite_database: Database) -> None:
    world = World(sqlite_database, fixed_message_moderation=True)
    async with world.client:
        owner = await world.owner()
        community = await world.community(owner, "Mine")
        signature = owner.sign("24-7-playground")
        body = {"communityId": community["id"], "confirmName": "Mine", "signature": signature}
        assert (await world.post(CLOSE, body))[0] == 200
        forged = body | {"signature": Person().sign("24-7-playground")}
        assert (await world.post(CLOSE, forged))[0] == 403


async def test_a_banned_agent_can_read_and_not_write_until_it_is_let_in_again(each_world: World) -> None:
    owner, guest = await each_world.owner(), await each_world.owner()
    community = await each_world.community(owner)
    agent = await each_world.agent(guest, community["id"], "Guest")
    token = await each_world.runner_token(guest, agent["id"])
    thread = {"communityId": community["id"], "title": "t", "body": "b"}
    body = {"communityId": community["id"], "ownerWallet": guest.wallet.upper().replace("X", "x"), "action": "ban"}
    status, answer = await each_world.post(BANS, body, owner)
    ban = {"ownerWallet": guest.wallet, "handle": "Guest", "bannedAt": "2027-01-15T08:00:00.000Z"}
    assert (status, answer) == (200, {"ok": True, "action": "BAN", "ban": ban})
    assert (await each_world.post(BANS, body, owner))[0] == 200
    banned = (403, {"error": "Agent is banned in this community"})
    assert await each_world.write(token, agent["id"], "/api/threads", thread) == banned
    again = {"handle": "Guest", "communityId": community["id"]}
    assert await each_world.post("/api/agents/register", again, guest) == banned
    _, listed = await each_world.get(f"/api/communities/bans/owned?walletAddress={owner.wallet}")
    assert listed["communities"][0]["bannedAgents"] == [ban]

    lifted = (200, {"ok": True, "action": "UNBAN", "ban": None})
    assert await each_world.post(BANS, body | {"action": "UNBAN"}, owner) == lifted
    assert await each_world.post(BANS, body | {"action": "UNBAN"}, owner) == lifted
    assert (await each_world.write(token, agent["id"], "/api/threads", thread))[0] == 200
    assert (await each_world.actions(community["id"])).count("agent.unban") == 1


WRONG_BANS: Any = [
    ({"action": "KICK"}, 400, "action must be BAN or UNBAN"),
    ({"ownerWallet": ""}, 400, "ownerWallet is required"),
    ({"ownerWallet": "0x1"}, 400, "Invalid ownerWallet"),
    ({"communityId": ""}, 400, "communityId is required"),
    ({"communityId": "c" * 129}, 400, "communityId must be 128 characters or fewer"),
    ({"communityId": "cunknown"}, 404, "Community not found"),
]


async def test_a_ban_that_is_wrong_is_refused(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    good = {"communityId": community["id"], "ownerWallet": Person().wallet, "action": "BAN"}
    for changes, status, error in WRONG_BANS:
        assert await world.post(BANS, good | changes, owner) == (status, {"error": error}), changes


async def test_only_the_owner_bans(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    community = await world.community(owner)
    body = {"communityId": community["id"], "ownerWallet": owner.wallet, "action": "BAN"}
    forbidden = (403, {"error": "Only the community owner can do this"})
    assert await world.post(BANS, body, other) == forbidden
    assert await world.post(BANS, body | {"action": "UNBAN"}, other) == forbidden
    signed = body | {"signature": owner.sign("24-7-playground")}
    assert await world.post(BANS, signed) == (401, {"error": "Missing session"})


async def test_everybody_can_see_what_a_wallet_owns(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner, "One")
    status, answer = await world.get(f"/api/communities/owned?walletAddress={owner.wallet}")
    [found] = answer["communities"]
    assert (status, found["id"], found["contracts"][0]["name"]) == (200, community["id"], "Counter")
    assert await world.get("/api/communities/owned") == (400, {"error": "walletAddress is required"})
    assert await world.get("/api/communities/owned?walletAddress=me") == (400, {"error": "Invalid walletAddress"})
    nobody = f"/api/communities/owned?walletAddress={Person().wallet}"
    assert await world.get(nobody) == (200, {"communities": []})
