"""Checks of the end of a program: of standard input, by SIGTERM, and that nothing is left."""

from __future__ import annotations

import asyncio
import signal
import time

from trunkline.conform.kit import Broken, NotApplicable, NotExercised
from trunkline.conform.mcp.link import StdioLink
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE

#: A process that is being killed may still be seen for a moment.
_DYING_SECONDS = 0.5
_LOOK_SECONDS = 0.02


async def _program(stage: Stage) -> StdioLink:
    if stage.target.url is not None or not isinstance(link := await stage.ready(), StdioLink):
        raise NotApplicable("the server is not a program that the kit starts")
    return link


async def _exit(stage: Stage, link: StdioLink, after: str) -> int:
    code = await link.process.ended(stage.target.patience)
    if code is None:
        raise Broken(f"still running {stage.target.patience:g} s after {after}")
    return code


@SUITE.check("mcp.exit.eof", "SHOULD", "Lifecycle: shutdown")
async def the_end_of_input_ends_it(stage: Stage) -> None:
    """When standard input ends, the server exits."""
    link = await _program(stage)
    link.process.close_input()
    await _exit(stage, link, "the end of standard input")


@SUITE.check("mcp.exit.sigterm", "SHOULD", "Lifecycle: shutdown")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the server exits."""
    link = await _program(stage)
    link.process.signal(signal.SIGTERM)
    await _exit(stage, link, "SIGTERM")


@SUITE.check("mcp.exit.children", "SHOULD", "Lifecycle: shutdown")
async def nothing_is_left(stage: Stage) -> None:
    """When the server has exited, nothing that it started keeps running."""
    link = await _program(stage)
    link.process.close_input()
    await _exit(stage, link, "the end of standard input")
    deadline = time.monotonic() + _DYING_SECONDS
    while left := link.process.leftovers():
        if time.monotonic() > deadline:
            raise Broken(f"{len(left)} processes that the server started are still running after its exit")
        await asyncio.sleep(_LOOK_SECONDS)
    if left is None:
        raise NotExercised("this system does not list its processes")
