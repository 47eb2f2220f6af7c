"""Our own programs for work that must be possible to kill: a pattern or a document can keep Python busy for good.

Such a program is a module of this package with a `main`, run by the same Python. What it prints is the result, what it
prints to standard error the reason why there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from trunkline.base.values import Value

#: What such a program may use of memory: a small file can hold a very large one.
MEMORY_BYTES = 2 * 1024 * 1024 * 1024


class Ended(Value):
    """How a program ended. `code` is `None` if it was stopped, because of the time or because enough was read."""

    code: int | None
    complaint: str
    timed_out: bool = False


async def collect(
    argv: Sequence[str], cwd: str, take: Callable[[bytes], bool], seconds: float, given: bytes | None = None
) -> Ended:
    """Run a program and hand its output to `take` as it comes. `given` is what it reads from its standard input.

    It ends by itself, or is ended when `take` returns false or time is up. Nothing of it is left when this returns,
    also by being cancelled.

    Raises:
        SpawnError: it could not be started.
    """
    from trunkline.base.process_async import spawn_async

    async with await spawn_async(argv, cwd=cwd, stdin="null" if given is None else "pipe") as child:
        complaint = child.keep_stderr_tail()
        if given is not None:
            child.write(given)
            child.close_stdin()
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


def limit_memory() -> None:
    """In such a program: keep what it reads from taking all the memory that there is."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
