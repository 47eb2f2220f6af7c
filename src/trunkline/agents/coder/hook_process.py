"""One hook as a process: what it is told, its time, and what it says. Nothing of it is left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from trunkline.base.process import SpawnError
from trunkline.base.process_async import AsyncChild, spawn_async
from trunkline.base.values import Value

#: What is kept of each output: far more than a decision needs. The rest is read, and thrown away.
MOST_OUTPUT_BYTES = 1 << 20
#: How long a hook whose time is over may take to obey: people wait for it.
GRACE_SECONDS = 0.5


class HookRun(Value):
    """What became of it."""

    code: int | None
    """128 + n for signal n; None if it did not end by itself."""
    stdout: str = ""
    stderr: str = ""
    problem: str = ""
    """Why there is no exit code, in words."""
    is_cut: bool = False
    """Whether its standard output is longer than what is kept of it."""


async def run_hook(argv: Sequence[str], told: bytes, *, cwd: str, env: Mapping[str, str], seconds: float) -> HookRun:
    """Run a program that reads `told`. Cancelling ends it, and all that it has started."""
    try:
        child = await spawn_async(argv, cwd=cwd, env=env, stdin="pipe")
    except SpawnError as error:
        return HookRun(None, problem=f"could not be started: {error}")
    try:
        async with asyncio.timeout(seconds):
            return await _finished(child, told)
    except TimeoutError:
        await child.stop(GRACE_SECONDS)
        return HookRun(None, problem=f"did not end within {seconds:g} s, and was stopped")
    finally:
        await child.close()


async def _finished(child: AsyncChild, told: bytes) -> HookRun:
    # One that does not want to hear it is none the worse for it.
    child.write(told)
    child.close_stdin()
    async with asyncio.TaskGroup() as group:
        outputs = [group.create_task(_kept(read)) for read in (child.read_stdout, child.read_stderr)]
    (stdout, is_cut), (stderr, _) = (output.result() for output in outputs)
    return HookRun(await child.wait(), stdout, stderr, is_cut=is_cut)


async def _kept(read: Callable[[], Awaitable[bytes]]) -> tuple[str, bool]:
    kept, size = bytearray(), 0
    while data := await read():
        size += len(data)
        kept += data[: MOST_OUTPUT_BYTES - len(kept)]
    return kept.decode("utf-8", "replace"), size > len(kept)
