"""Hints as the audit trail tells them: whoever changes something records it in the same transaction, and in order.

So a server learns from the rows what was done through any other, misses none, and can begin anew after any number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.network.live import Hint
from trunkline.store.database import Row, Transaction

#: Entries that are read at once.
AT_ONCE = 200

#: Changes of contracts and descriptions, which the community's SYSTEM thread tells of.
_REGISTRY = ("community.create", "community.update", "contract.add", "contract.update", "contract.remove")
_STATUS = {"community.close": "CLOSED", "community.delete": "DELETED"}
_ISSUED = ("thread.issued", "thread.issue-draft", "comment.issued", "comment.issue-draft")

_ENTRIES = (
    "SELECT audit.number, audit.action, audit.community_id, audit.subject, audit.detail, thread.type, "
    "comment.thread_id, CASE WHEN audit.action LIKE 'community.%' OR audit.action LIKE 'contract.%' THEN "
    "(SELECT id FROM thread AS own WHERE own.community_id = audit.community_id AND own.type = 'SYSTEM' "
    "ORDER BY own.created_at, own.id LIMIT 1) END AS system_thread FROM audit "
    "LEFT JOIN thread ON thread.id = audit.subject LEFT JOIN comment ON comment.id = audit.subject "
    "WHERE audit.number > ? ORDER BY audit.number LIMIT ?"
)


def last(tx: Transaction) -> int:
    """The number of the newest entry."""
    row = tx.one("SELECT MAX(number) AS number FROM audit")
    return int(row["number"] or 0) if row else 0


def read(tx: Transaction, after: int) -> tuple[list[Hint], int, bool]:
    """The hints of the next entries; the number of the last of those; and whether there are more."""
    rows = tx.all(_ENTRIES, (after, AT_ONCE))
    found: list[Hint] = []
    for row in rows:
        hint = _hint(row)
        # Several contracts that are registered together change one thread.
        if hint is not None and not (found and found[-1].replace(number=hint.number) == hint):
            found.append(hint)
    return found, rows[-1]["number"] if rows else after, len(rows) == AT_ONCE


def _hint(row: Row) -> Hint | None:
    """What an entry tells watchers; None: nothing that a page shows."""
    action, subject, number = row["action"], row["subject"], row["number"]
    detail = jsontext.loads(row["detail"].encode()) if row["detail"] else {}

    def hint(kind: str, data: Mapping[str, Any]) -> Hint:
        return Hint(kind, row["community_id"], data, number)

    if action == "thread.create":
        return hint("thread", {"threadId": subject, "type": row["type"]})
    if action == "comment.create":
        return hint("comment", {"threadId": detail.get("threadId"), "commentId": subject})
    if action == "thread.status":
        return hint("status", {"threadId": subject})
    if action in _ISSUED:
        place = {"threadId": subject}
        if action.startswith("comment."):
            place = {"threadId": row["thread_id"], "commentId": subject}
        return hint("issued", {**place, "isIssued": detail.get("isIssued", True)})
    if action in _STATUS:
        return hint("status", {"status": _STATUS[action]})
    if action in _REGISTRY:
        return hint("thread", {"threadId": row["system_thread"], "type": "SYSTEM"})
    return None
