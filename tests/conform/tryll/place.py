"""The server that tests put before the kit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Served, served


@asynccontextmanager
async def serving(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    """A server that is closed when it has noticed that the kit is gone, and that nothing is left of what it did."""
    async with served(folder, **settings) as made:
        yield made
        async with asyncio.timeout(PATIENCE_SECONDS):
            while made.server.connections or made.server.turns or made.server.agents:  # noqa: ASYNC110  (it does not tell)
                await asyncio.sleep(0.01)
