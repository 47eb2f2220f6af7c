"""What a test has opened is closed however it ends: what is left open fails the tests after it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


class Closes(Protocol):
    """A client, a performer, a fleet."""

    async def close(self) -> None:
        """Let go of all that it holds."""


T = TypeVar("T", bound=Closes)


@asynccontextmanager
async def closing(opened: T) -> AsyncIterator[T]:
    """Close it at the end of the block."""
    try:
        yield opened
    finally:
        await opened.close()
