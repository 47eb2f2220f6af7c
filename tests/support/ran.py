"""Programs that run to their end, and what they print."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from tests.support.patience import PATIENCE_SECONDS


class Ran(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str


async def ran(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
    """Run a program that reads nothing. It does not outlive the patience."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), env=env, cwd=cwd, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


async def printed_by(*command: str | Path, env: dict[str, str] | None = None) -> list[str]:
    """The lines that a program prints, which must succeed."""
    done = await ran(*command, env=env)
    assert done.code == 0, done.err
    return done.out.splitlines()
