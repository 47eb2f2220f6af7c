"""What becomes of requests and reports, and who may say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest

from tests.network.world import OTHER, Runner, World, world
from trunkline.store.database import Database


@pytest.fixture
async def net(sqlite_database: Database) -> AsyncIterator[World]:
    async with world(sqlite_database) as found:
        yield found


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


MATRIX = "Owner can set pending/rejected. Thread author agent can set pending/resolved."


async def _asked(net: World) -> tuple[Runner, str, str]:
    community = await net.community(github_repository_url="https://github.com/acme/counter.git")
    alice = await net.agent(community)
    thread = await alice.thread(community, type="REQUEST_TO_HUMAN")
    return alice, community, f"/api/threads/{thread['id']}/request-status"


async def test_owner_and_author_may_set_what_the_matrix_says_and_nobody_else_anything(net: World) -> None:
    alice, community, path = await _asked(net)
    bob = await net.agent(community, "bob", "0x" + "c3" * 20)
    owner, stranger = await net.session(), await net.session(OTHER)
    expected = {
        "owner": {"pending": 200, "resolved": 403, "rejected": 200},
        "author": {"pending": 200, "resolved": 200, "rejected": 403},
        "bob": {"pending": 403, "resolved": 403, "rejected": 403},
        "stranger": {"pending": 403, "resolved": 403, "rejected": 403},
    }
    for actor, statuses in expected.items():
        for status, code in statuses.items():
            body = {"status": status}
            if actor in ("owner", "stranger"):
                headers = owner if actor == "owner" else stranger
                answer = await net.client.patch(path, headers=headers, json=body)
            else:
                answer = await (alice if actor == "author" else bob).send("PATCH", path, body)
            assert answer.status_code == code, (actor, status, answer.text)
            if code == 403:
                assert error(answer) == (403, MATRIX)
            else:
                flags = {"isResolved": status == "resolved", "isRejected": status == "rejected"}
                shown = answer.json()["thread"]
                assert shown == {"id": path.split("/")[3], "type": "REQUEST_TO_HUMAN"} | flags


async def test_what_is_asked_for_is_checked_before_who_asks(net: World) -> None:
    alice, community, path = await _asked(net)
    talk = await alice.thread(community)

    async def patch(path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, str]:
        return error(await net.client.patch(path, json=body, headers=headers))

    wrong = (400, "status must be 'resolved', 'rejected', or 'pending'")
    bodies: tuple[Any, ...] = ({"status": "done"}, {}, {"status": 1}, [], {"status": ["pending"]})
    for body in bodies:
        assert await patch("/api/threads/no/request-status", body) == wrong
    good = {"status": " Pending "}
    assert await patch("/api/threads/no/request-status", good) == (404, "Thread not found")
    only = "Only request threads can be updated to resolved/rejected/pending"
    assert await patch(f"/api/threads/{talk['id']}/request-status", good) == (403, only)
    assert await patch(path, good) == (401, "Unauthorized")
    assert await patch(path, good, {"authorization": "Bearer no"}) == (401, "Invalid session")
    assert await patch(path, good, {"authorization": "bearer no"}) == (401, "Missing session")
    assert await patch(path, good, alice.headers) == (401, "Missing agent auth headers")


async def test_one_of_two_proofs_is_enough(net: World) -> None:
    alice, _, path = await _asked(net)
    both = await alice.signed({"status": "resolved"}) | {"authorization": "Bearer no"}
    assert (await alice.send("PATCH", path, {"status": "resolved"}, both)).status_code == 200
    owner = await net.session() | {"x-runner-token": "no", "x-agent-nonce": "no"}
    assert (await net.client.patch(path, json={"status": "rejected"}, headers=owner)).status_code == 200


async def test_a_refused_status_uses_up_its_nonce(net: World) -> None:
    alice, _, path = await _asked(net)
    for status, code in (("rejected", 403), ("nonsense", 400)):
        headers = await alice.signed({"status": status})
        assert (await alice.send("PATCH", path, {"status": status}, headers)).status_code == code
        good = await alice.signed({"status": "resolved"}, headers["x-agent-nonce"])
        assert error(await alice.send("PATCH", path, {"status": "resolved"}, good)) == (
            401, "Invalid or expired nonce",
        )  # fmt: skip


async def test_agents_see_the_status_of_requests_in_their_context(net: World) -> None:
    alice, _, path = await _asked(net)
    await net.client.patch(path, json={"status": "rejected"}, headers=await net.session())
    context = (await alice.get("/api/agents/context", agentId=alice.id)).json()["context"]
    request = context["communities"][0]["threads"][0]
    flags = ("isResolved", "isRejected", "isIssued", "status")
    assert [request[name] for name in flags] == [False, True, False, "rejected"]


async def test_reports_become_issues(net: World) -> None:
    community = await net.community()
    alice, bob = await net.agent(community), await net.agent(await net.community("other"), "bob")
    report, talk = await alice.thread(community, type="REPORT_TO_HUMAN"), await alice.thread(community)
    comment, elsewhere = await alice.comment(report["id"]), await alice.comment(talk["id"])

    async def issued(sender: Runner, path: str, body: Any) -> httpx.Response:
        return await sender.send("PATCH", f"/api/{path}/issued", body)

    thread, of_comment = f"threads/{report['id']}", f"comments/{comment['id']}"
    assert (await issued(alice, thread, {})).json() == {
        "thread": {"id": report["id"], "type": "REPORT_TO_HUMAN", "isIssued": True}
    }
    assert (await issued(alice, thread, {"isIssued": False})).json()["thread"]["isIssued"] is False
    assert (await issued(alice, of_comment, {"isIssued": 0})).json() == {
        "comment": {"id": comment["id"], "isIssued": True, "thread": {"id": report["id"], "type": "REPORT_TO_HUMAN"}}
    }
    assert error(await issued(alice, "threads/no", {})) == (404, "Thread not found")
    assert error(await issued(alice, "comments/no", {})) == (404, "Comment not found")
    assert error(await issued(alice, f"threads/{talk['id']}", {})) == (
        403, "Only report threads can update issued state",
    )  # fmt: skip
    assert error(await issued(alice, f"comments/{elsewhere['id']}", {})) == (
        403, "Only comments on report threads can update issued state",
    )  # fmt: skip
    assert error(await issued(bob, thread, {})) == (403, "Agent does not match the target community")
    empty = await net.client.patch(f"/api/{thread}/issued", headers=await alice.signed({}), content=b"")
    assert empty.json()["thread"]["isIssued"] is True
    assert (await net.client.patch(f"/api/{thread}/issued")).status_code == 401


async def test_owners_answer_requests_and_reports_only(net: World) -> None:
    alice, community, path = await _asked(net)
    request_id = path.split("/")[3]
    talk = await alice.thread(community)
    owner, stranger = await net.session(), await net.session(OTHER)

    async def answer(thread_id: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
        return await net.client.post(f"/api/threads/{thread_id}/comments/human", json=body, headers=headers or owner)

    assert error(await net.client.post(f"/api/threads/{request_id}/comments/human", json={"body": "x"})) == (
        401, "Missing session",
    )  # fmt: skip
    assert error(await answer("no", {"body": ""})) == (400, "body is required")
    assert error(await answer("no", {"body": "x"})) == (404, "Thread not found")
    assert error(await answer(talk["id"], {"body": "x"})) == (403, "This thread does not allow human comments")
    assert error(await answer(request_id, {"body": "x"}, stranger)) == (
        403, "Only the community owner can comment here",
    )  # fmt: skip
    await net.execute("UPDATE community SET status = 'CLOSED'")
    written = (await answer(request_id, {"body": " Yes. "})).json()["comment"]
    assert (written["body"], written["agentId"]) == ("Yes.", None)
    shown = (await net.get(f"/api/threads/{request_id}")).json()["comments"][0]
    assert (shown["author"], shown["authorKind"]) == ("owner 0xa1a1...", "owner")


async def test_a_report_becomes_the_draft_of_an_issue_once(net: World) -> None:
    alice, community, path = await _asked(net)
    report = await alice.thread(community, type="REPORT_TO_HUMAN", title="T" * 180, body="## é\n" + "🎉" * 5900)
    comment = await alice.comment(report["id"], "more")
    owner = await net.session()
    url = f"/api/threads/{report['id']}/github-issue"
    not_report = f"/api/threads/{path.split('/')[3]}/github-issue"
    post = net.client.post
    assert error(await post(not_report, headers=owner)) == (403, "Only report threads can be submitted to GitHub.")
    assert error(await post(url, headers=await net.session(OTHER))) == (
        403, "Only the community owner can submit GitHub issues.",
    )  # fmt: skip
    draft = (await post(url, headers=owner)).json()
    assert draft["repositoryUrl"] == "https://github.com/acme/counter.git"
    assert len(draft["issueDraftUrl"]) <= 7500
    parts = urlsplit(draft["issueDraftUrl"])
    assert (parts.netloc, parts.path) == ("github.com", "/acme/counter/issues/new")
    fields = parse_qs(parts.query)
    assert fields["title"] == ["[Report] " + "T" * 180]
    assert f"- Thread ID: {report['id']}" in fields["body"][0]
    # No host is named: the request alone tells one, and whoever sends it may tell anything.
    assert f"- Thread URL: /communities/counter/threads/{report['id']}" in fields["body"][0]
    assert "## Report Body\n## é\n🎉" in fields["body"][0]
    assert error(await post(url, headers=owner)) == (409, "This report is already issued on GitHub.")
    of_comment = f"/api/comments/{comment['id']}/github-issue"
    for _ in range(2):
        body = parse_qs(urlsplit((await post(of_comment, headers=owner)).json()["issueDraftUrl"]).query)["body"][0]
        assert f"#comment-{comment['id']}" in body
    await net.execute("UPDATE community SET github_repository_url = NULL")
    assert error(await post(of_comment, headers=owner)) == (
        400, "No GitHub repository is registered for this community.",
    )  # fmt: skip
    await net.execute("UPDATE community SET github_repository_url = 'https://evil.example/a/b'")
    assert error(await post(of_comment, headers=owner)) == (400, "Invalid GitHub repository URL.")


async def test_in_a_closed_community_the_owner_still_answers_and_agents_do_not(net: World) -> None:
    alice, community, path = await _asked(net)
    await net.execute("UPDATE community SET status = 'CLOSED' WHERE id = ?", community)
    for status in ("pending", "resolved", "rejected"):
        assert error(await alice.send("PATCH", path, {"status": status})) == (403, "Community is closed")
    answer = await net.client.patch(path, headers=await net.session(), json={"status": "rejected"})
    assert answer.status_code == 200


async def test_links_in_a_draft_lead_to_the_configured_origin_whatever_the_host_header_says(
    sqlite_database: Database,
) -> None:
    async with world(sqlite_database, app_origin="https://app.example", hosts=("other.example",)) as net:
        alice, community, _ = await _asked(net)
        report = await alice.thread(community, type="REPORT_TO_HUMAN")
        headers = await net.session() | {"host": "other.example"}
        draft = (await net.client.post(f"/api/threads/{report['id']}/github-issue", headers=headers)).json()
        assert "https://app.example/communities" in unquote(draft["issueDraftUrl"])
        assert "other.example" not in draft["issueDraftUrl"]
