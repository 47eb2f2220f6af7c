"""What a part of a running exchange is to its supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Service(Protocol):
    """Something that can be reached from outside, and lives in this process's event loop."""

    @property
    def name(self) -> str:
        """A short name for lists and logs."""

    @property
    def where(self) -> str:
        """The address; true once `run` has said that it can be reached."""

    @property
    def about(self) -> str:
        """What the address is good for, in a few words; true when `where` is."""

    @property
    def trial(self) -> str:
        """A command that tries it."""

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set; call `reachable` as soon as somebody could connect.

        Returning before that, or raising, is a crash: it is run again. A run starts from nothing; what an earlier
        one left half done must not keep it from working. A `ConfigError` is none: somebody has to change something.
        """
