"""What is removed goes with its words, in short steps; what is left is still found."""

from __future__ import annotations

import time

import pytest

from tests.network.world import OWNER, World, world
from trunkline.network import removal, schema, system_thread, threads
from trunkline.network.open_database import open_database
from trunkline.store.database import Database, Transaction


async def found(net: World, word: str) -> list[str]:
    answer = await net.get("/api/communities/counter/threads", q=word)
    return [each["id"] for each in answer.json()["threads"]]


async def test_an_agents_words_go_with_it_and_those_of_others_stay(net: World, monkeypatch: pytest.MonkeyPatch) -> None:
    community = await net.community()
    alice, bob = await net.agent(community), await net.agent(community, "bob", OWNER)
    hers, his = await alice.thread(community, title="apricot"), await bob.thread(community, title="banana")
    await bob.comment(hers["id"], "cherry")
    for word in ("damson", "elderberry", "!!!"):
        await alice.comment(his["id"], word)
    await bob.comment(his["id"], "fig")
    monkeypatch.setattr(removal, "ROWS", 2)
    await removal.remove_agent(net.network, alice.id, "admin", "admin")
    for word in ("apricot", "cherry", "damson", "elderberry"):
        assert await found(net, word) == [], word
    for word in ("banana", "fig"):
        assert await found(net, word) == [his["id"]], word
    shown = (await net.get(f"/api/threads/{his['id']}")).json()
    assert (shown["thread"]["commentCount"], [each["body"] for each in shown["comments"]]) == (1, ["fig"])
    rows = await net.network.database.read(lambda tx: tx.all("SELECT words FROM thread_text"))
    assert len(rows) == 3
    mine = (await bob.get("/api/agents/context", agentId=bob.id)).json()["context"]["communities"][0]
    assert (mine["totalThreads"], mine["totalComments"]) == (2, 1)


async def test_removing_an_agent_stays_quick_in_a_large_community(sqlite_database: Database) -> None:
    async with world(sqlite_database) as net:
        community = await net.community()
        alice, bob = await net.agent(community), await net.agent(community, "bob", OWNER)

        def fill(tx: Transaction) -> None:
            for number in range(1500):
                thread = threads.insert_thread(
                    tx, number, community_id=community, title=f"t{number}", body="some words " * 20, agent_id=bob.id
                )
                for agent in (alice, bob):
                    threads.insert_comment(
                        tx, number, thread_id=thread["id"], community_id=community, agent_id=agent.id, body=agent.id
                    )

        await sqlite_database.write(fill)
        began = time.process_time()
        await removal.remove_agent(net.network, alice.id, "admin", "admin")
        # A look at the whole index for each of the threads took minutes.
        assert time.process_time() - began < 5
        assert (await found(net, alice.id), len(await found(net, bob.id))) == ([], 50)


async def test_words_from_before_they_were_known_by_their_texts_go_too(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.network.open_database.FORM", schema.FORM.replace(steps=schema.STEPS[:2]))
    old = await open_database(database_url)

    def write(tx: Transaction) -> None:
        tx.execute("INSERT INTO community (id, slug, name, created_at) VALUES ('c', 'counter', 'Counter', 1)")
        for agent in ("alice", "bob"):
            tx.execute("INSERT INTO agent (id, handle, community_id, created_at) VALUES (?, ?, 'c', 1)", (agent, agent))
        for id, author, type, body in (
            ("t1", "bob", "DISCUSSION", "banana"),
            ("t2", None, "SYSTEM", "registry"),
        ):
            tx.execute(
                "INSERT INTO thread (id, community_id, agent_id, title, body, type, comment_count, created_at) "
                "VALUES (?, 'c', ?, 't', ?, ?, 2, 1)",
                (id, author, body, type),
            )
            tx.execute("INSERT INTO thread_text (words, thread_id) VALUES (?, ?)", (body, id))
            for agent, said in (("alice", "damson"), ("bob", "fig")):
                tx.execute(
                    "INSERT INTO comment (id, thread_id, community_id, agent_id, body, created_at) "
                    "VALUES (?, ?, 'c', ?, ?, 1)",
                    (f"{id} {agent}", id, agent, said),
                )
                tx.execute("INSERT INTO thread_text (words, thread_id) VALUES (?, ?)", (said, id))

    await old.write(write)
    await old.close()
    monkeypatch.undo()
    database = await open_database(database_url)
    async with world(database) as net:
        assert await found(net, "damson") == ["t2", "t1"]
        counted = await database.read(lambda tx: tx.one("SELECT threads, comments FROM community_count"))
        assert counted == {"threads": 2, "comments": 4}
        await removal.remove_agent(net.network, "alice", "admin", "admin")
        assert await found(net, "damson") == []
        assert await found(net, "fig") == ["t2", "t1"]

        def rewrite(tx: Transaction) -> None:
            row = tx.one("SELECT * FROM community")
            assert row is not None
            for _ in range(2):
                system_thread.write(tx, 5, row, "kiwi")

        await database.write(rewrite)
        assert (await found(net, "registry"), await found(net, "fig")) == (["t2"], ["t2", "t1"])
        assert await found(net, "kiwi") == ["t2"]
    await database.close()


async def test_a_surplus_system_thread_goes_with_its_words(net: World) -> None:
    community = await net.community()

    def twice(tx: Transaction) -> None:
        threads.insert_thread(tx, 1, community_id=community, title="quince", body="surplus", type="SYSTEM")
        row = tx.one("SELECT * FROM community")
        assert row is not None
        tx.execute("UPDATE thread SET created_at = 0 WHERE title <> 'quince'")
        assert system_thread.write(tx, 5, row).removed == 1

    await net.network.database.write(twice)
    assert await found(net, "quince") == []
    rows = await net.network.database.read(lambda tx: tx.all("SELECT words FROM thread_text"))
    assert len(rows) == 1
