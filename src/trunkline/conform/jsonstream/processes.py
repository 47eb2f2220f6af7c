"""Is the process that a tool started still running? Seen from outside, by the file that it keeps writing."""

from __future__ import annotations

import asyncio
import time

from trunkline.conform.jsonstream.stage import TICK_FILE, Stage
from trunkline.conform.kit import NotExercised

#: A command that shows for a minute that it lives, 20 times a second.
TICKING = f"for i in $(seq 1200); do echo $i > {TICK_FILE}; sleep 0.05; done"
#: Between two looks at the file.
_LOOK_SECONDS = 0.02
#: Several ticks: a process that lives would have shown it.
_STILL_SECONDS = 0.4


async def ticks(stage: Stage) -> None:
    """Wait until the command shows that it runs.

    Raises:
        NotExercised: it did not.
    """
    first = _content(stage)
    deadline = time.monotonic() + stage.target.timeout
    while _content(stage) == first:
        if time.monotonic() > deadline:
            raise NotExercised("the command did not start")
        await asyncio.sleep(_LOOK_SECONDS)


async def is_still(stage: Stage) -> bool:
    """Whether the command has stopped; what is just being killed may write once more."""
    for _ in range(2):
        before = _content(stage)
        await asyncio.sleep(_STILL_SECONDS)
        if before == _content(stage):
            return True
    return False


def _content(stage: Stage) -> bytes:
    try:
        return (stage.workspace / TICK_FILE).read_bytes()
    except OSError:
        return b""
