"""What the load needs of a client of any wire. The others in this folder are such clients, one wire to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tests.chaos.cluster.hearing import Hearing
from tests.support.cluster_process import NodeProcess

#: How long one try of a client may take before it tries another node.
TRY_SECONDS = 8.0
PAUSE_SECONDS = 0.1

#: Any node.
Choose = Callable[[], NodeProcess]
#: Takes an event that a client was shown: its number, its kind, and what tells it from another.
Saw = Callable[[int, str, Any], None]


class WireClient(Protocol):
    """Somebody in one session, with a connection of some kind."""

    async def converse(self, hearing: Hearing) -> None:
        """Say the message until it is known to be taken in, and listen until its end was told.

        Where the wire has no id for a message it is said once: it would be another one the next time. Then this ends
        with the connection, and so it does where the wire does not tell again what was missed: `is_taken` and `ends`
        say how far it came.
        """

    def close(self) -> None:
        """Hang up. May be called again, and in the middle of a message."""
