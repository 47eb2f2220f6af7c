"""Delivers what `webhooks` has written down: signed, one after the other to each address, and again until it arrives.

Signed as the Standard Webhooks say: `webhook-id`, `webhook-timestamp`, and in `webhook-signature` the HMAC-SHA256 of
`id.timestamp.body`. What was taken for delivery when a process ended is taken again: it may arrive twice, with the
same id.

To each address things go in order: while the oldest cannot be delivered, all others wait behind it. Several servers may
deliver from one database: each delivery is claimed before it is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable

from trunkline.base import http_public, jsontext
from trunkline.network import audit
from trunkline.network.network import Network
from trunkline.network.webhooks import SECRET_PREFIX
from trunkline.store.database import DatabaseGone, Row, Transaction

logger = logging.getLogger(__name__)

#: One delivery, from the look-up of the name to the first line of the answer.
SECONDS = 10.0
#: What is claimed and neither delivered nor given back by then was left behind by a process that ended.
CLAIM_SECONDS = 60
#: Between the attempts. The last pause is the one that is repeated.
PAUSES = (10, 60, 5 * 60, 30 * 60, 60 * 60)
#: So old, it is given up.
GIVE_UP_SECONDS = 24 * 60 * 60
#: Addresses that are delivered to at the same time, each one delivery at a time: slow ones do not keep the others.
MOST_AT_ONCE = 8
#: How often to look although nothing was told and nothing is due: for what other servers wrote.
POLL_SECONDS = 15.0
#: A crowd of events is looked at once.
GATHER_SECONDS = 0.3

_SUCCESS = range(200, 300)
#: "I am gone for good": the Standard Webhooks want that to be believed.
_GONE = 410
_MAX_ERROR = 300

Post = Callable[..., Awaitable[int]]


class Deliveries:
    """The one who delivers. Belongs to the event loop.

    Args:
        post: sends; as `http_public.post`.
    """

    def __init__(self, network: Network, post: Post = http_public.post) -> None:
        self._network = network
        self._post = post
        self._task: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Deliver from now on, until it is closed."""
        self._task = asyncio.create_task(self._run(), name="webhooks")

    async def close(self) -> None:
        """Leave the rest for another time."""
        tasks = [task for task in (self._task, *self._busy.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        told = self._network.live.told
        while True:
            seconds = POLL_SECONDS
            try:
                await self._begin()
                seconds = await self.seconds_until_next()
            except DatabaseGone as error:
                logger.warning("webhooks cannot be delivered now: %s", error)
            except Exception:  # whatever it is, the next round may be better
                logger.exception("webhooks cannot be delivered now; it will be tried again")
            try:
                async with asyncio.timeout(seconds):
                    await told.wait()
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                continue
            finally:
                told.clear()

    async def _begin(self) -> bool:
        """Begin with those communities for which something is due. Whether there were any."""
        room = MOST_AT_ONCE - len(self._busy)
        if room <= 0:
            return False
        now = self._network.now()
        due = await self._network.database.read(lambda tx: _due(tx, now))
        begun = [id for id in due if id not in self._busy][:room]
        for id in begun:
            self._busy[id] = asyncio.create_task(self._community(id), name=f"webhook of {id}")
        return bool(begun)

    async def seconds_until_next(self) -> float:
        """Seconds until something is due that is not yet."""
        now = self._network.now()
        row = await self._network.database.read(
            lambda tx: tx.one(f"SELECT MIN(since) AS since FROM {_HEADS} WHERE since > ?", (now,))  # noqa: S608 - fixed text
        )
        since = row["since"] if row else None
        return POLL_SECONDS if since is None else min(POLL_SECONDS, (since - now) / 1000)

    async def _community(self, id: str) -> None:
        """Deliver what is due to one community, until nothing is, or an attempt failed."""
        try:
            while (row := await self._claimed(id)) is not None and await self._delivered(row):
                pass
            # Others may have waited for the room.
            self._network.live.told.set()
        except DatabaseGone as error:
            logger.warning("a webhook could not be delivered: %s", error)
        except Exception:  # what is wrong with one must not stop the others; the claim ends by itself
            logger.exception("a webhook could not be delivered; it will be tried again")
        finally:
            del self._busy[id]

    async def _claimed(self, community_id: str) -> Row | None:
        now = self._network.now()
        return await self._network.database.write(lambda tx: _claim(tx, now, community_id))

    async def _delivered(self, row: Row) -> bool:
        problem, gone = await self._sent(row)
        now = self._network.now()
        if problem is None:
            await self._network.database.write(lambda tx: _arrived(tx, now, row))
            return True
        logger.info("a webhook was not delivered (attempt %d): %s", row["attempts"] + 1, problem)
        await self._network.database.write(lambda tx: _failed(tx, now, row, problem[:_MAX_ERROR], gone))
        return False

    async def _sent(self, row: Row) -> tuple[str | None, bool]:
        """What went wrong, if something did; and whether the address is gone for good."""
        body = self._body(row)
        headers = {"content-type": "application/json", **signed(row["secret"], row["id"], self._network.now(), body)}
        try:
            private = self._network.settings.private_webhooks
            status = await self._post(row["url"], headers, body, seconds=SECONDS, private=private)
        except http_public.NotFetched as error:
            return str(error), False
        except Exception as error:  # a defect of ours, too, is one more attempt that failed
            logger.exception("a webhook could not be sent")
            return f"it could not be sent ({type(error).__name__})", False
        return (None, False) if status in _SUCCESS else (f"the server answers {status}", status == _GONE)

    def _body(self, row: Row) -> bytes:
        told = jsontext.loads(row["body"].encode())
        origin = self._network.settings.app_origin
        if origin is not None and "path" in told["data"]:
            told["data"]["url"] = origin + told["data"]["path"]
        return jsontext.dumps(told)


def signed(secret: str, id: str, now: int, body: bytes) -> dict[str, str]:
    """The headers that prove who sent something, and when; `now` in milliseconds."""
    timestamp = str(now // 1000)
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    mac = hmac.new(key, b".".join((id.encode(), timestamp.encode(), body)), hashlib.sha256)
    signature = f"v1,{b64encode(mac.digest()).decode()}"
    return {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}


#: For each webhook, since when (or from when on) the oldest delivery that waits for it is due.
_HEADS = (
    "(SELECT webhook.community_id, (SELECT next_at FROM delivery WHERE delivery.community_id = webhook.community_id "
    "AND state = 'waiting' ORDER BY created_at, id LIMIT 1) AS since FROM webhook) AS head"
)


def _due(tx: Transaction, now: int) -> list[str]:
    """Communities for which something is due, who waits longest first."""
    rows = tx.all(
        f"SELECT community_id FROM {_HEADS} WHERE since <= ? ORDER BY since LIMIT ?",  # noqa: S608 - fixed text
        (now, 2 * MOST_AT_ONCE),
    )
    return [row["community_id"] for row in rows]


def _claim(tx: Transaction, now: int, community_id: str) -> Row | None:
    """The oldest delivery to a community, if it is due, which nobody else takes for a while."""
    row = tx.one(
        "SELECT delivery.*, webhook.url, webhook.secret, webhook.failures FROM delivery "
        "JOIN webhook ON webhook.community_id = delivery.community_id "
        "WHERE delivery.community_id = ? AND state = 'waiting' ORDER BY delivery.created_at, delivery.id LIMIT 1",
        (community_id,),
    )
    if row is None or row["next_at"] > now:
        return None
    claimed = tx.execute(
        "UPDATE delivery SET attempts = attempts + 1, next_at = ? WHERE id = ? AND attempts = ? AND state = 'waiting'",
        (now + CLAIM_SECONDS * 1000, row["id"], row["attempts"]),
    )
    return row if claimed == 1 else None


def _arrived(tx: Transaction, now: int, row: Row) -> None:
    tx.execute("UPDATE delivery SET state = 'delivered', ended_at = ?, error = NULL WHERE id = ?", (now, row["id"]))
    tx.execute("UPDATE webhook SET failures = 0 WHERE community_id = ? AND failures > 0", (row["community_id"],))


def _failed(tx: Transaction, now: int, row: Row, error: str, gone: bool) -> None:
    """Try it again later, and all others after it; or give up what is too old.

    What an address says that the owner has replaced meanwhile says nothing about the one that they have now.
    """
    community_id = row["community_id"]
    counted = tx.execute(
        "UPDATE webhook SET failures = failures + 1 WHERE community_id = ? AND secret = ?",
        (community_id, row["secret"]),
    )
    if not counted:
        tx.execute("UPDATE delivery SET next_at = ? WHERE id = ? AND state = 'waiting'", (now, row["id"]))
        return
    tx.execute("UPDATE delivery SET error = ? WHERE id = ?", (error, row["id"]))
    oldest = now if gone else now - GIVE_UP_SECONDS * 1000
    given_up = tx.execute(
        "UPDATE delivery SET state = 'given up', ended_at = ?, error = COALESCE(error, ?) "
        "WHERE community_id = ? AND state = 'waiting' AND created_at <= ?",
        (now, error, community_id, oldest),
    )
    later = now + PAUSES[min(row["failures"], len(PAUSES) - 1)] * 1000
    # Of all: the owner is shown when each will be tried, and whichever is the oldest then comes no sooner.
    tx.execute(
        "UPDATE delivery SET next_at = ? WHERE community_id = ? AND state = 'waiting' AND (next_at < ? OR id = ?)",
        (later, community_id, later, row["id"]),
    )
    if given_up:
        detail = {"deliveries": given_up, "error": error}
        audit.record(tx, now, "system", "webhook", "webhook.give_up", community_id=community_id, detail=detail)
