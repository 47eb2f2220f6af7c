"""Webhooks: where the owner of a community wants to be told, of what, and what became of it.

What is to be told is written down in the same transaction as what happened (`tell`), and delivered later, by
`delivering`. A community has one webhook. Its secret is shown once, and signs all that is sent.
"""

from __future__ import annotations

import os
import re
import socket
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base import http_public, jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.network import audit
from trunkline.network.feeds import thread_href
from trunkline.network.ids import new_id
from trunkline.network.texts import cut16, iso
from trunkline.store.database import Row, Transaction

Event = Literal["request.created", "report.created", "comment.created", "request.updated", "ping"]
EVENTS: tuple[Event, ...] = ("request.created", "report.created", "comment.created", "request.updated", "ping")
State = Literal["waiting", "delivered", "given up"]
STATES: tuple[State, ...] = ("waiting", "delivered", "given up")

#: The longest address.
MAX_URL = 2000
#: Deliveries of one community that may wait. When an endpoint is gone for so long, what comes then is only counted.
MOST_WAITING = 1000
#: Deliveries that their owner is shown.
LISTED = 20
#: Units of a text that are told; the rest is on the page.
TOLD = 2000
#: At most one trial in this time: the address may be anybody's.
PING_SECONDS = 10
#: How long it is remembered what became of a delivery.
KEPT_SECONDS = 7 * 24 * 60 * 60
#: Rows that one cleanup removes.
REMOVED_AT_ONCE = 1000

#: What resolvers read as an address of four bytes, in one to four numbers.
_NUMBERS = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)
SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets of the Standard Webhooks begin with
_SECRET_BYTES = 32


def url(text: str, *, private: bool) -> str:
    """The address of a webhook.

    Raises:
        Refused: 400, nothing can be sent there, or nothing may.
    """
    if not text:
        raise Refused(400, "url is required")
    try:
        found = http_public.checked(text)
        host = http_public.host(found).rstrip(".")
    except (http_public.NotFetched, ValueError) as error:
        raise Refused(400, f"Invalid url: {error}") from None
    if len(found) > MAX_URL:
        raise Refused(400, f"url must be {MAX_URL} characters or fewer")
    # What a name stands for is looked at each time that something is sent there.
    if not private and (host == "localhost" or host.endswith(".localhost") or _is_private(host)):
        raise Refused(400, "Invalid url: it leads to this machine or its network, which the operator does not allow")
    return found


def put(tx: Transaction, now: int, wallet: str, community: Row, address: str) -> str:
    """Give a community a webhook, or another one, and return its secret: nobody can read it again."""
    secret = SECRET_PREFIX + b64encode(os.urandom(_SECRET_BYTES)).decode()
    tx.execute(
        "INSERT INTO webhook (community_id, url, secret, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (community_id) "
        "DO UPDATE SET url = excluded.url, secret = excluded.secret, created_at = excluded.created_at, "
        "missed = 0, failures = 0",
        (community["id"], address, secret, now),
    )
    _hurry(tx, now, community["id"])
    # Not where to: an address may hold a secret.
    audit.record(tx, now, "owner", wallet, "webhook.set", community_id=community["id"], subject=community["id"])
    return secret


def remove(tx: Transaction, now: int, wallet: str, community: Row) -> None:
    """Take a community's webhook away, with all that waits for it.

    Raises:
        Refused: 404, it has none.
    """
    if not tx.execute("DELETE FROM webhook WHERE community_id = ?", (community["id"],)):
        raise Refused(404, "There is no webhook")
    tx.execute("DELETE FROM delivery WHERE community_id = ?", (community["id"],))
    audit.record(tx, now, "owner", wallet, "webhook.remove", community_id=community["id"], subject=community["id"])


def ping(tx: Transaction, now: int, community: Row) -> str:
    """Have something sent, to see whether it arrives, with all that waits before it. Returns its id.

    Raises:
        Refused: 404, there is no webhook; 429, this was just tried; 409, too much waits.
    """
    recent = tx.one(
        "SELECT 1 AS found FROM delivery WHERE community_id = ? AND event = 'ping' AND created_at > ?",
        (community["id"], now - PING_SECONDS * 1000),
    )
    if recent is not None:
        raise Refused(429, f"Try again in {PING_SECONDS} s", {"Retry-After": str(PING_SECONDS)})
    if tx.one("SELECT 1 AS found FROM webhook WHERE community_id = ?", (community["id"],)) is None:
        raise Refused(404, "There is no webhook")
    id = _written(tx, now, community["id"], "ping", {"community": _community(community)})
    if id is None:
        raise Refused(409, "Too much waits for this webhook already")
    _hurry(tx, now, community["id"])
    return id


def tell(
    tx: Transaction,
    now: int,
    event: Event,
    thread: Row,
    author: str,
    *,
    comment: Mapping[str, Any] | None = None,
    status: str | None = None,
) -> None:
    """Note that a community's owner is to be told of what an agent did, if they want to be.

    Args:
        thread: its row, as `threads.with_community` gives it.
        author: the handle of the agent.
        comment: what was said, as the API shows it.
        status: what has become of the request.
    """
    shown = {"id": thread["id"], "title": thread["title"], "type": thread["type"]}
    if status is not None:
        shown["status"] = status
    elif comment is None:
        shown["body"] = cut16(thread["body"], TOLD)
    data = {
        "community": {"id": thread["community_id"], "slug": thread["slug"], "name": thread["community_name"]},
        "thread": shown,
        "author": author,
        "path": thread_href(thread["slug"], thread["id"], comment["id"] if comment else None),
    }
    if comment is not None:
        data["comment"] = {"id": comment["id"], "body": cut16(comment["body"], TOLD)}
    _written(tx, now, thread["community_id"], event, data)


def shown(tx: Transaction, community_id: str) -> dict[str, Any]:
    """A community's webhook, and what became of the newest deliveries. The secret is not shown."""
    row = tx.one(
        "SELECT webhook.*, (SELECT COUNT(*) FROM delivery WHERE delivery.community_id = webhook.community_id "
        "AND state = 'waiting') AS waiting FROM webhook WHERE community_id = ?",
        (community_id,),
    )
    if row is None:
        return {"webhook": None, "deliveries": []}
    rows = tx.all(
        "SELECT * FROM delivery WHERE community_id = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        (community_id, LISTED),
    )
    hook = {
        "url": row["url"],
        "createdAt": iso(row["created_at"]),
        "waiting": row["waiting"],
        "missed": row["missed"],
    }
    return {"webhook": hook, "deliveries": [_delivery(each) for each in rows]}


def purge(tx: Transaction, now: int) -> int:
    """Forget old deliveries, so many at most, and say how many there were."""
    return tx.execute(
        "DELETE FROM delivery WHERE id IN (SELECT id FROM delivery WHERE created_at <= ? ORDER BY created_at LIMIT ?)",
        (now - KEPT_SECONDS * 1000, REMOVED_AT_ONCE),
    )


def _written(tx: Transaction, now: int, community_id: str, event: Event, data: Mapping[str, Any]) -> str | None:
    """Its id; None if there is no webhook, or too much waits for it."""
    hook = tx.one(
        "SELECT (SELECT COUNT(*) FROM delivery WHERE delivery.community_id = webhook.community_id "
        "AND state = 'waiting') AS waiting FROM webhook WHERE community_id = ?",
        (community_id,),
    )
    if hook is None:
        return None
    if hook["waiting"] >= MOST_WAITING:
        tx.execute("UPDATE webhook SET missed = missed + 1 WHERE community_id = ?", (community_id,))
        return None
    id = new_id()
    body = jsontext.dumps({"type": event, "timestamp": iso(now), "data": data}).decode()
    tx.execute(
        "INSERT INTO delivery (id, community_id, event, body, created_at, next_at) VALUES (?, ?, ?, ?, ?, ?)",
        (id, community_id, event, body, now, now),
    )
    return id


def _hurry(tx: Transaction, now: int, community_id: str) -> None:
    """Let what waits wait no longer. (Something that is on its way just now may arrive twice.)"""
    tx.execute(
        "UPDATE delivery SET next_at = ? WHERE community_id = ? AND state = 'waiting' AND next_at > ?",
        (now, community_id, now),
    )


def _community(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "slug": row["slug"], "name": row["name"]}


def _delivery(row: Row) -> dict[str, Any]:
    waits = row["state"] == "waiting"
    return {
        "id": row["id"],
        "event": row["event"],
        "state": row["state"],
        "attempts": row["attempts"],
        "createdAt": iso(row["created_at"]),
        "nextAt": iso(row["next_at"]) if waits else None,
        "endedAt": iso(row["ended_at"]) if row["ended_at"] is not None else None,
        "error": row["error"],
    }


def _is_private(host: str) -> bool:
    try:
        # As resolvers read it: `127.1` and `2130706433` are addresses, too.
        address = socket.inet_ntoa(socket.inet_aton(host)) if _NUMBERS.fullmatch(host) else host
        return not http_public.is_public(address)
    except (ValueError, OSError):
        return False
