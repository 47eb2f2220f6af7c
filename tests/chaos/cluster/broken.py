"""Nodes with something missing, for the checker to find.

python -m tests.chaos.cluster.broken fencing up --config trunkline.toml
"""

from __future__ import annotations

import sys
from typing import Any


def _without_fencing() -> None:
    from trunkline.store.jetstream.stream import SessionStream

    publish = SessionStream.publish

    async def unfenced(self: SessionStream, subject: str, data: bytes, **more: Any) -> int:
        if not more.get("about"):
            return await publish(self, subject, data, **more)
        headers = {**(more.get("headers") or {}), "Nats-Msg-Id": more.get("id", "")}
        found = await self.context.publish(subject, data, headers=headers)
        return int(found.seq)

    SessionStream.publish = unfenced  # type: ignore[method-assign]
    # Without its own look at the clock, either: a node that was stopped goes on as if nothing had happened.
    from trunkline.exchange.cluster.nodes import Nodes

    Nodes.is_held = property(lambda self: not self._is_lost)  # type: ignore[assignment,method-assign]
    Nodes._lose = lambda self, why: None  # type: ignore[method-assign]


def _without_leases() -> None:
    from trunkline.exchange.cluster.nodes import Nodes

    is_alive = Nodes.is_alive

    def alone(self: Nodes, name: str, run: str) -> bool:
        """Only we are alive."""
        return name == self.me.name and is_alive(self, name, run)

    Nodes.is_alive = alone  # type: ignore[method-assign]


def _with_retries() -> None:
    from trunkline.exchange import live_session, session_opening

    vars(live_session)["begun"] = lambda *args, **more: None
    assert hasattr(session_opening, "begun_in")
    vars(session_opening)["begun_in"] = lambda items, queued: []


BREAKAGES = {"fencing": _without_fencing, "leases": _without_leases, "retries": _with_retries}


if __name__ == "__main__":
    if sys.argv[1] in BREAKAGES:
        BREAKAGES[sys.argv[1]]()
    sys.argv[1:2] = []
    from trunkline.cli import main

    main()
