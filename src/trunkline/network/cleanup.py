"""What time does by itself: closed communities go when their days are over, sessions when they have ended."""

from __future__ import annotations

from trunkline.network import owner_sessions
from trunkline.network.network import Network
from trunkline.network.removal import remove_community
from trunkline.store.database import Transaction

#: Communities that one cleanup removes. What is left waits for the next one, a minute later.
COMMUNITIES = 50
#: Ended sessions that one cleanup removes.
SESSIONS = 1000


async def tidy(network: Network) -> None:
    """Remove what is due. Call it now and then; it does a bounded amount of work."""
    now = network.now()
    await network.database.write(lambda tx: owner_sessions.remove_expired(tx, now, SESSIONS))
    for id in await network.database.read(lambda tx: _due(tx, now)):
        await remove_community(network, id, "system", "cleanup")


def _due(tx: Transaction, now: int) -> list[str]:
    rows = tx.all(
        "SELECT id FROM community WHERE status = 'CLOSED' AND delete_at <= ? ORDER BY delete_at LIMIT ?",
        (now, COMMUNITIES),
    )
    return [row["id"] for row in rows]
