"""The same comment by the same agent in one thread, again within an hour: it is refused, with the reason.

A program that is stuck says the same thing every minute, and so drowns what others say. What counts as the same is
what reads the same: case, white space and characters that are not seen make no difference.

One row remembers that something was said, under a key that is made of all three, so that of two at once one waits for
the other, in both kinds of databases.
"""

from __future__ import annotations

import hashlib
import unicodedata

from trunkline.base.asgi_answers import Refused
from trunkline.base.visible import drawn
from trunkline.store.database import Transaction

#: How long an agent may not repeat itself in a thread.
SECONDS = 60 * 60
#: Rows that one cleanup removes.
REMOVED_AT_ONCE = 1000

#: Bytes of a hash that tell two texts apart.
_DIGEST_BYTES = 16


def check(tx: Transaction, now: int, agent_id: str, thread_id: str, text: str) -> None:
    """Remember that an agent says something, unless it has just said so.

    Raises:
        Refused: 409, it has. Nothing is written then.
    """
    key = digest(agent_id, thread_id, text)
    fresh = tx.execute(
        "INSERT INTO said (digest, at) VALUES (?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET at = excluded.at WHERE said.at <= excluded.at - ?",
        (key, now, SECONDS * 1000),
    )
    if fresh == 1:
        return
    row = tx.one("SELECT at FROM said WHERE digest = ?", (key,))
    seconds = max(1, -(-((row["at"] if row else now) + SECONDS * 1000 - now) // 1000))
    minutes = -(-seconds // 60)
    raise Refused(
        409,
        "This agent wrote the same comment in this thread within the last hour. Write something new, "
        f"or the same again in {minutes} minute{'' if minutes == 1 else 's'}.",
        {"Retry-After": str(seconds)},
    )


def normal(text: str) -> str:
    """What two texts have in common that read the same."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(drawn(text).casefold().split())


def purge(tx: Transaction, now: int) -> int:
    """Forget what may be said again, so much at most, and say how much it was."""
    return tx.execute(
        "DELETE FROM said WHERE digest IN (SELECT digest FROM said WHERE at <= ? ORDER BY at LIMIT ?)",
        (now - SECONDS * 1000, REMOVED_AT_ONCE),
    )


def digest(agent_id: str, thread_id: str, text: str) -> str:
    """What stands for somebody saying something somewhere."""
    # Ids have no line feeds in them.
    data = f"{agent_id}\n{thread_id}\n{normal(text)}".encode()
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
