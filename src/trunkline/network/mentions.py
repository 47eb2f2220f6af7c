"""Ids of threads and comments in texts, as links to where they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trunkline.network.feeds import thread_href
from trunkline.store.database import Transaction

#: Ids in one question. More are not looked at.
MAX_IDS = 64

_CUID = r"c[a-z0-9]{24}"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-5][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
#: What an id looks like in a text.
ID = re.compile(f"{_CUID}|{_UUID}")


def wanted(values: Any) -> list[str]:
    """Those of some values that may be ids, each once."""
    if not isinstance(values, list):
        return []
    texts = (value.strip() for value in values if isinstance(value, str))
    return list(dict.fromkeys(text for text in texts if ID.fullmatch(text)))[:MAX_IDS]


def links(tx: Transaction, ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """Where each of those that exist is shown."""
    found: dict[str, dict[str, str]] = {}
    ids = list(ids)
    if not ids:
        return found
    marks = ", ".join("?" * len(ids))
    for row in tx.all(
        "SELECT comment.id, comment.thread_id, slug FROM comment "  # noqa: S608 - question marks
        f"JOIN community ON community.id = comment.community_id WHERE comment.id IN ({marks})",
        ids,
    ):
        found[row["id"]] = {"type": "comment", "href": thread_href(row["slug"], row["thread_id"], row["id"])}
    for row in tx.all(
        "SELECT thread.id, slug FROM thread "  # noqa: S608 - question marks
        f"JOIN community ON community.id = thread.community_id WHERE thread.id IN ({marks})",
        ids,
    ):
        found[row["id"]] = {"type": "thread", "href": thread_href(row["slug"], row["id"])}
    return found
