"""Waiting for a session that its last process is about to let go of.

A host that ends an agent and starts the next one at once must not lose the message that it has for it: the first one
may still be ending its tools. Whoever is known to be ending is waited for longer than one of whom nothing is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from trunkline.core.faults import SessionHeld

#: How long a process may take to let go of a session, as far as anybody knows: the end of an agent takes less.
HELD_SECONDS = 5.0
#: How long one that is known to be ending is waited for: hosts wait half a minute for an agent to be ready.
ENDING_SECONDS = 20.0
#: How often is looked whether it has let go.
LOOK_SECONDS = 0.05

T = TypeVar("T")


def when_free(
    take: Callable[[], T],
    seconds: float = HELD_SECONDS,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What `take` takes, as soon as it can be had. For where no event loop runs.

    `seconds` is for a holder of whom it is not known that it is ending. Nobody waits for the process that started it,
    which waits in turn.

    Raises:
        SessionHeld: it is still held.
    """
    begun = clock()
    while True:
        try:
            return take()
        except SessionHeld as held:
            if not _is_worth_waiting(held, clock() - begun, seconds):
                raise
        sleep(LOOK_SECONDS)


async def until_free(take: Callable[[], T], seconds: float = HELD_SECONDS, *, tell: Callable[[str], None]) -> T:
    """The same while the event loop goes on. `tell` hears once what is waited for.

    Raises:
        SessionHeld: it is still held.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    begun, told = loop.time(), False
    while True:
        try:
            return take()
        except SessionHeld as held:
            if not _is_worth_waiting(held, loop.time() - begun, seconds):
                raise
            if not told:
                told = True
                tell(f"{held.message} Waiting for it to be released.")
        await asyncio.sleep(LOOK_SECONDS)


def _is_worth_waiting(held: SessionHeld, waited: float, seconds: float) -> bool:
    return not held.above and waited < (ENDING_SECONDS if held.ending else seconds)
