"""Our own programs for work that must be possible to kill: a pattern or a document can keep Python busy for good.

Such a program is a module of this package with a `main`, run by the same Python. What it prints is the result, what it
prints to standard error the reason why there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from trunkline.base.values import Value


class Ended(Value):
    """How a program ended. `code` is `None` if it was stopped, because of the time or because enough was read."""

    code: int | None
    complaint: str
    timed_out: bool = False


async def collect(argv: Sequence[str], cwd: str, take: Callable[[bytes], bool], seconds: float) -> Ended:
    """Run a program and hand its output to `take` as it comes.

    It ends by itself, or is ended when `take` returns false or time is up. Nothing of it is left when this returns,
    also by being cancelled.

    Raises:
        SpawnError: it could not be started.
    """
    from trunkline.base.process_async import spawn_async

    async with await spawn_async(argv, cwd=cwd) as child:
        complaint = child.keep_stderr_tail()
        try:
            async with asyncio.timeout(seconds):
                while data := await child.read_stdout():
                    if not take(data):
                        return Ended(None, "")
                code = await child.wait()
                await child.drained()
        except TimeoutError:
            return Ended(None, complaint.text(), timed_out=True)
        return Ended(code, complaint.text())
