"""Is the process that a tool started still running? Seen from outside, by the file that it keeps writing."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from trunkline.base.process_async import spawn_async
from trunkline.conform.jsonstream.stage import TICK_FILE, Stage
from trunkline.conform.kit import NotExercised

#: A command that shows for a minute that it lives, 20 times a second.
TICKING = f"for i in $(seq 1200); do echo $i > {TICK_FILE}; sleep 0.05; done"
#: Between two looks at the file.
_LOOK_SECONDS = 0.02
#: Several ticks: a process that lives would have shown it.
_STILL_SECONDS = 0.4
_STILL_TICKS = 8
#: That a machine is busy has an end.
_TICKING_SECONDS = 30.0


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
    """Whether the command has stopped; what is just being killed may write once more.

    It is watched as long as another such command takes for several ticks: on a busy machine both are slow.

    Raises:
        NotExercised: not even that one ticks.
    """
    command = ["sh", "-c", TICKING]
    async with await spawn_async(command, cwd=str(stage.folder), stdout="null", stderr="null"):
        other = stage.folder / TICK_FILE
        for _ in range(2):
            before = _content(stage)
            await asyncio.gather(asyncio.sleep(_STILL_SECONDS), _several_ticks(other))
            if before == _content(stage):
                return True
    return False


async def _several_ticks(file: Path) -> None:
    deadline = time.monotonic() + _TICKING_SECONDS
    seen: set[bytes] = set()
    while len(seen) < _STILL_TICKS:
        if time.monotonic() > deadline:
            raise NotExercised("a command of the kit's own does not run here")
        await asyncio.sleep(_LOOK_SECONDS)
        seen |= {_read(file)}


def _content(stage: Stage) -> bytes:
    return _read(stage.workspace / TICK_FILE)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
