"""A model's slow beginning, in a thread: what a stop or a ping would have to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from trunkline.core.faults import Fault
from trunkline.models.model import Model


class Warming:
    """Of one conversation's model."""

    def __init__(self) -> None:
        self._under_way: asyncio.Future[None] | None = None

    def start(self, model: Model) -> None:
        """Begin with a model, if that is of use."""
        warm = getattr(model, "warm", None)
        if warm is not None and not getattr(model, "is_warm", False):
            self._under_way = asyncio.get_running_loop().run_in_executor(None, _quietly, warm)

    async def done(self) -> None:
        """Wait until it is over. A turn that is stopped meanwhile leaves it to the next one."""
        if self._under_way is not None and not self._under_way.done():
            await asyncio.shield(self._under_way)


def _quietly(warm: Callable[[], None]) -> None:
    """What goes wrong here goes wrong again with the first question, and is told then."""
    with suppress(Fault):
        warm()
