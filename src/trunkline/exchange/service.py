"""A part of a running exchange, as its supervisor sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

#: What a sentence in the place of a command begins with: there is something to look at.
SENTENCES = ("open", "watch")


class Service(Protocol):
    """Something reachable from outside that runs in this process's event loop."""

    @property
    def name(self) -> str:
        """A short name for lists and logs."""

    @property
    def where(self) -> str:
        """The address; valid once `run` has called `reachable`."""

    @property
    def about(self) -> str:
        """What the address is for, in a few words; valid when `where` is."""

    @property
    def trial(self) -> str:
        """A command that tries it."""

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set; call `reachable` as soon as somebody could connect.

        Returning early, or raising, counts as a crash: it is run again. Each run starts afresh, whatever an earlier one
        left unfinished. A `ConfigError` is not a crash: somebody has to change something first.
        """
