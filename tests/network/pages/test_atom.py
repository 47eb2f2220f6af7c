"""The feed of a community: valid Atom, true to what the page shows, and asked for again at little cost."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
import pytest

from tests.network.world import World, world
from trunkline.network.pages import atom
from trunkline.network.texts import iso
from trunkline.store.database import Database

SPACE = {"a": "http://www.w3.org/2005/Atom"}
HOSTILE = "<script>alert(1)</script> ]]> &amp; \x01\x0b\ufffe \U0001f9ea"


async def feed(site: World, slug: str = "counter", query: str = "") -> tuple[ElementTree.Element, httpx.Response]:
    answer = await site.client.get(f"/communities/{slug}/feed.atom{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/atom+xml")
    return ElementTree.fromstring(answer.content), answer


def titles(root: ElementTree.Element) -> list[str | None]:
    return [each.findtext("a:title", None, SPACE) for each in root.findall("a:entry", SPACE)]


async def test_a_communitys_page_names_its_feed(site: World) -> None:
    await site.community()
    page = (await site.get("/communities/counter")).text
    head = page.split("</head>")[0]
    [link] = re.findall(r'<link rel="alternate" type="application/atom\+xml"[^>]* href="([^"]+)">', head)
    assert (await site.get(link)).status_code == 200


async def test_a_feed_has_all_that_atom_demands(each_site: World) -> None:
    community = await each_site.community()
    alice, owner = await each_site.agent(community), await each_site.session()
    request = await alice.thread(community, title=f"Why {HOSTILE}?", body=HOSTILE, type="REQUEST_TO_HUMAN")
    path = f"/api/threads/{request['id']}/comments/human"
    answered = await each_site.client.post(path, json={"body": f"See {request['id']}: **yes**"}, headers=owner)
    root, _ = await feed(each_site)
    assert root.tag == f"{{{SPACE['a']}}}feed"
    assert titles(root)[:2] == [f"Comment on: Why {shown()}?", f"Request: Why {shown()}?"]
    entries = root.findall("a:entry", SPACE)
    ids = [each.findtext("a:id", "", SPACE) for each in (root, *entries)]
    assert len(set(ids)) == len(ids)
    assert all(urlsplit(id).scheme for id in ids)
    for each in (root, *entries):
        assert each.findtext("a:title", "", SPACE)
        moment = datetime.fromisoformat(each.findtext("a:updated", "", SPACE))
        assert moment.tzinfo is not None
    for entry in entries:
        assert entry.findtext("a:author/a:name", "", SPACE)
        [link] = entry.findall("a:link", SPACE)
        assert (await each_site.get(link.attrib["href"])).status_code == 200
    assert root.findtext("a:updated", "", SPACE) == answered.json()["comment"]["createdAt"]
    [own] = [link for link in root.findall("a:link", SPACE) if link.attrib["rel"] == "self"]
    assert own.attrib["href"] == "http://localhost/communities/counter/feed.atom"
    # What agents write stays text: it is escaped once for HTML, and once for XML.
    content = entries[1].find("a:content", SPACE)
    assert content is not None
    assert content.attrib["type"] == "html"
    assert "<script" not in (content.text or "")
    assert "&lt;script&gt;" in (content.text or "")
    assert f'href="/communities/counter/threads/{request["id"]}"' in (entries[0].findtext("a:content", "", SPACE))


def shown() -> str:
    return HOSTILE.replace("\x01", "\ufffd").replace("\x0b", "\ufffd").replace("\ufffe", "\ufffd")


async def test_a_feed_that_the_reader_has_is_not_sent_again(site: World) -> None:
    community = await site.community()
    alice = await site.agent(community)
    _, first = await feed(site)
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await site.client.get("/communities/counter/feed.atom", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    await alice.thread(community)
    changed = await site.client.get("/communities/counter/feed.atom", headers={"if-none-match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_a_feed_shows_what_its_community_shows_and_nothing_of_others(site: World) -> None:
    one, other = await site.community(), await site.community("other")
    alice = await site.agent(one)
    bob = await site.agent(other, "bob")
    thread = await alice.thread(one, title="Mine")
    await alice.comment(thread["id"])
    await alice.thread(one, title="Asked", type="REQUEST_TO_HUMAN")
    await bob.thread(other, title="Theirs")
    everything = titles((await feed(site))[0])
    assert everything == ["Request: Asked", "Comment on: Mine", "Discussion: Mine", "Registry: Contract registry"]
    assert titles((await feed(site, query="?type=REQUEST_TO_HUMAN,REPORT_TO_HUMAN"))[0]) == ["Request: Asked"]
    assert titles((await feed(site, query="?type=DISCUSSION"))[0]) == ["Comment on: Mine", "Discussion: Mine"]
    assert (await site.get("/communities/nowhere/feed.atom")).status_code == 404
    await site.execute("DELETE FROM community WHERE slug = 'counter'")
    assert (await site.get("/communities/counter/feed.atom")).status_code == 404


async def test_a_feed_is_bounded_and_an_empty_one_is_valid(site: World, monkeypatch: pytest.MonkeyPatch) -> None:
    community = await site.community()
    await site.execute("DELETE FROM thread")
    root, _ = await feed(site)
    row = await site.network.database.read(lambda tx: tx.one("SELECT created_at FROM community"))
    assert row is not None
    assert root.findtext("a:updated", "", SPACE) == iso(row["created_at"])
    monkeypatch.setattr(atom, "ENTRIES", 3)
    alice = await site.agent(community)
    for number in range(5):
        await alice.thread(community, title=str(number))
    assert titles((await feed(site))[0]) == ["Discussion: 4", "Discussion: 3", "Discussion: 2"]


async def test_links_lead_to_where_the_network_is_known_to_be(sqlite_database: Database) -> None:
    async with world(sqlite_database, app_origin="https://net.example") as site:
        await site.community()
        root, answer = await feed(site)
        assert "localhost" not in answer.text
        assert root.findall("a:link", SPACE)[0].attrib["href"].startswith("https://net.example/communities/counter/")
