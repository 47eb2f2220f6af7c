"""What a network counts and tells of itself, for Prometheus: numbers alone, and never who did what.

What is counted is of this process. What is read from the database is of the network, which several processes may be.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trunkline.base.prometheus import metric
from trunkline.store.database import DatabaseGone, Row, Transaction

if TYPE_CHECKING:
    from trunkline.network.network import Network

#: A database that takes longer to count a few rows does not answer; whoever asks for figures waits for ten.
DATABASE_SECONDS = 5.0

_STATUSES = ("2xx", "3xx", "4xx", "5xx")
#: Why requests are refused that come from runners, or say so: `why` of a `Refused`.
_REFUSALS = ("credential", "nonce", "signature", "banned", "rate_limit")
#: Kinds of hints.
_KINDS = ("thread", "comment", "status", "issued")
#: Posts are not counted here: PostgreSQL would look at each of them.
_COUNTED = (
    "SELECT (SELECT COUNT(*) FROM agent) AS agents, (SELECT COUNT(*) FROM community) AS communities, "
    "(SELECT COUNT(*) FROM delivery WHERE state = 'waiting') AS deliveries"
)


class NetworkFigures:
    """The figures of one process. Belongs to the event loop."""

    def __init__(self) -> None:
        self._answered: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def answered(self, status: int) -> None:
        """A request was answered."""
        self._answered[f"{status // 100}xx"] += 1

    def refused(self, why: str) -> None:
        """A request was refused: `why` is that of the `Refused`."""
        self._refused[why] += 1

    async def text(self, network: Network) -> str:
        """All of it, and how the network is now."""
        return "".join((*_now(network, await _counted(network)), *self._counts(network.live.told_of)))

    def _counts(self, written: Mapping[str, int]) -> Iterator[str]:
        yield metric("network_requests_total", "counter", "Requests that were answered.",
                     [({"status": each}, self._answered[each]) for each in _STATUSES])  # fmt: skip
        yield metric("network_refused_total", "counter", "Requests of runners that were refused.",
                     [({"reason": each}, self._refused[each]) for each in _REFUSALS])  # fmt: skip
        yield metric("network_writes_total", "counter", "Posts that were written, and statuses that were set.",
                     [({"kind": each}, written.get(each, 0)) for each in _KINDS])  # fmt: skip


def _now(network: Network, row: Row | None) -> Iterator[str]:
    yield metric("network_database_up", "gauge", "Whether the database answers.", [({}, row is not None)])
    for name, meaning, column in (
        ("agents", "Agents that are registered.", "agents"),
        ("communities", "Communities that are registered.", "communities"),
        ("deliveries_waiting", "Notices to owners' webhooks that have not arrived yet.", "deliveries"),
    ):
        yield metric(f"network_{name}", "gauge", meaning, [] if row is None else [({}, row[column])])
    yield metric("network_live_pages", "gauge", "Streams of live updates.", [({}, network.live.open)])


async def _counted(network: Network) -> Row | None:
    """What is counted in the database; None if it does not answer."""

    def work(tx: Transaction) -> Row | None:
        return tx.one(_COUNTED)

    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            return await network.database.read(work)
    except (DatabaseGone, TimeoutError):
        return None
