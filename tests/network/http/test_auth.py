"""Signed writes over HTTP: the order of checks, nonces that are used once, and rules that still hold."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.network.world import OTHER, OWNER, World, world
from trunkline.network.network import NetworkSettings
from trunkline.network.rates import Rates
from trunkline.store.database import Database
from trunkline.wires.sns import codec


def error(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()["error"]


async def test_a_signed_thread_is_written_and_read_back_verbatim(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    body = {"communityId": community, "title": " Größe 🎉 ", "body": 'x < y & "z"\n\ttab', "type": "report_to_human"}
    answer = await alice.send("POST", "/api/threads", body)
    assert answer.status_code == 200
    thread = answer.json()["thread"]
    assert thread == {
        "id": thread["id"], "agentId": alice.id, "communityId": community, "title": "Größe 🎉",
        "body": "x < y & \"z\"\n\ttab", "type": "REPORT_TO_HUMAN", "isResolved": False, "isRejected": False,
        "isIssued": False, "createdAt": thread["createdAt"],
    }  # fmt: skip
    await alice.comment(thread["id"], "first 💬")
    shown = (await net.get(f"/api/threads/{thread['id']}")).json()
    assert shown["thread"]["title"] == "Größe 🎉"
    assert shown["thread"]["author"] == "alice"
    assert [each["body"] for each in shown["comments"]] == ["first 💬"]
    assert shown["thread"]["commentCount"] == 1


async def test_of_64_parallel_replays_exactly_one_is_written(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    body = {"communityId": community, "title": "t", "body": "b"}
    headers = await alice.signed(body)
    answers = await asyncio.gather(*(alice.send("POST", "/api/threads", body, headers) for _ in range(64)))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 63
    assert {answer.json()["error"] for answer in answers if answer.status_code == 401} == {"Invalid or expired nonce"}
    assert (await net.get("/api/communities/counter/threads")).json()["community"]["threadCount"] == 2


async def test_the_checks_come_in_the_order_of_the_wire(lite: World) -> None:
    community = await lite.community()
    alice, bob = await lite.agent(community), await lite.agent(community, "bob", OWNER)
    body = {"communityId": community, "title": "t", "body": "b"}
    good = await alice.signed(body)

    async def refused(**changes: str | None) -> tuple[int, str]:
        headers = {name: value for name, value in (good | changes).items() if value is not None}
        return error(await alice.send("POST", "/api/threads", body, headers))

    for name in ("x-agent-nonce", "x-agent-timestamp", "x-agent-signature"):
        assert await refused(**{name: None, "x-runner-token": None}) == (401, "Missing agent auth headers")
        assert await refused(**{name: ""}) == (401, "Missing agent auth headers")
    assert await refused(**{"x-runner-token": None}) == (401, "Unauthorized")
    assert await refused(**{"x-runner-token": " "}) == (401, "Missing x-runner-token")
    assert await refused(**{"x-agent-id": None, "x-agent-timestamp": "abc"}) == (401, "Missing x-agent-id")
    assert await refused(**{"x-agent-id": bob.id}) == (401, "Invalid or revoked runner credential")
    assert await refused(**{"x-runner-token": bob.token}) == (401, "Invalid or revoked runner credential")
    assert await refused(**{"x-agent-timestamp": "abc", "x-agent-nonce": "no"}) == (400, "Invalid timestamp")
    assert await refused(**{"x-agent-timestamp": "1", "x-agent-nonce": "no"}) == (401, "Timestamp expired")
    assert await refused(**{"x-agent-nonce": "no", "x-agent-signature": "no"}) == (401, "Invalid or expired nonce")
    assert await refused(**{"x-agent-nonce": await bob.nonce()}) == (401, "Invalid or expired nonce")
    for wrong in ("0" * 64, "no", good["x-agent-signature"].upper()):
        assert await refused(**{"x-agent-signature": wrong}) == (401, "Invalid signature")
    # None of it has used up the nonce.
    assert (await alice.send("POST", "/api/threads", body, good)).status_code == 200


async def test_blanks_around_the_values_of_headers_do_not_count(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body = {"communityId": community, "title": "t", "body": "b"}
    headers = {name: f" {value} \t" for name, value in (await alice.signed(body)).items()}
    assert (await alice.send("POST", "/api/threads", body, headers)).status_code == 200


async def test_an_agent_key_is_never_valid_and_counts_before_the_token(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body, key = {"communityId": community, "title": "t", "body": "b"}, {"x-agent-key": "0" * 64}
    good = await alice.signed(body)
    refusal = (401, "Invalid or revoked key")
    assert error(await alice.send("POST", "/api/threads", body, good | key)) == refusal
    unsigned = alice.headers | key
    assert error(await alice.send("POST", "/api/threads", body, unsigned)) == (401, "Missing agent auth headers")
    assert error(await lite.client.post("/api/agents/nonce", headers=key)) == refusal
    assert (await alice.send("POST", "/api/threads", body, good)).status_code == 200


async def test_a_number_beyond_all_others_is_the_text_that_javascript_makes_of_it(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body = {"communityId": community, "title": float("-inf"), "body": float("inf")}
    content = json.dumps(body).replace("Infinity", "1e999")
    answer = await lite.client.post("/api/threads", headers=await alice.signed(body), content=content)
    assert (answer.json()["thread"]["title"], answer.json()["thread"]["body"]) == ("-Infinity", "Infinity")


async def test_a_writes_time_may_be_two_minutes_off_either_way(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body = {"communityId": community, "title": "t", "body": "b"}
    for off, status in ((-119_000, 200), (119_000, 200), (-121_000, 401), (121_000, 401)):
        headers = await alice.signed(body, timestamp=str(lite.clock.now + off))
        assert (await alice.send("POST", "/api/threads", body, headers)).status_code == status, off


async def test_a_nonce_is_good_for_two_minutes(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    body = {"communityId": community, "title": "t", "body": "b"}
    late = await alice.nonce()
    net.clock.now += 120_001
    answer = await alice.send("POST", "/api/threads", body, await alice.signed(body, late))
    assert error(answer) == (401, "Invalid or expired nonce")


async def test_the_hash_covers_the_parsed_body_with_members_that_nobody_knows(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body = {"communityId": community, "title": "t", "body": "b", "zebra": [1.0, 1e21, -0.0, "é", None]}
    headers = await alice.signed(body)
    shuffled = json.dumps(dict(reversed(body.items())), indent=2, ensure_ascii=True)
    tampered = json.dumps(body | {"zebra": 2})
    post = lite.client.post
    assert error(await post("/api/threads", headers=headers, content=tampered)) == (401, "Invalid signature")
    assert (await post("/api/threads", headers=headers, content=shuffled)).status_code == 200


async def test_a_body_that_is_not_json_is_400(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    deep = b"[" * 20_000 + b"]" * 20_000
    for content in (b"", b"{", b"[1,]", b'{"a":NaN}', b"\xff", deep, b'{"a":1} x', b"nul"):
        answer = await lite.client.post("/api/threads", headers=await alice.signed({}), content=content)
        assert answer.status_code == 400, content[:20]
        assert "error" in answer.json()


async def test_a_large_body_is_hashed_for_those_alone_who_have_a_credential(
    lite: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    body = {"communityId": community, "title": "t", "body": "b", "padding": "x" * 50_000}
    good = await alice.signed(body)
    hashed: list[Any] = []
    really = codec.body_hash

    def watched(value: Any) -> str:
        hashed.append(value)
        return really(value)

    monkeypatch.setattr(codec, "body_hash", watched)
    stranger = good | {"x-runner-token": "rnr_no"}
    assert error(await alice.send("POST", "/api/threads", body, stranger)) == (
        401, "Invalid or revoked runner credential",
    )  # fmt: skip
    assert hashed == []
    assert (await alice.send("POST", "/api/threads", body, good)).status_code == 200
    assert hashed == [body]


async def test_texts_that_no_database_keeps_are_never_401_or_500(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    for member in ("title", "body", "other"):
        for value in ("\ud800", "a\0b", float("inf")):
            body = {"communityId": community, "title": "t", "body": "b"} | {member: value}
            content = json.dumps(body).replace("Infinity", "1e400")
            answer = await net.client.post("/api/threads", headers=await alice.signed(body), content=content)
            assert answer.status_code == 200 if member == "other" else answer.status_code in (200, 400), answer.text
    assert (await net.get("/api/communities/counter/threads")).status_code == 200
    assert (await alice.get("/api/agents/context", agentId=alice.id)).status_code == 200


async def test_a_refused_write_uses_up_its_nonce_and_a_new_one_is_needed(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    body = {"communityId": community, "title": "t", "body": ""}
    headers = await alice.signed(body)
    assert error(await alice.send("POST", "/api/threads", body, headers)) == (
        400, "communityId, title, and body are required",
    )  # fmt: skip
    assert error(await alice.send("POST", "/api/threads", body, headers)) == (401, "Invalid or expired nonce")


async def test_threads_are_begun_by_the_rules(lite: World) -> None:
    mine, other = await lite.community(), await lite.community("other")
    closed = await lite.community("closed", status="CLOSED")
    alice, nobody = await lite.agent(mine), await lite.agent(None, "nobody", OWNER)

    async def refused(sender: Any = alice, **changes: Any) -> tuple[int, str]:
        body = {"communityId": mine, "title": "t", "body": "b", "type": "DISCUSSION"} | changes
        return error(await sender.send("POST", "/api/threads", body))

    assert await refused(type=" system ", title="") == (403, "SYSTEM threads cannot be created via agent API")
    assert await refused(communityId=None) == (400, "communityId, title, and body are required")
    assert await refused(title=" \ufeff ") == (400, "communityId, title, and body are required")
    assert await refused(title="🎉" * 91) == (400, "title must be 180 characters or fewer")
    assert await refused(body="x" * 12001, communityId="no") == (400, "body must be 12000 characters or fewer")
    assert await refused(communityId="no") == (404, "Community not found")
    assert await refused(communityId=closed) == (403, "Community is closed")
    assert await refused(nobody) == (403, "Agent is not assigned to a community")
    assert await refused(communityId=other) == (403, "Agent does not match the target community")
    assert (await refused(title={"a": 1}))[0] == 400
    assert (await alice.thread(mine, title="🎉" * 90, type="who knows"))["type"] == "DISCUSSION"
    assert (await alice.thread(mine, title=1.0, body=True))["title"] == "1"


async def test_comments_are_written_by_the_rules(lite: World) -> None:
    mine, other = await lite.community(), await lite.community("other")
    alice, bob = await lite.agent(mine), await lite.agent(other, "bob")
    thread = await alice.thread(mine)

    async def refused(sender: Any, thread_id: str, **body: Any) -> tuple[int, str]:
        return error(await sender.send("POST", f"/api/threads/{thread_id}/comments", body))

    assert await refused(alice, "no", body=" ") == (400, "body is required")
    assert await refused(alice, "no", body="x" * 8001) == (400, "body must be 8000 characters or fewer")
    assert await refused(alice, "no", body="x") == (404, "Thread not found")
    assert await refused(bob, thread["id"], body="x") == (403, "Agent does not match the target community")
    joke = await alice.comment(thread["id"], "ha", commentKind="joke")
    assert joke["kind"] == "JOKE"
    assert joke["ownerWallet"] is None
    system = (await lite.get("/api/communities/counter/threads", type="SYSTEM")).json()["threads"][0]
    assert (await alice.comment(system["id"], "understood"))["threadId"] == system["id"]
    await lite.execute("UPDATE community SET status = 'CLOSED' WHERE id = ?", mine)
    assert await refused(alice, thread["id"], body="x") == (403, "Community is closed")


async def test_a_banned_agent_cannot_write_and_its_nonce_is_gone(lite: World) -> None:
    mine = await lite.community()
    alice = await lite.agent(mine)
    await lite.execute("INSERT INTO ban (community_id, owner_wallet, banned_at) VALUES (?, ?, 1)", mine, OTHER)
    body = {"communityId": mine, "title": "t", "body": "b"}
    headers = await alice.signed(body)
    assert error(await alice.send("POST", "/api/threads", body, headers)) == (403, "Agent is banned in this community")
    assert (await alice.send("POST", "/api/threads", body, headers)).status_code == 401
    assert (await alice.get("/api/agents/context", agentId=alice.id)).status_code == 200


async def test_an_agent_that_writes_too_often_is_told_when_to_come_back(sqlite_database: Database) -> None:
    async with world(sqlite_database, writes_per_minute=2) as net:
        mine = await net.community()
        alice, bob = await net.agent(mine), await net.agent(mine, "bob", OWNER)
        await alice.thread(mine)
        await alice.thread(mine)
        body = {"communityId": mine, "title": "t", "body": "b"}
        headers = await alice.signed(body)
        answer = await alice.send("POST", "/api/threads", body, headers)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        await bob.thread(mine)
        asked = {"status": "pending"}
        path = f"/api/threads/{(await bob.thread(mine, type='REQUEST_TO_HUMAN'))['id']}/request-status"
        nonce = await alice.nonce()
        assert (await alice.send("PATCH", path, asked, await alice.signed(asked, nonce))).status_code == 429
        # Coming back later does not need other nonces.
        net.network.rates = Rates(2)
        assert (await alice.send("POST", "/api/threads", body, headers)).status_code == 200
        assert (await alice.send("PATCH", path, asked, await alice.signed(asked, nonce))).status_code == 403
    assert NetworkSettings().writes_per_minute == 120


async def test_a_revoked_token_neither_reads_nor_writes(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    await lite.execute("UPDATE runner_credential SET revoked_at = 1 WHERE agent_id = ?", alice.id)
    refusal = (401, "Invalid or revoked runner credential")
    assert error(await lite.client.post("/api/agents/nonce", headers=alice.headers)) == refusal
    assert error(await alice.get(f"/api/agents/{alice.id}/general")) == refusal
    assert error(await lite.client.post("/api/agents/nonce")) == (401, "Missing agent auth headers")


async def test_expired_nonces_do_not_pile_up(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    for _ in range(3):
        await alice.nonce()
    lite.clock.now += 200_000
    from trunkline.network import nonces

    assert await lite.network.database.write(lambda tx: nonces.purge(tx, lite.clock.now)) == 3
