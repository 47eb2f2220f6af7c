from __future__ import annotations

import re

from tests.network.world import OTHER, OWNER, World
from trunkline.network import audit
from trunkline.network.pages.policy import CONTENT_SECURITY_POLICY
from trunkline.network.pages.views import COMMENTS
from trunkline.network.threads import insert_comment, insert_thread
from trunkline.store.database import Transaction

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[a](javascript:alert(1))",
    "{{ 7 * 7 }}",
    "\u202egnorw\u202c",
    "\U0001f9ea مرحبا שלום",
)


async def html(site: World, path: str, expected: int = 200, **query: str) -> str:
    answer = await site.client.get(path, params=query)
    assert answer.status_code == expected, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


async def test_every_page_can_be_read_on_an_empty_network(site: World) -> None:
    for path in (
        "/", "/about", "/communities", "/requests", "/reports", "/audit", "/sign-in", "/manage", "/log", "/admin",
    ):  # fmt: skip
        page = await html(site, path)
        assert '<main id="main"' in page
        assert 'lang="en"' in page
        assert "width=device-width" in page
        assert '<a href="/about">About</a>' in page


async def test_a_page_tells_what_the_network_is_how_it_works_and_what_is_safe(site: World) -> None:
    page = await html(site, "/about")
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", page) == ["What it is", "How it works", "Security notes"]
    for path in re.findall(r'href="(/[^"#]*)', page.split("<main", 1)[1].split("</main>")[0]):
        assert (await site.get(path)).status_code == 200, path


async def test_pages_need_no_inline_code_and_say_so(site: World) -> None:
    community = await site.community()
    agent = await site.agent(community)
    thread = await agent.thread(community, type="REPORT_TO_HUMAN")
    for path in (
        "/", "/communities", "/communities/counter", f"/communities/counter/threads/{thread['id']}", "/requests",
        "/reports", f"/agents/{agent.id}", "/about", "/audit", "/sign-in", "/manage", "/log", "/admin",
    ):  # fmt: skip
        answer = await site.get(path)
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert answer.headers["x-frame-options"] == "DENY"
        assert not re.search(r'<script(?![^>]* src=)[^>]*>|<style|\sstyle=|\son\w+=|(src|href)="https?:', answer.text)


async def test_a_thread_shows_its_texts_and_who_wrote_them(each_site: World) -> None:
    community = await each_site.community()
    agent = await each_site.agent(community, "alice")
    thread = await agent.thread(
        community, title="Deposit rounds down", body="The **last wei** is lost.", type="REQUEST_TO_HUMAN"
    )
    await agent.comment(thread["id"], "I tried `inc(41)` twice.")
    owner = await each_site.session(OWNER)
    answer = await each_site.client.post(
        f"/api/threads/{thread['id']}/comments/human", headers=owner, json={"body": "Use the new address."}
    )
    assert answer.status_code == 200, answer.text

    def network_says(tx: Transaction) -> None:
        insert_comment(tx, each_site.clock(), thread_id=thread["id"], community_id=community, body="Registry changed.")

    await each_site.network.database.write(network_says)
    page = await html(each_site, f"/communities/counter/threads/{thread['id']}")
    for text in ("Deposit rounds down", "<strong>last wei</strong>", "<code>inc(41)</code>", "Use the new address."):
        assert text in page
    kinds = re.findall(r'<article class="comment (\w+)"', page)
    assert kinds == ["agent", "owner", "system"]
    assert '<span class="badge agent">agent</span>' in page
    assert "gemini-1.5-flash-002" in page
    assert f'title="{OWNER}">0xa1a1…a1a1' in page
    assert "Registry changed." in page
    assert '<span class="status pending">pending</span>' in page


async def test_hostile_texts_are_shown_and_do_nothing(site: World) -> None:
    community = await site.community(description=" ".join(HOSTILE))
    agent = await site.agent(community)
    text = "\n\n".join(HOSTILE)
    thread = await agent.thread(community, title=" ".join(HOSTILE), body=text, type="REPORT_TO_HUMAN")
    await agent.comment(thread["id"], text)
    await site.execute("UPDATE agent SET handle = ?, llm_model = ?", *HOSTILE[:2])
    paths = ["/", "/communities", "/communities/counter", f"/communities/counter/threads/{thread['id']}"]
    for path in [*paths, "/reports", f"/agents/{agent.id}", "/audit"]:
        page = await html(site, path)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert 'href="javascript' not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in await html(site, paths[-1])
    query = await html(site, "/communities/counter", q='"><script>alert(1)</script>')
    assert "<script>alert" not in query


async def test_a_huge_body_is_shown_in_bounded_space(site: World) -> None:
    community = await site.community()

    def write(tx: Transaction) -> str:
        body = "| wide " * 30_000
        thread = insert_thread(tx, site.clock(), community_id=community, title="Registry", body=body, type="SYSTEM")
        return str(thread["id"])

    page = await html(site, f"/communities/counter/threads/{await site.network.database.write(write)}")
    assert 200_000 < len(page) < 1_000_000


async def test_ids_in_texts_lead_to_threads_and_comments(each_site: World) -> None:
    community = await each_site.community()
    agent = await each_site.agent(community)
    first = await agent.thread(community)
    comment = await agent.comment(first["id"])
    thread = await agent.thread(community, body=f"After {first['id']} and {comment['id']} but not c{'0' * 24}.")
    page = await html(each_site, f"/communities/counter/threads/{thread['id']}")
    assert f'href="/communities/counter/threads/{first["id"]}" class="mention"' in page
    assert f'href="/communities/counter/threads/{first["id"]}#comment-{comment["id"]}" class="mention"' in page
    assert f"c{'0' * 24}." in page


async def test_a_long_thread_comes_in_parts_and_can_be_entered_anywhere(each_site: World) -> None:
    community = await each_site.community()
    agent = await each_site.agent(community)
    thread = await agent.thread(community)

    def write(tx: Transaction) -> list[str]:
        return [
            insert_comment(
                tx, each_site.clock(), thread_id=thread["id"], community_id=community, body=f"n{number}.",
                agent_id=agent.id,
            )["id"]
            for number in range(COMMENTS + 20)
        ]  # fmt: skip

    ids = await each_site.network.database.write(write)
    path = f"/communities/counter/threads/{thread['id']}"

    def shown(page: str) -> list[int]:
        return [int(number) for number in re.findall(r">n(\d+)\.<", page)]

    first = await html(each_site, path)
    assert shown(first) == list(range(COMMENTS))
    assert f'href="?after={ids[COMMENTS - 1]}"' in first
    assert shown(await html(each_site, path, after=ids[COMMENTS - 1])) == list(range(COMMENTS, COMMENTS + 20))
    assert shown(await html(each_site, path, at="newest")) == list(range(20, COMMENTS + 20))
    entered = await html(each_site, path, at=ids[70])
    assert shown(entered) == list(range(70, COMMENTS + 20))
    assert "First comments" in entered
    # A comment that was removed leads to the beginning; a part that is not there is refused, as the API does.
    assert shown(await html(each_site, path, at="c" + "x" * 24)) == list(range(COMMENTS))
    assert "after is not a comment of this thread" in await html(each_site, path, 400, after="c" + "x" * 24)


async def test_a_short_thread_is_shown_whole_wherever_it_is_entered(site: World) -> None:
    community = await site.community()
    agent = await site.agent(community)
    thread = await agent.thread(community)
    comments = [await agent.comment(thread["id"], f"n{number}.") for number in range(3)]
    page = await html(site, f"/communities/counter/threads/{thread['id']}", at=comments[2]["id"])
    assert re.findall(r">n(\d+)\.<", page) == ["0", "1", "2"]
    assert "First comments" not in page


async def test_the_feed_of_a_community_is_searched_filtered_and_continued(each_site: World) -> None:
    community = await each_site.community()
    agent = await each_site.agent(community)

    def write(tx: Transaction) -> None:
        for number in range(30):
            type = "DISCUSSION" if number else "REPORT_TO_HUMAN"
            insert_thread(
                tx, each_site.clock(), community_id=community, title=f"Topic {number}", body="x", type=type,
                agent_id=agent.id,
            )  # fmt: skip

    await each_site.network.database.write(write)
    first = await html(each_site, "/communities/counter")
    assert "Topic 29" in first
    assert "Topic 1<" not in first
    before = re.search(r"before=(c\w+)", first)
    assert before is not None
    rest = await html(each_site, "/communities/counter", before=before[1])
    assert "Topic 1<" in rest
    assert "Topic 29" not in rest
    reports = await html(each_site, "/communities/counter", type="REPORT_TO_HUMAN")
    assert "Topic 0" in reports
    assert "Topic 29" not in reports
    found = await html(each_site, "/communities/counter", q="topic 17")
    assert "Topic 17" in found
    assert "Topic 18" not in found
    assert "Nothing matches" in await html(each_site, "/communities/counter", q='"*NEAR( %00 OR')


async def test_the_inbox_shows_requests_by_what_became_of_them(each_site: World) -> None:
    mine, other = await each_site.community(), await each_site.community("vault", OTHER)
    alice, bob = await each_site.agent(mine), await each_site.agent(other, "bob")
    open_one = await alice.thread(mine, title="Need a key", type="REQUEST_TO_HUMAN")
    solved = await alice.thread(mine, title="Need ether", type="REQUEST_TO_HUMAN")
    await bob.thread(other, title="Need a review", type="REQUEST_TO_HUMAN")
    await alice.send("PATCH", f"/api/threads/{solved['id']}/request-status", {"status": "resolved"})
    await alice.comment(open_one["id"], "Still waiting for it.")
    pending = await html(each_site, "/requests")
    assert "Need a key" in pending
    assert "Still waiting for it." in pending
    assert "Need a review" in pending
    assert "Need ether" not in pending
    assert f'data-owner="{OWNER}"' in pending
    assert "Need ether" in await html(each_site, "/requests", status="resolved")
    assert "No rejected requests" in await html(each_site, "/requests", status="rejected")
    owned = await html(each_site, "/requests", owner=OWNER.upper().replace("X", "x"))
    assert "Need a key" in owned
    assert "Need a review" not in owned
    everything = await html(each_site, "/requests", status="all", q="vault")
    assert "Need a review" in everything
    assert "Need a key" not in everything


async def test_reports_are_told_apart_by_whether_an_issue_was_made(site: World) -> None:
    community = await site.community(github_repository_url="https://github.com/owner/name")
    agent = await site.agent(community)
    one = await agent.thread(community, title="Overflow", type="REPORT_TO_HUMAN")
    await agent.thread(community, title="Reentrancy", type="REPORT_TO_HUMAN")
    await agent.send("PATCH", f"/api/threads/{one['id']}/issued", {"isIssued": True})
    both = await html(site, "/reports")
    assert "Overflow" in both
    assert "Reentrancy" in both
    assert both.count("Draft a GitHub issue") == 1
    assert "Reentrancy" not in await html(site, "/reports", issued="yes")
    assert "Overflow" not in await html(site, "/reports", issued="no")


async def test_an_agent_has_a_profile_without_its_secrets(site: World) -> None:
    community = await site.community()
    agent = await site.agent(community, "alice")
    await agent.thread(community, title="My first thread")
    await site.execute('UPDATE agent SET security_sensitive = \'{"ciphertext":"c2VjcmV0"}\'')
    page = await html(site, f"/agents/{agent.id}")
    for text in ("alice", "gemini-1.5-flash-002", OTHER, "My first thread", "1 thread, 0 comments"):
        assert text in page
    assert "c2VjcmV0" not in page


async def test_communities_are_found_by_name_and_owner(site: World) -> None:
    await site.community("counter")
    await site.community("vault_100%", OTHER)
    assert "Vault_100%" not in await html(site, "/communities", q="count")
    assert "Vault_100%" in await html(site, "/communities", q="t_100%")
    assert "Counter" not in await html(site, "/communities", q="_")
    assert "Counter" not in await html(site, "/communities", owner=OTHER)
    page = await html(site, "/communities/counter")
    assert "inc(uint256 n)" in page
    assert 'data-events="/api/communities/counter/events"' in page


async def test_the_audit_trail_tells_who_did_what(each_site: World) -> None:
    community = await each_site.community()
    agent = await each_site.agent(community, "alice")

    def act(tx: Transaction) -> None:
        for number in range(60):
            audit.record(
                tx, each_site.clock(), "agent", agent.id, "thread.create", community_id=community, subject=str(number)
            )

    await each_site.network.database.write(act)
    page = await html(each_site, "/audit", community="counter")
    assert page.count("thread.create") == 50
    before = re.search(r"before=(\d+)", page)
    assert before is not None
    rest = await html(each_site, "/audit", community="counter", before=before[1])
    assert rest.count("thread.create") == 10
    assert "thread.create" not in await html(each_site, "/audit", community="another")
    assert "before is not the number" in await html(each_site, "/audit", 400, before="9" * 30)


async def test_what_is_not_there_is_said_on_a_page(site: World) -> None:
    community = await site.community()
    await site.community("vault")
    agent = await site.agent(community)
    thread = await agent.thread(community)
    for path in (
        "/communities/nothing", "/communities/counter/threads/nothing", f"/communities/vault/threads/{thread['id']}",
        "/agents/nothing", "/agents/%00", "/communities/%00", "/communities/%ff%fe",
    ):  # fmt: skip
        assert "not found" in (await html(site, path, 404)).split("<main")[1].lower()


async def test_odd_queries_are_answered(each_site: World) -> None:
    await each_site.community()
    for query in ("q=%00", "before=%00", "before=x", "owner=%ff", "type=%3Cscript%3E", "q=" + "a" * 5000):
        for path in ("/communities", "/communities/counter", "/requests", "/reports", "/audit"):
            refused = "%00" in query or "before" in query
            assert (await each_site.get(f"{path}?{query}")).status_code == (400 if refused else 200)


async def test_pages_find_and_refuse_what_the_api_finds_and_refuses(each_site: World) -> None:
    community = await each_site.community(github_repository_url="https://github.com/owner/name")
    agent = await each_site.agent(community, "alice")
    for type in ("REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"):
        thread = await agent.thread(community, title=f"About {type}", body="Stripes.", type=type)
        await agent.comment(thread["id"], "It was a zebra.")
        await agent.thread(community, title="Another", type=type)
    paths = ("/requests", "/reports", "/communities/counter")
    for path, listed in zip(paths, ("/api/requests", "/api/reports", "/api/communities/counter/threads"), strict=True):
        for query in ("zebra", "stripes", "ALI", "counter", "nothing of it", ""):
            found = (await each_site.get(f"{listed}?q={query}")).json()["threads"]
            shown = re.findall(
                r'<h3><a href="/communities/counter/threads/(\w+)"', await html(each_site, path, q=query)
            )
            assert shown == [thread["id"] for thread in found], (path, query)
            assert bool(shown) == (query not in ("nothing of it", *(("counter",) if path == paths[2] else ())))
        assert (await each_site.get(f"{listed}?before=nosuch")).status_code == 400
        assert "before is not the id of a thread" in await html(each_site, path, 400, before="nosuch")


async def test_signing_in_leads_back_to_a_page_of_this_network_only(site: World) -> None:
    assert 'data-next="/manage?x=1"' in await html(site, "/sign-in", next="/manage?x=1")
    for path in ("//evil.example", "/\\evil.example", "https://evil.example", '/"><script>'):
        page = await html(site, "/sign-in", next=path)
        assert "evil.example" not in page
        assert "><script>" not in page


async def test_files_are_served_and_nothing_beside_them(site: World) -> None:
    for name, type in (
        ("style.css", "text/css"),
        ("ground.css", "text/css"),
        ("page.js", "javascript"),
        ("icon.svg", "image/svg+xml"),
    ):
        answer = await site.get(f"/static/{name}")
        assert type in answer.headers["content-type"]
        assert answer.headers["cache-control"] == "no-cache"
        again = await site.get(f"/static/{name}", {"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
    for path in ("/static/../views.py", "/static/%2e%2e/views.py", "/static/", "/static/nothing.js"):
        assert (await site.get(path)).status_code == 404
