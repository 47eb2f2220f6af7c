"""Registering agents, credentials, secrets and rotation, over the API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.owner_world import Person, World
from trunkline.models.discover import usual_model
from trunkline.models.providers import PROVIDERS, SERVICES
from trunkline.wires.sns.codec import token_hash

THREADS = "/api/threads"


async def test_an_owner_registers_an_agent_and_finds_it_again(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    body = {"handle": "Zoë7", "communityId": community["id"], "llmProvider": "openai"}
    status, answer = await world.post("/api/agents/register", body, owner)
    assert status == 200
    assert answer["community"] == {"id": community["id"], "slug": community["slug"], "status": "ACTIVE"}
    assert answer["isExistingKey"] is False
    agent = answer["agent"]
    assert (agent["handle"], agent["llmProvider"], agent["llmModel"]) == ("Zoë7", "OPENAI", usual_model("openai"))
    body["handle"] = "Zoe8"
    status, again = await world.post("/api/agents/register", body, owner)
    assert (again["agent"]["id"], again["isExistingKey"]) == (agent["id"], True)
    _, mine = await world.get("/api/agents/mine", owner)
    [pair] = mine["pairs"]
    assert (pair["handle"], pair["community"]["slug"], pair["hasSecuritySensitive"]) == (
        "Zoe8",
        community["slug"],
        False,
    )
    assert (await world.actions(community["id"]))[-2:] == ["agent.register", "agent.register"]


@pytest.mark.parametrize(
    ("provider", "maker"),
    [(None, "gemini"), ("Anthropic", "anthropic"), ("openai", "openai"), ("LITELLM", "openai"), ("MISTRAL", "mistral")],
)
async def test_without_a_model_an_agent_gets_one_that_is_sold_now(
    world: World, provider: str | None, maker: str
) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    body = {"handle": "Ada", "communityId": community["id"], **({"llmProvider": provider} if provider else {})}
    _, answer = await world.post("/api/agents/register", body, owner)
    # The one table that knows them; that none of it is sold no more is for whoever keeps the table.
    assert answer["agent"]["llmModel"] == usual_model(maker)
    assert answer["agent"]["llmModel"] in {
        *(each.model for each in PROVIDERS.values()),
        *(each.model for each in SERVICES.values()),
    }


async def test_what_a_scripted_agent_writes_carries_no_models_name(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    body = {"handle": "Ada", "communityId": community["id"], "llmProvider": "scripted", "llmModel": "gpt-9"}
    _, answer = await world.post("/api/agents/register", body, owner)
    agent = answer["agent"]
    assert (agent["llmProvider"], agent["llmModel"]) == ("SCRIPTED", "")
    token = await world.runner_token(owner, agent["id"])
    post = {"communityId": community["id"], "title": "t", "body": "b", "type": "DISCUSSION"}
    _, written = await world.write(token, agent["id"], THREADS, post)
    _, _ = await world.write(token, agent["id"], f"{THREADS}/{written['thread']['id']}/comments", {"body": "c"})
    _, shown = await world.get(f"{THREADS}/{written['thread']['id']}")
    assert [each["authorModel"] for each in (shown["thread"], *shown["comments"])] == [None, None]
    _, feed = await world.get("/api/activity/recent")
    assert {each["authorModel"] for each in feed["items"]} == {None}
    general = f"/api/agents/{agent['id']}/general"
    changed = {"handle": "Ada", "llmProvider": "SCRIPTED", "llmModel": "gpt-9"}
    status, answer = await world.ask("PATCH", general, changed, owner)
    assert (status, answer["agent"]["llmModel"]) == (200, "")


async def test_what_is_written_keeps_the_model_that_wrote_it(each_world: World) -> None:
    world = each_world
    owner = await world.owner()
    community = await world.community(owner)
    body = {"handle": "Ada", "communityId": community["id"], "llmProvider": "OPENAI", "llmModel": "first"}
    _, answer = await world.post("/api/agents/register", body, owner)
    id = answer["agent"]["id"]
    token = await world.runner_token(owner, id)
    post = {"communityId": community["id"], "title": "t", "body": "b", "type": "DISCUSSION"}
    _, written = await world.write(token, id, THREADS, post)
    thread = f"{THREADS}/{written['thread']['id']}"
    await world.write(token, id, f"{thread}/comments", {"body": "c"})
    for model in ({"llmModel": "second"}, {"llmProvider": "SCRIPTED"}):
        await world.post("/api/agents/register", {**body, **model}, owner)
        await world.write(token, id, f"{thread}/comments", {"body": str(model)})
    _, shown = await world.get(thread)
    models = [each["authorModel"] for each in (shown["thread"], *shown["comments"])]
    assert models == ["first", "first", "second", None]
    _, feed = await world.get("/api/activity/recent")
    told = [each["authorModel"] for each in feed["items"] if each["authorAgentId"]]
    assert sorted(map(str, told)) == ["None", "first", "first", "second"]


@pytest.mark.parametrize(
    "handle",
    [
        "SYSTEM",
        "System",
        "\u0405\u0443stem",
        "S\u00fdstem",
        "\uff33\uff39\uff33\uff34\uff25\uff2d",
        "SY5T3M",
        "Owner",
        "admin",
    ],
)
async def test_no_agent_passes_for_the_network_itself(world: World, handle: str) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    status, answer = await world.post("/api/agents/register", {"handle": handle, "communityId": community["id"]}, owner)
    assert (status, "reserved" in answer["error"]) == (400, True)
    agent = await world.agent(owner, community["id"])
    change = {"handle": handle, "llmProvider": "OPENAI", "llmModel": "m"}
    assert (await world.ask("PATCH", f"/api/agents/{agent['id']}/general", change, owner))[0] == 400


@pytest.mark.parametrize("provider", ["MYSTERY", "mock", "http://127.0.0.1"])
async def test_a_provider_that_nobody_knows_is_refused_with_those_that_there_are(world: World, provider: str) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    body = {"handle": "Ada", "communityId": community["id"], "llmProvider": provider, "llmModel": "m"}
    for status, answer in (
        await world.post("/api/agents/register", body, owner),
        await world.ask("PATCH", f"/api/agents/{agent['id']}/general", body, owner),
    ):
        assert (status, "llmProvider must be one of ANTHROPIC, BEDROCK, " in answer["error"]) == (400, True)


async def test_the_signature_of_the_fixed_message_and_the_slug_registers_too(world: World) -> None:
    owner, stranger = await world.owner(), Person()
    community = await world.community(owner)
    signature = stranger.sign("24-7-playground" + community["slug"])
    body = {"handle": "Bob", "communityId": community["id"], "signature": signature}
    status, answer = await world.post("/api/agents/register", body)
    assert (status, answer["agent"]["ownerWallet"]) == (200, stranger.wallet)
    status, answer = await world.post(
        "/api/agents/unregister", {"communityId": community["id"], "signature": signature}
    )
    assert (status, answer["ok"]) == (200, True)
    missing = (404, {"error": "Agent is not registered in this community"})
    assert await world.post("/api/agents/unregister", body) == missing


async def test_many_registrations_at_once_make_one_agent(each_world: World) -> None:
    owner = await each_world.owner()
    community = await each_world.community(owner)
    body = {"handle": "Ada", "communityId": community["id"]}
    answers = await asyncio.gather(*(each_world.post("/api/agents/register", body, owner) for _ in range(6)))
    assert {status for status, _ in answers} == {200}
    assert len({answer["agent"]["id"] for _, answer in answers}) == 1


WRONG_REGISTRATIONS: Any = [
    ({"handle": ""}, 400, "handle, signature, and communityId are required"),
    ({"signature": ""}, 400, "handle, signature, and communityId are required"),
    ({"handle": "a b"}, 400, "Handle must contain only letters and numbers (no spaces or special characters)."),
    ({"handle": "a_b"}, 400, "Handle must contain only letters and numbers (no spaces or special characters)."),
    ({"handle": "x" * 41}, 400, "handle must be 40 characters or fewer"),
    ({"llmModel": "m" * 121}, 400, "llmModel must be 120 characters or fewer"),
    ({"communityId": "c" + "0" * 24}, 404, "Community not found"),
    ({"signature": "0x1234"}, 400, "Invalid signature"),
    ({"handle": {"a": 1}}, 400, "A text was expected, not an object or an array"),
    ({"handle": "a\u0000b"}, 400, "Texts must not contain the character U+0000"),
]


async def test_a_registration_that_is_wrong_is_refused(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    good = {"handle": "Ada", "communityId": community["id"], "signature": owner.sign("24-7-playground")}
    for changes, status, error in WRONG_REGISTRATIONS:
        assert await world.post("/api/agents/register", good | changes) == (status, {"error": error}), changes


async def test_a_closed_community_takes_no_agents(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner, "Gone")
    await world.post("/api/communities/close", {"communityId": community["id"], "confirmName": "Gone"}, owner)
    body = {"handle": "Ada", "communityId": community["id"]}
    assert await world.post("/api/agents/register", body, owner) == (403, {"error": "Community is closed"})


async def test_either_proof_suffices_and_a_stale_session_alone_does_not(world: World) -> None:
    owner, stale = await world.owner(), Person()
    community = await world.community(owner)
    stale.token = "0" * 48
    refusal = (401, {"error": "Invalid session"})
    for path in ("register", "unregister"):
        body = {"handle": "A", "communityId": community["id"]}
        assert await world.post(f"/api/agents/{path}", body, stale) == refusal
        signed = body | {"signature": stale.sign("24-7-playground" + community["slug"])}
        status, answer = await world.post(f"/api/agents/{path}", signed, stale)
        assert (status, answer["agent"]["ownerWallet"]) == (200, stale.wallet)


async def test_a_new_credential_kills_the_one_before_it(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    first = await world.runner_token(owner, agent["id"])
    assert first.startswith("rnr_")
    assert len(first) == 68
    [row] = await world.rows("SELECT * FROM runner_credential")
    assert row["token_hash"] == token_hash(first)
    second = await world.runner_token(owner, agent["id"])
    body = {"communityId": community["id"], "title": "t", "body": "b", "type": "DISCUSSION"}
    dead = (401, {"error": "Invalid or revoked runner credential"})
    assert await world.write(first, agent["id"], THREADS, body) == dead
    assert (await world.write(second, agent["id"], THREADS, body))[0] == 200
    place = f"/api/agents/{agent['id']}/runner-credential"
    assert await world.ask("DELETE", place, person=owner) == (200, {"ok": True})
    assert await world.write(second, agent["id"], THREADS, body) == dead


async def test_an_unregistered_agent_cannot_write(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    token = await world.runner_token(owner, agent["id"])
    assert (await world.post("/api/agents/unregister", {"communityId": community["id"]}, owner))[0] == 200
    status, _ = await world.write(token, agent["id"], THREADS, {})
    assert status == 401
    assert await world.get("/api/agents/mine", owner) == (200, {"pairs": []})
    assert (await world.agent(owner, community["id"]))["id"] == agent["id"]


async def test_the_agents_of_others_do_not_exist_for_an_owner(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    place, missing = f"/api/agents/{agent['id']}", (404, {"error": "Agent not found"})
    assert await world.post(f"{place}/runner-credential", None, other) == missing
    assert await world.ask("DELETE", f"{place}/runner-credential", person=other) == missing
    assert await world.get(f"{place}/secrets", other) == missing
    assert await world.post(f"{place}/secrets", {"securitySensitive": {"v": 2}}, other) == missing
    assert await world.get(f"{place}/secrets") == (401, {"error": "Missing session"})


async def test_an_agent_rotates_its_own_credential(each_world: World) -> None:
    owner = await each_world.owner()
    community = await each_world.community(owner)
    agent = await each_world.agent(owner, community["id"])
    old = await each_world.runner_token(owner, agent["id"])
    place = f"/api/agents/{agent['id']}/runner-credential/rotate"
    status, answer = await each_world.write(old, agent["id"], place, {})
    assert (status, answer["agentId"], answer["issuedAt"]) == (200, agent["id"], "2027-01-15T08:00:00.000Z")
    new = answer["runnerToken"]
    assert (await each_world.write(old, agent["id"], place, {}))[0] == 401
    body = {"communityId": community["id"], "title": "t", "body": "b"}
    assert (await each_world.write(new, agent["id"], THREADS, body))[0] == 200
    assert "credential.rotate" in await each_world.actions(community["id"])


async def test_only_the_agent_itself_rotates_its_credential(world: World) -> None:
    owner, other = await world.owner(), await world.owner()
    community = await world.community(owner)
    agent, theirs = await world.agent(owner, community["id"]), await world.agent(other, community["id"], "Eve")
    token = await world.runner_token(owner, agent["id"])
    place = f"/api/agents/{theirs['id']}/runner-credential/rotate"
    assert await world.write(token, agent["id"], place, {}) == (404, {"error": "Agent not found"})
    assert await world.post(place, {}, owner) == (401, {"error": "Missing agent auth headers"})


async def test_encrypted_secrets_are_kept_and_given_back_to_their_owner(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    place = f"/api/agents/{agent['id']}/secrets"
    assert await world.get(place, owner) == (200, {"handle": "Ada", "securitySensitive": None})
    secret = {"v": 2, "iv": "AAECAwQFBgcICQoL", "ciphertext": "c2VjcmV0\u00e4\u0000"}
    assert await world.post(place, {"securitySensitive": secret}, owner) == (200, {"ok": True})
    assert await world.get(place, owner) == (200, {"handle": "Ada", "securitySensitive": secret})
    _, mine = await world.get("/api/agents/mine", owner)
    assert mine["pairs"][0]["hasSecuritySensitive"] is True
    shown = repr(mine) + repr(await world.admin("GET", "agents/list"))
    assert "AAECAwQFBgcICQoL" not in shown


NO_SECRETS: Any = [
    (None, "securitySensitive is required"),
    ({}, "securitySensitive is required"),
    ("text", "securitySensitive must be an object"),
    ([1], "securitySensitive must be an object"),
    ({"llmApiKey": "sk-live"}, "securitySensitive must be encrypted before it is sent"),
    ({"v": 2, "ciphertext": "x" * 70_000}, "securitySensitive must be 65536 characters or fewer"),
]


async def test_secrets_that_are_none_or_open_are_refused(world: World) -> None:
    owner = await world.owner()
    place = f"/api/agents/{(await world.agent(owner, (await world.community(owner))['id']))['id']}/secrets"
    for value, error in NO_SECRETS:
        assert await world.post(place, {"securitySensitive": value}, owner) == (400, {"error": error})
