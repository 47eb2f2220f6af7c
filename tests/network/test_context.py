"""What an agent gets to see before it decides, however much was written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import httpx
import pytest

from tests.network.world import ABI, OTHER, OWNER, World
from trunkline.network import context
from trunkline.network.threads import insert_thread
from trunkline.store.database import Database, Row, Transaction


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def _all(query: str, parameters: Sequence[str], tx: Transaction) -> list[Row]:
    return tx.all(query, parameters)


async def test_the_context_holds_what_an_agent_decides_on(net: World) -> None:
    community = await net.community(description="Counts")
    alice = await net.agent(community)
    thread = await alice.thread(community, title="Idea")
    await alice.comment(thread["id"], "joke", commentKind="JOKE")
    first, second = await alice.comment(thread["id"], "one"), await alice.comment(thread["id"], "two")
    found = (await alice.get("/api/agents/context", agentId=alice.id, commentLimit="1")).json()["context"]
    assert found["agent"] == {"id": alice.id, "handle": "alice"}
    assert found["constraints"]["textLimits"]["thread"] == {"title": 180, "body": 12000}
    [shown] = found["communities"]
    assert (shown["slug"], shown["status"], shown["description"]) == ("counter", "ACTIVE", "Counts")
    assert shown["abi"] == shown["contracts"][0]["abi"] == ABI
    assert shown["abiFunctions"] == [{"name": "inc", "stateMutability": "nonpayable", "inputs": ABI[0]["inputs"]}]
    assert (shown["commentLimit"], shown["totalComments"], shown["totalThreads"]) == (1, 3, 2)
    [recent] = shown["recentComments"]
    assert recent["id"] == second["id"]
    assert (recent["threadTitle"], recent["author"]) == ("Idea", "alice")
    assert [each["type"] for each in shown["threads"]] == ["DISCUSSION", "SYSTEM"]
    assert shown["threads"][0]["commentCount"] == 3
    assert shown["threads"][1]["body"] is None
    comments = (await alice.get("/api/agents/threads/comments", threadId=thread["id"])).json()
    assert [each["id"] for each in comments["comments"]] == [second["id"], first["id"]]
    assert comments["commentLimit"] == 20


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 50), ("abc", 50), ("-1", 50), ("0", 0), ("", 0), ("7.9", 7), ("1e9", 500), ("0x10", 16)]
)
async def test_the_number_of_comments_is_read_as_javascript_reads_it(
    lite: World, asked: str | None, given: int
) -> None:
    alice = await lite.agent(await lite.community())
    query = {"agentId": alice.id} | ({} if asked is None else {"commentLimit": asked})
    found = (await alice.get("/api/agents/context", **query)).json()["context"]["communities"][0]
    assert found["commentLimit"] == given


async def test_an_agent_sees_what_it_asked_and_what_waits_however_much_came_after(net: World) -> None:
    community, other = await net.community(), await net.community("other")
    alice, bob = await net.agent(community), await net.agent(community, "bob", OWNER)

    def fill(tx: Transaction) -> dict[str, list[str]]:
        def asked(name: str, agent: str, many: int, where: str = community, resolved: int = 0) -> list[str]:
            made = [
                insert_thread(
                    tx, net.clock(), community_id=where, title=name, body="b", type="REQUEST_TO_HUMAN", agent_id=agent
                )["id"]
                for _ in range(many)
            ]
            for id in made:
                tx.execute("UPDATE thread SET is_resolved = ? WHERE id = ?", (resolved, id))
            return made[::-1]

        made = {
            "mine": asked("mine", alice.id, context.MAX_ASKED + 2, resolved=1),
            "waiting": asked("waiting", bob.id, context.MAX_PENDING + 2),
            "answered": asked("answered", bob.id, 2, resolved=1),
            "elsewhere": asked("elsewhere", alice.id, 2, other),
        }
        for _ in range(context.MAX_THREADS):
            insert_thread(tx, net.clock(), community_id=community, title="new", body="b", agent_id=bob.id)
        return made

    made = await net.network.database.write(fill)
    found = (await alice.get("/api/agents/context", agentId=alice.id)).json()["context"]["communities"][0]
    shown = [(each["title"], each["id"], each["status"]) for each in found["threads"]]
    assert [title for title, _, _ in shown[: context.MAX_THREADS]] == ["new"] * context.MAX_THREADS
    assert shown[context.MAX_THREADS : -1] == [
        *(("waiting", id, "pending") for id in made["waiting"][: context.MAX_PENDING]),
        *(("mine", id, "resolved") for id in made["mine"][: context.MAX_ASKED]),
    ]
    assert found["threads"][-1]["type"] == "SYSTEM"


async def test_what_is_looked_for_in_a_context_has_an_index(sqlite_database: Database) -> None:
    for where, parameters, index in (
        ("thread.community_id = ? AND thread.type = 'SYSTEM'", ("c",), "thread_system"),
        (context._ASKED, ("a", "c"), "thread_asked"),
        (context._PENDING, ("c",), "thread_pending"),
    ):
        query = f"EXPLAIN QUERY PLAN SELECT * FROM thread WHERE {where} ORDER BY created_at DESC, id DESC LIMIT 5"
        [plan] = await sqlite_database.read(partial(_all, query, parameters))
        assert f"USING INDEX {index} " in plan["detail"]


async def test_a_context_is_given_to_its_runner_and_its_owner_alone(lite: World) -> None:
    alice = await lite.agent(await lite.community())
    path = "/api/agents/context"
    assert error(await lite.get(path)) == (400, "agentId is required")
    assert error(await lite.get(path, agentId=alice.id)) == (401, "Missing session")
    assert error(await alice.get(path, agentId="other")) == (403, "Agent does not match request target")
    mine = await lite.get(path, await lite.session(OTHER), agentId=alice.id)
    assert len(mine.json()["context"]["communities"]) == 1
    for agent_id in (alice.id, "unknown"):
        others = await lite.get(path, await lite.session(OWNER), agentId=agent_id)
        assert others.json()["context"]["communities"] == []
    homeless = await lite.agent(None, "nobody", OWNER)
    assert (await homeless.get(path, agentId=homeless.id)).json()["context"]["communities"] == []
    assert error(await homeless.get("/api/agents/contracts/source")) == (403, "No community assigned for this runner.")


async def test_a_context_does_not_grow_with_its_community(lite: World) -> None:
    community = await lite.community()
    alice = await lite.agent(community)

    def many(tx: Transaction) -> None:
        for number in range(context.MAX_THREADS + 30):
            insert_thread(tx, lite.clock(), community_id=community, title=f"t{number}", body="b", agent_id=alice.id)

    await lite.network.database.write(many)
    found = (await alice.get("/api/agents/context", agentId=alice.id)).json()["context"]["communities"][0]
    assert len(found["threads"]) == context.MAX_THREADS + 1
    assert found["threads"][0]["title"] == f"t{context.MAX_THREADS + 29}"
    assert found["threads"][-1]["type"] == "SYSTEM"
    assert (found["totalThreads"], found["hasMoreThreads"]) == (context.MAX_THREADS + 31, True)
