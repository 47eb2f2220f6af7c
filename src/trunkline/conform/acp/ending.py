"""Checks of the end: of standard input, by SIGTERM, and that nothing is left."""

from __future__ import annotations

import signal

from trunkline.conform.acp.scenes import opened, say, under_way
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpSubject
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.expect import exits, expect, is_outlived, same


async def _left(stage: Stage) -> tuple[AcpSubject, int]:
    """An agent whose input ended after a turn: how it exited."""
    agent, session = await opened(stage)
    await say(stage, agent, session, "hello")
    agent.close_input()
    return agent, await exits(agent.process, stage.target.patience, "standard input ended")


@SUITE.check("acp.exit.eof", "SHOULD", "Transports")
async def the_end_of_input_ends_it(stage: Stage) -> None:
    """When standard input ends, the agent exits."""
    await _left(stage)


@SUITE.check("acp.exit.status", "SHOULD", "Transports")
async def the_status_is_0(stage: Stage) -> None:
    """When standard input ends between turns, the exit status is 0."""
    _, code = await _left(stage)
    same("the exit status after the end of standard input", code, 0)


@SUITE.check("acp.exit.turn", "SHOULD", "Transports")
async def the_end_of_input_ends_turns(stage: Stage) -> None:
    """When standard input ends during a turn, the agent exits, too."""
    agent, session = await opened(stage)
    await under_way(stage, agent, session)
    agent.close_input()
    await exits(agent.process, stage.target.patience, "standard input ended during a turn")


@SUITE.check("acp.exit.sigterm", "SHOULD", "Transports")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the agent exits."""
    agent, session = await opened(stage)
    await say(stage, agent, session, "hello")
    agent.process.signal(signal.SIGTERM)
    await exits(agent.process, stage.target.patience, "SIGTERM")


@SUITE.check("acp.exit.children", "SHOULD", "Transports")
async def nothing_is_left(stage: Stage) -> None:
    """When the agent has exited, nothing that it started keeps running."""
    agent, _ = await _left(stage)
    expect(not await is_outlived(agent.process), "a process that the agent started is still running after its exit")
