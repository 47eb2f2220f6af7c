"""What is logged while somebody talks to an agent: a line for them, in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trunkline.cli.agent_options import EnvironmentFilter


@contextmanager
def logged(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell what is logged in the block, from whatever thread, in the loop that runs now."""
    handler = _LineHandler(tell, asyncio.get_running_loop())
    logger = logging.getLogger("trunkline")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _LineHandler(logging.Handler):
    def __init__(self, tell: Callable[[str], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(EnvironmentFilter())
        self._tell = tell
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        self._loop.call_soon_threadsafe(self._tell, self.format(record))
