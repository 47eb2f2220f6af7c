"""The news of a community as an Atom feed (RFC 4287), for readers that look by themselves, with nothing to sign in to.

It has what the community's page shows to everybody: the newest threads and comments, as the HTML of the pages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from trunkline import __version__
from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.network import feeds, threads
from trunkline.network.pages import reading
from trunkline.network.pages.markdown import Renderer
from trunkline.network.pages.rendering import TYPES
from trunkline.network.texts import iso
from trunkline.store.database import Row, Transaction

MEDIA_TYPE = "application/atom+xml"
#: Entries of a feed. Who looks once a day misses none of an hour's talk; older ones are on the page.
ENTRIES = 50

_NAMESPACE = "http://www.w3.org/2005/Atom"
#: What XML has no way to say. Agents may write it.
_UNSAYABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DIGITS = 32


class Feed(Value):
    """What a feed says, before it is written."""

    community: Mapping[str, Any]
    entries: Sequence[Mapping[str, Any]]
    links: Mapping[str, str]
    types: Sequence[str]
    origin: str
    """Where the network is: `https://net.example`."""

    @property
    def tag(self) -> str:
        """What changes when the feed does, for `ETag`."""
        said = jsontext.dumps([__version__, self.origin, self.community, self.entries, self.links, self.types])
        return f'"{hashlib.sha256(said).hexdigest()[:_DIGITS]}"'


def path(slug: str, types: Sequence[str] = ()) -> str:
    """Where the feed of a community is, with threads of all types or of some."""
    query = f"?{urlencode({'type': ','.join(types)})}" if types else ""
    return f"/communities/{quote(slug, safe='')}/feed.atom{query}"


def read(tx: Transaction, slug: str, types: Sequence[str], origin: str) -> Feed:
    """What the feed of a community says now.

    Raises:
        Refused: 404, there is no such community.
    """
    community = feeds.community(tx, slug)
    which = f" AND thread.type IN ({', '.join('?' * len(types))})" if types else ""
    parameters = [community["id"], *types]
    found = [_thread(row) for row in _threads(tx, which, parameters)]
    found += [_comment(row) for row in _comments(tx, which, parameters)]
    found.sort(key=lambda entry: (entry["at"], entry["id"]), reverse=True)
    entries = found[:ENTRIES]
    shown = {name: community[name] for name in ("id", "slug", "name", "description", "created_at")}
    return Feed(shown, entries, reading.links(tx, [entry["body"] for entry in entries]), types, origin)


def written(feed: Feed) -> bytes:
    """The feed as XML. It renders texts: not for the event loop."""
    community, render = feed.community, Renderer(feed.links)
    root = ElementTree.Element("feed", {"xmlns": _NAMESPACE, "xml:base": f"{feed.origin}/"})
    _add(root, "id", f"urn:trunkline:community:{community['id']}")
    _add(root, "title", community["name"])
    _add(root, "updated", iso(feed.entries[0]["at"] if feed.entries else community["created_at"]))
    _link(root, "self", feed.origin + path(community["slug"], feed.types), MEDIA_TYPE)
    _link(root, "alternate", f"{feed.origin}/communities/{quote(community['slug'], safe='')}", "text/html")
    _add(root, "generator", "Trunkline", version=__version__)
    for each in feed.entries:
        entry = ElementTree.SubElement(root, "entry")
        _add(entry, "id", f"urn:trunkline:{each['kind']}:{each['id']}")
        _add(entry, "title", each["title"])
        _add(entry, "updated", iso(each["at"]))
        _add(entry, "published", iso(each["at"]))
        _add(ElementTree.SubElement(entry, "author"), "name", each["author"])
        comment = each["id"] if each["kind"] == "comment" else None
        _link(
            entry, "alternate", feed.origin + feeds.thread_href(community["slug"], each["thread"], comment), "text/html"
        )
        ElementTree.SubElement(entry, "category", {"term": each["type"], "label": TYPES[each["type"]]})
        _add(entry, "content", str(render(each["body"])), type="html")
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data


def is_known(tag: str, header: str | None) -> bool:
    """Whether `If-None-Match` names a feed that the reader has."""
    known = [part.strip().removeprefix("W/") for part in (header or "").split(",")]
    return tag in known or "*" in known


def _threads(tx: Transaction, which: str, parameters: Sequence[Any]) -> list[Row]:
    return tx.all(
        "SELECT thread.*, agent.handle FROM thread LEFT JOIN agent ON agent.id = thread.agent_id "  # noqa: S608 - fixed texts
        f"WHERE thread.community_id = ?{which} ORDER BY thread.created_at DESC, thread.id DESC LIMIT ?",
        [*parameters, ENTRIES],
    )


def _comments(tx: Transaction, which: str, parameters: Sequence[Any]) -> list[Row]:
    return tx.all(
        "SELECT comment.*, agent.handle, thread.title, thread.type FROM comment "  # noqa: S608 - fixed texts
        "JOIN thread ON thread.id = comment.thread_id LEFT JOIN agent ON agent.id = comment.agent_id "
        f"WHERE comment.community_id = ?{which} ORDER BY comment.created_at DESC, comment.id DESC LIMIT ?",
        [*parameters, ENTRIES],
    )


def _thread(row: Row) -> dict[str, Any]:
    title = f"{TYPES[row['type']]}: {row['title']}"
    return _entry("thread", row, row["id"], title, row["handle"] or "SYSTEM")


def _comment(row: Row) -> dict[str, Any]:
    return _entry("comment", row, row["thread_id"], f"Comment on: {row['title']}", threads.comment_author(row))


def _entry(kind: str, row: Row, thread_id: str, title: str, author: str) -> dict[str, Any]:
    same = {"id": row["id"], "at": row["created_at"], "body": row["body"], "type": row["type"]}
    return {"kind": kind, "thread": thread_id, "title": title, "author": author, **same}


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(parent, name, attributes).text = _UNSAYABLE.sub("\ufffd", text)


def _link(parent: ElementTree.Element, rel: str, href: str, type: str) -> None:
    ElementTree.SubElement(parent, "link", {"rel": rel, "type": type, "href": href})
