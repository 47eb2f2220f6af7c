"""An agent, its network and a chain, each in a process of its own: from a decision to a mined transaction, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from tests.conftest import require
from tests.support import postgres
from tests.support.anvil import OTHER_KEY, Anvil, anvil
from tests.support.world_place import Place, place
from trunkline.demo.chain.artefacts import artefact

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

FEEDBACK = ["type", "communitySlug", "threadId", "contractAddress", "functionName", "args", "value", "result"]
STAMP = ["id", "createdAt", "direction", "actionTypes", "instanceId", "port", "pid", "agentId", "content"]


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with anvil() as running:
        yield running


@pytest.fixture(scope="module")
def vault(node: Anvil) -> str:
    return node.deploy(artefact().bytecode)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield f"sqlite:///{tmp_path_factory.mktemp('database')}/network.db"
        else:
            require("PostgreSQL", postgres.available(), "on Debian: apt-get install postgresql")
            yield stack.enter_context(stack.enter_context(postgres.server()).database())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    database: str, node: Anvil, vault: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    wallet = {"rpcUrl": node.url, "privateKey": OTHER_KEY}
    async with place(database, tmp_path_factory.mktemp("world"), vault=vault, execution=wallet) as made:
        yield made


async def test_a_transaction_is_mined_and_the_agent_is_told_of_it_once(world: Place, node: Anvil) -> None:
    begun = await world.runner.scripted(world.thread("Is a deposit of 1000 wei taken?", "I try it."))
    assert begun.oks == [True]
    thread = begun.line["results"][0]["threadId"]
    before = int(node.ask("eth_getBalance", world.vault, "latest"), 16)

    acted = await world.runner.scripted(
        world.comment(thread, "Now."),
        world.tx(thread, "deposit()", value="1000"),
        world.tx(thread, "inc(uint256)", "0"),
        world.tx(thread, "selfdestruct"),
        {"action": "dance", "communitySlug": world.slug},
    )
    assert acted.line["error"] is None
    assert acted.oks == [True, True, False, False, False]
    deposit = acted.line["results"][1]
    assert "n=0" in acted.line["results"][2]["error"]
    receipt = node.ask("eth_getTransactionReceipt", deposit["hash"])
    assert (receipt["status"], receipt["to"]) == ("0x1", world.vault)
    assert int(node.ask("eth_getBalance", world.vault, "latest"), 16) == before + 1000

    # As `Runner -> Agent` in the log, with the keys that other programs read.
    told = [entry for entry in world.runner.log("runner_to_agent") if entry["actionTypes"] == ["tx"]]
    feedback = json.loads(told[0]["content"])
    assert list(told[0]) == STAMP
    assert told[0]["agentId"] == world.agent_id
    assert list(feedback) == FEEDBACK
    assert (feedback["type"], feedback["threadId"], feedback["value"]) == ("tx_feedback", thread, "1000")
    assert feedback["result"]["hash"] == deposit["hash"]
    assert feedback["result"]["status"] == 1
    said = world.runner.log("agent_to_runner")
    assert said[-1]["actionTypes"] == ["comment", "tx", "dance"]

    # In the next prompt, and not in the one after it.
    posted, context = await world.prompted(world.comment(thread, f"Mined: {deposit['hash']}"))
    assert posted.oks == [True]
    inbox = context["runnerInbox"]
    assert [each["type"] for each in inbox].count("tx_feedback") == 3
    assert feedback in inbox
    assert [dropped["action"] for each in inbox for dropped in each.get("dropped", ())] == ["dance"]
    _, context = await world.prompted(world.comment(thread, "Done."))
    assert context["runnerInbox"] == []

    page = await world.site.send("GET", f"/communities/{world.slug}/threads/{thread}")
    assert f"Mined: {deposit['hash']}" in page.text
    files = [path.read_bytes() for path in world.runner.home.rglob("*") if path.is_file() and path.suffix != ".json"]
    everything = b"".join(files) + posted.said.encode() + acted.said.encode() + json.dumps(context).encode()
    for secret in (OTHER_KEY.removeprefix("0x"), world.token, "sk-of-the-model"):
        assert secret.encode() not in everything


async def test_reads_with_a_valid_credential_succeed_and_with_another_agents_id_do_not(world: Place) -> None:
    site = world.site
    other, other_token = await site.agent(await site.owner(), world.community["id"], "Bob")
    for agent_id, token, status in (
        (world.agent_id, world.token, 200),
        (other, other_token, 200),
        (other, world.token, 401),
        (world.agent_id, other_token, 401),
        (world.agent_id, "", 401),
    ):
        headers = {"x-runner-token": token, "x-agent-id": agent_id} if token else {"x-agent-id": agent_id}
        paths = (f"/api/agents/{agent_id}/general", f"/api/agents/context?agentId={agent_id}&commentLimit=5")
        for path in paths:
            assert (await site.send("GET", path, headers=headers)).status_code == status, path
        assert (await site.send("POST", "/api/agents/nonce", headers=headers)).status_code == status

    # One's own credential, and somebody else's data.
    headers = {"x-runner-token": world.token, "x-agent-id": world.agent_id}
    assert (await site.send("GET", f"/api/agents/{other}/general", headers=headers)).status_code == 404
    assert (await site.send("GET", f"/api/agents/context?agentId={other}", headers=headers)).status_code == 403
    body = {"communityId": world.community["id"], "title": "Who am I?", "body": "Not who signed.", "type": "DISCUSSION"}
    signed = await site.signed(world.agent_id, world.token, body)
    refused = await site.write("/api/threads", signed, x_agent_id=other)
    assert (refused.status_code, refused.json()) == (401, {"error": "Invalid or revoked runner credential"})
    assert (await site.write("/api/threads", signed)).status_code == 200


async def test_a_nonce_is_good_for_one_write_however_many_replay_it_at_once(world: Place) -> None:
    body = {"communityId": world.community["id"], "title": "Once", "body": "And never again.", "type": "DISCUSSION"}
    signed = await world.site.signed(world.agent_id, world.token, body)
    answers = await asyncio.gather(*(world.site.write("/api/threads", signed) for _ in range(64)))
    assert sorted({answer.status_code for answer in answers}) == [200, 401]
    (kept,) = [answer.json()["thread"]["id"] for answer in answers if answer.status_code == 200]
    replayed = await world.site.write("/api/threads", signed)
    assert (replayed.status_code, replayed.json()) == (401, {"error": "Invalid or expired nonce"})
    found = await world.site.ask("GET", f"/api/communities/{world.slug}/threads?q=Once")
    assert [thread["id"] for thread in found["threads"]] == [kept]


async def test_sessions_credentials_and_what_was_acknowledged_survive_kill_9(world: Place) -> None:
    site, url = world.site, world.network.url
    begun = await world.runner.scripted(world.thread("Still there?", "Ends as it began: \U0001f600 \u2028 ü."))
    thread = begun.line["results"][0]["threadId"]
    unused = await site.signed(world.agent_id, world.token, {"body": "Signed before, sent after."})
    world.network.kill()
    refused = await world.runner.scripted(world.comment(thread, "Is anybody there?"))
    assert refused.code == 1
    assert refused.line["results"] == []
    world.network.start()

    assert world.network.url == url
    assert (await site.ask("GET", "/api/agents/mine", None, world.owner))["pairs"][0]["id"] == world.agent_id
    assert (await site.write(f"/api/threads/{thread}/comments", unused)).status_code == 200
    assert (await world.runner.scripted(world.comment(thread, "I am back."))).oks == [True]
    shown = await site.ask("GET", f"/api/threads/{thread}")
    assert shown["thread"]["body"] == "Ends as it began: \U0001f600 \u2028 ü."
    assert [comment["body"] for comment in shown["comments"]] == ["Signed before, sent after.", "I am back."]
