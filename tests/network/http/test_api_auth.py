"""Signing in with a wallet, over the API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.owner_world import Person, World
from trunkline.base.asgi_answers import Refused
from trunkline.network import challenges, wallets
from trunkline.wires.sns.codec import token_hash

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
WALLET = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
FIXED_SIGNATURE = (
    "0x51b08b9009a019178e2f5208104f5399a55b4bf6af7f347008343e5812564b5c"
    "1b38a2493f3a8f83fe8a337b2af1cd88faaa7112173ebff9e0cba56135b1563c1c"
)
CHALLENGE_SIGNATURE = (
    "0x6c8082901d0487d3f76bb097dd09534000e2f8fe31ed5c74f7ff2eaf3b7146da"
    "5876d7b502b698f11646ae12e4ff3ebb0fe1e2c0ed97ee3c83b1f6508635364d1b"
)


async def test_a_signature_that_another_wallet_program_made_names_its_wallet() -> None:
    assert await wallets.signer("24-7-playground", FIXED_SIGNATURE) == WALLET


async def test_the_text_of_a_challenge_is_the_one_that_other_programs_sign() -> None:
    text = challenges.message("OWNER_LOGIN", WALLET, None, "00112233445566778899aabbccddeeff", 1_771_409_100_000)
    assert text == (
        "Agentic Ethereum: 24-7 Playground\nScope: OWNER_LOGIN\n"
        f"Wallet: {WALLET}\nNonce: 00112233445566778899aabbccddeeff\nExpiresAt: 2026-02-18T10:05:00.000Z"
    )
    assert await wallets.signer(text, CHALLENGE_SIGNATURE) == WALLET


NO_SIGNATURES: Any = [
    "", "0x", "0x12", "hello", FIXED_SIGNATURE[:-2], FIXED_SIGNATURE + "00", FIXED_SIGNATURE[2:],
    FIXED_SIGNATURE[:-2] + "25", FIXED_SIGNATURE[:-2] + "ff", "0x" + "00" * 64 + "1b", "0x" + "ff" * 64 + "1c",
    "0x" + "zz" * 65, "0x" + "1" * 200_000, FIXED_SIGNATURE + "\n", "0x" + "\u0661" * 130,
]  # fmt: skip


async def test_what_is_no_signature_is_refused_in_words() -> None:
    for signature in NO_SIGNATURES:
        with pytest.raises(Refused) as refused:
            await wallets.signer("24-7-playground", signature)
        assert (refused.value.status, refused.value.message) == (400, "Invalid signature"), signature[:200]


async def test_a_signed_challenge_gives_a_session_for_a_day(world: World) -> None:
    owner = await world.owner(KEY)
    assert owner.wallet == WALLET
    assert await world.get("/api/agents/mine", owner) == (200, {"pairs": []})
    world.pass_seconds(24 * 3600 - 1)
    assert (await world.get("/api/agents/mine", owner))[0] == 200
    world.pass_seconds(1)
    assert await world.get("/api/agents/mine", owner) == (401, {"error": "Invalid session"})


async def test_the_database_knows_only_the_hash_of_a_session(world: World) -> None:
    owner = await world.owner()
    [row] = await world.rows("SELECT * FROM owner_session")
    assert owner.token is not None
    assert row["token_hash"] == token_hash(owner.token)
    assert owner.token not in repr(dict(row))


async def test_a_challenge_says_for_whom_it_is_and_until_when(world: World) -> None:
    status, answer = await world.post("/api/auth/owner/challenge", {"walletAddress": WALLET.upper().replace("X", "x")})
    assert status == 200
    challenge = answer["challenge"]
    lines = challenge["message"].split("\n")
    assert lines[:3] == ["Agentic Ethereum: 24-7 Playground", "Scope: OWNER_LOGIN", f"Wallet: {WALLET}"]
    assert len(lines[3]) == len("Nonce: ") + 32
    assert lines[4] == f"ExpiresAt: {challenge['expiresAt']}" == "ExpiresAt: 2027-01-15T08:05:00.000Z"


NO_WALLETS: Any = [
    ({}, "walletAddress is required"),
    (b"{nonsense", "walletAddress is required"),
    ({"walletAddress": 0}, "walletAddress is required"),
    ({"walletAddress": "0x123"}, "Invalid walletAddress"),
    ({"walletAddress": "0x" + "g" * 40}, "Invalid walletAddress"),
    ({"walletAddress": WALLET + "\n00"}, "Invalid walletAddress"),
]


async def test_only_a_wallet_can_be_challenged(world: World) -> None:
    for body, error in NO_WALLETS:
        assert await world.post("/api/auth/owner/challenge", body) == (400, {"error": error}), body


async def test_a_wrong_signature_burns_the_challenge(world: World) -> None:
    person, other = Person(), Person()
    challenge = await world.challenge(person)
    forged = {"challengeId": challenge["id"], "signature": other.sign(challenge["message"])}
    mismatch = (400, {"error": "Signature wallet does not match challenge wallet"})
    assert await world.post("/api/auth/owner/verify", forged) == mismatch
    signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
    burnt = (400, {"error": "Invalid or expired challenge"})
    assert await world.post("/api/auth/owner/verify", signed) == burnt
    challenge = await world.challenge(person)
    garbled = {"challengeId": challenge["id"], "signature": "0x00"}
    assert await world.post("/api/auth/owner/verify", garbled) == (400, {"error": "Invalid signature"})
    garbled["signature"] = person.sign(challenge["message"])
    assert await world.post("/api/auth/owner/verify", garbled) == burnt


async def test_of_many_answers_at_once_one_is_heard(each_world: World) -> None:
    person = Person()
    challenge = await each_world.challenge(person)
    signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
    answers = await asyncio.gather(*(each_world.post("/api/auth/owner/verify", signed) for _ in range(8)))
    assert sorted(status for status, _ in answers) == [200] + [400] * 7


async def test_a_challenge_lasts_five_minutes(world: World) -> None:
    person = Person()
    challenge = await world.challenge(person)
    world.pass_seconds(300)
    signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
    assert await world.post("/api/auth/owner/verify", signed) == (400, {"error": "Invalid or expired challenge"})


async def test_nobody_voids_anothers_challenge_and_nothing_is_kept_of_those_that_nobody_answers(
    each_world: World,
) -> None:
    person = Person()
    first = await each_world.challenge(person)
    # Anybody may ask, in anybody's name, as often as they like.
    for _ in range(30):
        await each_world.challenge(person)
    assert await each_world.rows("SELECT * FROM answered_challenge") == []
    signed = {"challengeId": first["id"], "signature": person.sign(first["message"])}
    assert (await each_world.post("/api/auth/owner/verify", signed))[0] == 200
    assert (await each_world.post("/api/auth/owner/verify", signed))[0] == 400


async def test_a_challenge_outlives_the_server_that_gave_it(world: World) -> None:
    person = Person()
    challenge = await world.challenge(person)
    world.network.seal = None
    signed = {"challengeId": challenge["id"], "signature": person.sign(challenge["message"])}
    assert (await world.post("/api/auth/owner/verify", signed))[0] == 200


async def test_what_is_no_challenge_of_this_network_is_refused_in_words(world: World) -> None:
    person = Person()
    id: str = (await world.challenge(person))["id"]
    said, _, seal = id.partition(".")
    forged = challenges.issue(b"another key", world.now, "OWNER_LOGIN", person.wallet)
    for wrong in (
        "x",
        said,
        f"{said}.",
        f"{said}.{seal[:-1]}",
        f".{seal}",
        f"A{said}.{seal}",
        forged.id,
        "é.é",
        "x" * 10**5,
    ):
        signed = {"challengeId": wrong, "signature": person.sign(forged.message)}
        answer = await world.post("/api/auth/owner/verify", signed)
        assert answer == (400, {"error": "Invalid or expired challenge"}), wrong[:200]
    # One for another purpose is none for this one.
    agent = challenges.issue(await challenges.seal(world.network), world.now, "AGENT_LOGIN", person.wallet, "x")
    signed = {"challengeId": agent.id, "signature": person.sign(agent.message)}
    assert await world.post("/api/auth/owner/verify", signed) == (400, {"error": "Invalid or expired challenge"})
    # Nor is it used up by that.
    assert await world.rows("SELECT * FROM answered_challenge") == []


async def test_old_answers_do_not_pile_up(world: World) -> None:
    for _ in range(12):
        await world.owner()
        world.pass_seconds(200)
    [row] = await world.rows("SELECT COUNT(*) AS n FROM answered_challenge")
    assert row["n"] <= 3


async def test_who_signs_out_is_out(world: World) -> None:
    owner = await world.owner()
    assert await world.post("/api/auth/owner/logout", None, owner) == (200, {"ok": True})
    assert await world.get("/api/agents/mine", owner) == (401, {"error": "Invalid session"})
    assert await world.ask("POST", "/api/auth/owner/logout") == (401, {"error": "Missing session"})
    assert await world.actions() == ["session.begin", "session.end"]


async def test_verifying_says_what_is_missing(world: World) -> None:
    error = {"error": "signature and challengeId are required"}
    assert await world.post("/api/auth/owner/verify", {"signature": "0x1"}) == (400, error)
    assert (await world.post("/api/auth/owner/verify", b"{"))[0] == 400
    unknown = {"challengeId": "c" + "0" * 24, "signature": FIXED_SIGNATURE}
    assert await world.post("/api/auth/owner/verify", unknown) == (400, {"error": "Invalid or expired challenge"})


async def test_the_owner_of_an_agent_signs_in_through_its_community(world: World) -> None:
    owner = await world.owner()
    community = await world.community(owner)
    agent = await world.agent(owner, community["id"])
    asked = {"walletAddress": owner.wallet, "communitySlug": community["slug"]}

    async def answered(slug: str) -> tuple[int, dict[str, Any]]:
        _, given = await world.post("/api/auth/challenge", asked)
        challenge = given["challenge"]
        assert f"\nCommunity: {community['slug']}\n" in challenge["message"]
        signature = owner.sign(challenge["message"])
        body = {"challengeId": challenge["id"], "signature": signature, "communitySlug": slug}
        return await world.post("/api/auth/verify", body)

    status, answer = await answered(community["slug"])
    assert status == 200
    assert (answer["walletAddress"], answer["agent"]["id"]) == (owner.wallet, agent["id"])
    assert "securitySensitive" not in answer["agent"]
    owner.token = answer["token"]
    assert (await world.get("/api/agents/mine", owner))[0] == 200
    assert await answered("other") == (400, {"error": "Challenge community mismatch"})
    await world.post("/api/agents/unregister", {"communityId": community["id"]}, owner)
    unregistered = (404, {"error": "SNS API key is not registered for this pair"})
    assert await answered(community["slug"]) == unregistered
    missing = {"walletAddress": owner.wallet, "communitySlug": "nowhere"}
    assert await world.post("/api/auth/challenge", missing) == (404, {"error": "Community not found"})
