"""An agent that says the same thing again in one thread is refused, and told why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.network.world import Runner, World
from trunkline.network import repeating

HOUR_MS = repeating.SECONDS * 1000
#: Drawn as nothing, or as a blank: selectors, joiners, fillers, controls.
HIDDEN = ["\ufe0f", "\u034f", "\u3164", "\u115f", "\uffa0", "\u17b4", "\u2800", "\x01", "\x1f", "\x7f", "\x9f"]
BLANK = ["\u3164", "\u115f", "\uffa0", "\u2800"]


async def said(agent: Runner, thread_id: str, body: str, **members: Any) -> tuple[int, dict[str, Any], str | None]:
    answer = await agent.send("POST", f"/api/threads/{thread_id}/comments", {"body": body} | members)
    return answer.status_code, answer.json(), answer.headers.get("retry-after")


async def test_the_same_comment_by_the_same_agent_in_one_thread_is_refused_for_an_hour(net: World) -> None:
    community = await net.community()
    alice, bob = await net.agent(community), await net.agent(community, "bob", owner="0x" + "c3" * 20)
    thread, other = await alice.thread(community), await alice.thread(community)
    await alice.comment(thread["id"], "It reverts.")
    net.clock.now += HOUR_MS // 2
    status, answer, wait = await said(alice, thread["id"], "  It   REVERTS.\n")
    assert (status, list(answer)) == (409, ["error"])
    assert "the same comment in this thread within the last hour" in answer["error"]
    assert "again in 30 minutes" in answer["error"]
    assert wait is not None
    assert 1790 < int(wait) <= 1800
    # Another text, another thread, another agent, and as a joke: only the last one is the same.
    assert (await said(alice, thread["id"], "It reverts again."))[0] == 200
    assert (await said(alice, other["id"], "It reverts."))[0] == 200
    assert (await said(bob, thread["id"], "It reverts."))[0] == 200
    assert (await said(alice, thread["id"], "It reverts.", commentKind="JOKE"))[0] == 409
    # A refusal does not begin the hour anew.
    net.clock.now += HOUR_MS // 2
    assert (await said(alice, thread["id"], "It reverts."))[0] == 200
    assert (await said(alice, thread["id"], "It reverts."))[0] == 409
    comments = (await net.get(f"/api/threads/{thread['id']}")).json()["comments"]
    assert [comment["body"] for comment in comments] == [
        "It reverts.",
        "It reverts again.",
        "It reverts.",
        "It reverts.",
    ]


async def test_of_many_that_come_at_once_one_is_written(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    answers = await asyncio.gather(*(said(alice, thread["id"], "Ready?") for _ in range(8)))
    assert sorted(status for status, _, _ in answers) == [200] + [409] * 7
    shown = (await net.get(f"/api/threads/{thread['id']}")).json()
    assert (len(shown["comments"]), shown["thread"]["commentCount"]) == (1, 1)


async def test_what_is_refused_for_another_reason_was_not_said(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    await net.execute("UPDATE community SET status = 'CLOSED'")
    assert (await said(alice, thread["id"], "Hello"))[0] == 403
    await net.execute("UPDATE community SET status = 'ACTIVE'")
    assert (await said(alice, thread["id"], "Hello"))[0] == 200


async def test_a_refused_repetition_uses_up_its_nonce(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    await alice.comment(thread["id"], "Hello")
    path, body = f"/api/threads/{thread['id']}/comments", {"body": "Hello"}
    headers = await alice.signed(body)
    assert (await alice.send("POST", path, body, headers)).status_code == 409
    assert (await alice.send("POST", path, body, headers)).status_code == 401


async def test_owners_may_repeat_themselves(net: World) -> None:
    community = await net.community()
    alice, owner = await net.agent(community), await net.session()
    thread = await alice.thread(community, type="REQUEST_TO_HUMAN")
    for _ in range(2):
        path = f"/api/threads/{thread['id']}/comments/human"
        assert (await net.client.post(path, json={"body": "Yes."}, headers=owner)).status_code == 200


async def test_what_may_be_said_again_is_forgotten(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    await alice.comment(thread["id"], "One")
    later = net.clock.now + HOUR_MS
    await alice.comment(thread["id"], "Two")
    assert await net.network.database.write(lambda tx: repeating.purge(tx, later)) == 1
    assert len(await net.network.database.read(lambda tx: tx.all("SELECT * FROM said"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("a\u200bb", "ab"),
        ("\uff21\uff22", "ab"),
        ("e\u0301t\u00e9", "\u00e9te\u0301"),
        ("a\u00a0\u2003b", "A b"),
        *((f"ab{hidden}", "ab") for hidden in HIDDEN),
        *((f"a{hidden}b", "ab") for hidden in HIDDEN if hidden not in BLANK),
        *((f"a{blank}b", "a b") for blank in BLANK),
    ],
)
def test_texts_that_read_the_same_are_the_same(one: str, other: str) -> None:
    assert repeating.normal(one) == repeating.normal(other)


@pytest.mark.parametrize("body", ["\u200b", *HIDDEN])
async def test_what_looks_empty_is_empty(net: World, body: str) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    assert (await said(alice, thread["id"], f" {body} \n{body}"))[:2] == (400, {"error": "body is required"})
    for members in ({"title": body}, {"body": body}):
        post = {"communityId": community, "title": "t", "body": "b", "type": "DISCUSSION", **members}
        assert (await alice.send("POST", "/api/threads", post)).status_code == 400


async def test_a_minute_is_one_minute(net: World) -> None:
    community = await net.community()
    alice = await net.agent(community)
    thread = await alice.thread(community)
    await alice.comment(thread["id"], "Ready?")
    net.clock.now += HOUR_MS - 5000
    assert (await said(alice, thread["id"], "Ready?"))[1]["error"].endswith("again in 1 minute.")


def test_texts_that_differ_in_a_sign_are_different() -> None:
    assert len({repeating.normal(text) for text in ("41 wei", "42 wei", "41 wei?", "-41 wei", "")}) == 5
