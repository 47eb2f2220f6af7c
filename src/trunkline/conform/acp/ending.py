"""Checks of the end: of standard input, by SIGTERM, and that nothing is left."""

from __future__ import annotations

import asyncio
import signal
import time

from trunkline.conform.acp.scenes import opened, say, under_way
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpSubject
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised

#: A process that is being killed may still be seen for a moment.
_DYING_SECONDS = 0.5
_LOOK_SECONDS = 0.02


async def _left(stage: Stage) -> tuple[AcpSubject, int]:
    """An agent whose input ended after a turn: how it exited."""
    agent, session = await opened(stage)
    await say(stage, agent, session, "hello")
    agent.close_input()
    return agent, await _exit(stage, agent, "standard input ended")


async def _exit(stage: Stage, agent: AcpSubject, after: str) -> int:
    code = await agent.process.ended(stage.target.patience)
    if code is None:
        raise Broken(f"still running {stage.target.patience:g} s after {after}")
    return code


@SUITE.check("acp.exit.eof", "SHOULD", "Transports")
async def the_end_of_input_ends_it(stage: Stage) -> None:
    """When standard input ends, the agent exits."""
    await _left(stage)


@SUITE.check("acp.exit.status", "SHOULD", "Transports")
async def the_status_is_0(stage: Stage) -> None:
    """When standard input ends between turns, the exit status is 0."""
    _, code = await _left(stage)
    if code != 0:
        raise Broken(f"the exit status is {code}, not 0, after the end of standard input")


@SUITE.check("acp.exit.turn", "SHOULD", "Transports")
async def the_end_of_input_ends_turns(stage: Stage) -> None:
    """When standard input ends during a turn, the agent exits, too."""
    agent, session = await opened(stage)
    await under_way(stage, agent, session)
    agent.close_input()
    await _exit(stage, agent, "standard input ended during a turn")


@SUITE.check("acp.exit.sigterm", "SHOULD", "Transports")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the agent exits."""
    agent, session = await opened(stage)
    await say(stage, agent, session, "hello")
    agent.process.signal(signal.SIGTERM)
    await _exit(stage, agent, "SIGTERM")


@SUITE.check("acp.exit.children", "SHOULD", "Transports")
async def nothing_is_left(stage: Stage) -> None:
    """When the agent has exited, nothing that it started keeps running."""
    agent, _ = await _left(stage)
    deadline = time.monotonic() + _DYING_SECONDS
    while left := agent.process.leftovers():
        if time.monotonic() > deadline:
            raise Broken(f"{len(left)} processes that the agent started are still running after its exit")
        await asyncio.sleep(_LOOK_SECONDS)
    if left is None:
        raise NotExercised("this system does not list its processes")
