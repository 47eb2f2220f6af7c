"""What runners and everybody else read: threads, lists, search, the audit trail, agents."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.network.world import ABI, OTHER, World, world
from trunkline.network import audit, user_errors
from trunkline.network.open_database import open_database
from trunkline.network.threads import insert_comment
from trunkline.store.database import Database, Transaction


@pytest.fixture
async def lite(sqlite_database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with world(sqlite_database, home=str(tmp_path / "home")) as found:
        yield found


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def _lines(home: str) -> str:
    [file] = Path(home, "logs").iterdir()
    return file.read_text()


async def test_the_source_of_a_contract_is_read_by_id_or_address(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    await lite.community("other")
    [mine] = (await alice.get("/api/agents/context", agentId=alice.id)).json()["context"]["communities"]
    contract = mine["contracts"][0]
    path = "/api/agents/contracts/source"
    assert error(await alice.get(path)) == (400, "contractId or contractAddress is required")
    both = {"contractId": contract["id"], "contractAddress": contract["address"]}
    assert error(await alice.get(path, **both)) == (400, "Provide either contractId or contractAddress, not both.")
    assert error(await alice.get(path, contractId="no")) == (404, "Contract not found in assigned community.")
    for query in ({"contractId": contract["id"]}, {"contractAddress": contract["address"].upper()}):
        found = (await alice.get(path, **query)).json()["contract"]
        assert (found["source"], found["abi"], found["name"]) == ({"a.sol": "x"}, ABI, "Counter")


async def test_general_is_read_by_the_runner_and_changed_by_the_owner(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    path, owner = f"/api/agents/{alice.id}/general", await lite.session(OTHER)
    found = (await alice.get(path)).json()
    assert found["agent"]["llmModel"] == "gemini-1.5-flash-002"
    assert found["community"]["slug"] == "counter"
    assert error(await alice.get("/api/agents/other/general")) == (404, "Agent not found")
    assert error(await lite.get(path, await lite.session())) == (404, "Agent not found")
    assert error(await lite.get(path)) == (401, "Missing session")

    async def change(**body: Any) -> httpx.Response:
        return await lite.client.patch(path, headers=owner, json=body)

    required = "handle, llmProvider, and llmModel are required"
    assert error(await change(handle="x")) == (400, required)
    letters = "Handle must contain only letters and numbers (no spaces or special characters)."
    assert error(await change(handle="a b", llmProvider="openai", llmModel="m")) == (400, letters)
    long = "handle must be 40 characters or fewer"
    assert error(await change(handle="x" * 41, llmProvider="openai", llmModel="m")) == (400, long)
    changed = (await change(handle="zoë9", llmProvider="litellm", llmModel="m")).json()
    assert (changed["agent"]["llmProvider"], changed["agent"]["llmBaseUrl"]) == ("LITELLM", None)
    changed = (await change(handle="zoë9", llmProvider="litellm", llmModel="m", llmBaseUrl="http://l/v1//")).json()
    assert changed["agent"]["llmBaseUrl"] == "http://l/v1"
    assert (await alice.get(path)).json()["agent"]["handle"] == "zoë9"
    changed = (await change(handle="zoë9", llmProvider="openai", llmModel="m", llmBaseUrl="http://l/v1")).json()
    assert (changed["agent"]["llmProvider"], changed["agent"]["llmBaseUrl"]) == ("OPENAI", None)
    assert (await lite.client.patch(path, headers=alice.headers, json={})).status_code == 401


async def test_everybody_may_look_up_agents_and_sees_no_secret(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)
    await lite.execute("UPDATE agent SET security_sensitive = 'CIPHER'")
    profile = await lite.get(f"/api/agents/{alice.id}/profile")
    assert profile.json()["agent"]["ownerWallet"] == OTHER
    assert profile.json()["agent"]["registeredAt"].endswith("Z")
    assert error(await lite.get("/api/agents/no/profile")) == (404, "Agent not found.")
    looked = await lite.get(
        "/api/agents/lookup", walletAddress=OTHER.upper().replace("0X", "0x"), communityId=community
    )
    assert looked.json()["agent"]["id"] == alice.id
    assert looked.json()["community"]["slug"] == "counter"
    assert error(await lite.get("/api/agents/lookup")) == (400, "walletAddress is required")
    assert error(await lite.get("/api/agents/lookup", walletAddress="0x1")) == (404, "Agent not found")
    assert "CIPHER" not in profile.text + looked.text


async def test_a_long_thread_is_read_in_parts(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)

    def many(tx: Transaction) -> None:
        for number in range(205):
            insert_comment(
                tx, net.clock.now, thread_id=thread["id"], community_id=community, body=f"c{number}", agent_id=alice.id
            )

    await net.network.database.write(many)
    first = (await net.get(f"/api/threads/{thread['id']}")).json()
    assert [each["body"] for each in first["comments"]] == [f"c{number}" for number in range(200)]
    rest = (await net.get(f"/api/threads/{thread['id']}", after=first["nextAfter"])).json()
    assert [each["body"] for each in rest["comments"]] == [f"c{number}" for number in range(200, 205)]
    assert (rest["hasMore"], rest["nextAfter"]) == (False, None)
    assert (await net.get(f"/api/threads/{thread['id']}", after="no")).status_code == 400
    assert error(await net.get("/api/threads/no")) == (404, "Thread not found.")


async def test_names_are_found_in_every_script_without_regard_to_case(net: World) -> None:
    community = await net.community()
    await net.execute("UPDATE community SET name = 'Привет Äpfel' WHERE id = ?", community)
    beetle = await net.agent(community, "Жук")
    thread = await beetle.thread(community, type="REQUEST_TO_HUMAN")
    for query in ("привет", "ПРИВЕТ", "äpf", "ÄPFEL"):
        assert len((await net.get("/api/communities", q=query)).json()["communities"]) == 1, query
    for query in ("жук", "ЖУ"):
        found = (await net.get("/api/communities/counter/threads", q=query)).json()["threads"]
        assert [each["id"] for each in found] == [thread["id"]], query
        assert len((await net.get("/api/requests", q=query)).json()["threads"]) == 1, query


async def test_threads_are_found_by_their_words(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community, "Alicia")
    rounding = await alice.thread(community, title="Deposit rounding", body="Größe of fee-on-transfer_x")
    chinese = await alice.thread(community, title="合约漏洞报告", body="b", type="REPORT_TO_HUMAN")
    await alice.comment(chinese["id"], "overflow in uint256")

    async def found(q: str, **query: Any) -> set[str]:
        answer = await net.get("/api/communities/counter/threads", q=q, **query)
        assert answer.status_code == 200, q
        return {each["id"] for each in answer.json()["threads"]}

    both = {rounding["id"], chinese["id"]}
    for query in ("deposit", "ROUND", "deposit rounding", "rounding deposit", "große", "fee-on", "transfer"):
        assert await found(query) == {rounding["id"]}, query
    for query in ("漏洞", "overflow", "uint", "合约 overflow", chinese["id"][:24]):
        assert await found(query) == {chinese["id"]}, query
    assert await found("lici") == both
    assert await found("", type="report_to_human,nonsense") == {chinese["id"]}
    assert len(await found("system")) == 1
    for hostile in ('"', "*", "NEAR(", "a AND", "' OR 1=1 --", "-", "%", "_", "\\", ":*", "^a", "a:b", "!", "\ud800é"):
        safe = hostile.encode("utf-8", "replace").decode()
        assert await found(safe) & both in (set(), both, {rounding["id"]}, {chinese["id"]})
    assert await found("nothing like it") == set()
    assert await found("x" * 5000) == set()


async def test_lists_go_on_where_they_ended(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    made = [(await alice.thread(community, body="x" * 300))["id"] for _ in range(5)]
    seen: list[str] = []
    before = ""
    for _ in range(4):
        page = (await net.get("/api/communities/counter/threads", limit="2", before=before)).json()
        seen += [each["id"] for each in page["threads"]]
        before = page["nextBefore"] or ""
        if not before:
            break
    assert seen[:5] == made[::-1]
    assert len(seen) == 6
    shown = (await net.get("/api/communities/counter/threads", limit="1")).json()["threads"][0]
    assert (len(shown["body"]), shown["hasMoreBody"]) == (281, True)
    assert (await net.get("/api/communities/counter/threads", before="no")).status_code == 400
    assert error(await net.get("/api/communities/no/threads")) == (404, "Community not found.")


async def test_requests_reports_and_communities_are_listed_with_filters(net: World) -> None:
    mine, other = await net.community(), await net.community("vault", OTHER)
    alice, bob = await net.agent(mine), await net.agent(other, "bob")
    asked = await alice.thread(mine, type="REQUEST_TO_HUMAN")
    rejected = await bob.thread(other, type="REQUEST_TO_HUMAN")
    report = await bob.thread(other, type="REPORT_TO_HUMAN")
    await net.client.patch(
        f"/api/threads/{rejected['id']}/request-status", json={"status": "rejected"}, headers=await net.session(OTHER)
    )

    async def ids(path: str, **query: Any) -> list[str]:
        return [each["id"] for each in (await net.get(path, **query)).json()["threads"]]

    assert await ids("/api/requests") == [rejected["id"], asked["id"]]
    assert await ids("/api/requests", status="pending") == [asked["id"]]
    assert await ids("/api/requests", status="rejected") == [rejected["id"]]
    assert await ids("/api/requests", status="resolved") == []
    assert await ids("/api/requests", owner=OTHER) == [rejected["id"]]
    assert await ids("/api/requests", q="BOB") == [rejected["id"]]
    assert await ids("/api/reports") == [report["id"]]
    assert await ids("/api/reports", issued="true") == []
    listed = (await net.get("/api/communities")).json()["communities"]
    assert [(each["slug"], each["threadCount"], each["agentCount"]) for each in listed] == [
        ("vault", 3, 1), ("counter", 2, 1),
    ]  # fmt: skip
    assert len((await net.get("/api/communities", q="vau%")).json()["communities"]) == 0
    assert len((await net.get("/api/communities", q="VAU")).json()["communities"]) == 1
    newest = (await net.get("/api/activity/recent", limit="1")).json()["items"]
    assert newest[0]["key"] == f"thread:{report['id']}"


async def test_a_reader_of_the_audit_trail_misses_nothing_that_is_committed_late(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    begun, go_on = threading.Event(), threading.Event()

    def late(tx: Transaction) -> None:
        audit.record(tx, 1, "system", "late", "test", community_id="c")
        begun.set()
        assert go_on.wait(10)

    try:
        writing = asyncio.ensure_future(database.write(late))
        await asyncio.to_thread(begun.wait, 10)
        await database.write(lambda tx: audit.record(tx, 1, "system", "early", "test", community_id="c"))
        first = await database.read(lambda tx: audit.entries(tx))
        assert [entry["actor"] for entry in first["entries"]] == ["early"]
        go_on.set()
        await writing
        rest = await database.read(lambda tx: audit.entries(tx, after=first["nextAfter"]))
        assert [entry["actor"] for entry in rest["entries"]] == ["late"]
    finally:
        go_on.set()
        await database.close()


async def test_everything_that_was_done_is_in_the_audit_trail(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    comment = await alice.comment(thread["id"])
    trail = (await net.get("/api/audit", community="counter")).json()
    assert [(each["actor"], each["action"], each["subject"]) for each in trail["entries"]] == [
        (alice.id, "thread.create", thread["id"]), (alice.id, "comment.create", comment["id"]),
    ]  # fmt: skip
    assert trail["entries"][1]["detail"] == {"threadId": thread["id"]}
    after = trail["entries"][0]["number"]
    assert len((await net.get("/api/audit", after=str(after))).json()["entries"]) == 1
    assert (await net.get("/api/audit", community="no")).status_code == 404


async def test_ids_in_texts_become_links(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    comment = await alice.comment(thread["id"])
    ids = [thread["id"], comment["id"], "c" + "0" * 24, "no", 7, {"a": 1}]
    answer = await net.client.post("/api/mentions/resolve", json={"ids": ids})
    href = f"/communities/counter/threads/{thread['id']}"
    assert answer.json()["links"] == {
        thread["id"]: {"type": "thread", "href": href},
        comment["id"]: {"type": "comment", "href": f"{href}#comment-{comment['id']}"},
    }
    for content in (b"{}", b'{"ids": 1}'):
        assert (await net.client.post("/api/mentions/resolve", content=content)).json() == {"links": {}}
    for content in (b"", b"{", b"[]", b'{"ids": [],}'):
        assert (await net.client.post("/api/mentions/resolve", content=content)).status_code == 400


async def test_errors_of_browsers_are_kept_cut_and_without_secrets(
    lite: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "rnr_" + "ab" * 32
    report = {
        "source": "page",
        "message": f"failed with {token} " + "x" * 5000,
        "context": {"key": "sk-ant-0123456789", "sent": "Bearer 0123456789abcdef", "then": "kept"},
    }
    send = lite.client.post
    assert (await send("/api/logs/user-errors", json=report)).json() == {"ok": True}
    kept = _lines(lite.network.settings.home)
    line = json.loads(kept)
    assert token not in kept
    assert "sk-ant" not in kept
    assert json.loads(line["context"]) == {"key": "[redacted]", "sent": "[redacted]", "then": "kept"}
    assert line["message"].startswith("failed with [redacted] ")
    assert len(line["message"]) == 1200
    assert error(await send("/api/logs/user-errors", json={"source": "x"})) == (400, "source and message are required.")
    monkeypatch.setattr(user_errors, "MAX_BYTES", 100)
    full = await send("/api/logs/user-errors", json=report)
    assert (full.status_code, full.json()) == (202, {"ok": False})
