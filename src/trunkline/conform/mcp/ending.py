"""Checks of the end of a program: of standard input, by SIGTERM, and that nothing is left."""

from __future__ import annotations

import signal

from trunkline.conform.expect import exits, expect, is_outlived
from trunkline.conform.kit import NotApplicable
from trunkline.conform.mcp.link import StdioLink
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE


async def _program(stage: Stage) -> StdioLink:
    if stage.target.url is not None or not isinstance(link := await stage.ready(), StdioLink):
        raise NotApplicable("the server is not a program that the kit starts")
    return link


@SUITE.check("mcp.exit.eof", "SHOULD", "Lifecycle: shutdown")
async def the_end_of_input_ends_it(stage: Stage) -> None:
    """When standard input ends, the server exits."""
    link = await _program(stage)
    link.process.close_input()
    await exits(link.process, stage.target.patience, "the end of standard input")


@SUITE.check("mcp.exit.sigterm", "SHOULD", "Lifecycle: shutdown")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the server exits."""
    link = await _program(stage)
    link.process.signal(signal.SIGTERM)
    await exits(link.process, stage.target.patience, "SIGTERM")


@SUITE.check("mcp.exit.children", "SHOULD", "Lifecycle: shutdown")
async def nothing_is_left(stage: Stage) -> None:
    """When the server has exited, nothing that it started keeps running."""
    link = await _program(stage)
    link.process.close_input()
    await exits(link.process, stage.target.patience, "the end of standard input")
    expect(not await is_outlived(link.process), "a process that the server started is still running after its exit")
