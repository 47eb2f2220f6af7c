"""Checks of the end: SIGTERM, exit statuses, and what is left behind."""

from __future__ import annotations

import asyncio
import signal
import time

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.agentproc.agent.suite import in_both
from trunkline.conform.agentproc.agent.turn import Heard, Turning
from trunkline.conform.kit import Broken, NotExercised
from trunkline.wires.agentproc.messages import Ignored, Turn

#: What the shell says of a process that SIGTERM ended.
TERMINATED = 143
#: A process that is being killed may still be seen for a moment.
_DYING_SECONDS = 0.3
_LOOK_SECONDS = 0.02


async def _cut_off(stage: Stage) -> tuple[Turning, Heard]:
    """An answer that SIGTERM cuts off.

    Raises:
        NotExercised: it was over too soon.
        Broken: SIGTERM does not end it.
    """
    turning = await stage.begin(Turn(stage.prompt("long")))
    await turning.speaks(stage.target.timeout)
    if await turning.process.ended(0) is not None:
        raise NotExercised("the answer was over before it could be cut off; the prompt `long` asks for a long one")
    turning.process.signal(signal.SIGTERM)
    heard = await turning.heard(stage.target.exit_seconds)
    if heard is None:
        raise Broken(f"still running {stage.target.exit_seconds:g} s after SIGTERM")
    return turning, heard


@in_both("term.prompt", "SHOULD", "Timeout")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the agent exits promptly, in the middle of an answer."""
    await _cut_off(stage)


@in_both("term.status", "SHOULD", "Exit codes")
async def sigterm_has_its_status(stage: Stage) -> None:
    """After SIGTERM the exit status is 143."""
    _, heard = await _cut_off(stage)
    if heard.exit_code != TERMINATED:
        raise Broken(f"the exit status is {heard.exit_code}")


@in_both("term.flushed", "SHOULD", "Timeout")
async def what_was_said_is_whole(stage: Stage) -> None:
    """After SIGTERM what was said is whole: no line is cut off in the middle."""
    turning, heard = await _cut_off(stage)
    if turning.process.record.unfinished:
        raise Broken(f"the last line is cut off: {turning.process.record.unfinished[:80]!a}")
    if heard.said and isinstance(heard.said[-1], Ignored):
        raise Broken(f"the last line cannot be read: {heard.said[-1].why}")


async def _left(turning: Turning) -> bool:
    """Whether something of the agent's group goes on without it."""
    deadline = time.monotonic() + _DYING_SECONDS
    while left := turning.process.leftovers():
        if time.monotonic() > deadline:
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    if left is None:
        raise NotExercised("this system does not tell which processes there are")
    return False


@in_both("term.children", "SHOULD", "Timeout")
async def sigterm_ends_children(stage: Stage) -> None:
    """After SIGTERM nothing that the agent started goes on."""
    turning, _ = await _cut_off(stage)
    if await _left(turning):
        raise Broken("a process that the agent started still runs")


@in_both("exit.children", "SHOULD", "Exit codes")
async def nothing_is_left(stage: Stage) -> None:
    """When a turn is over, nothing that the agent started goes on."""
    turning = await stage.begin(Turn(stage.prompt("hello")))
    if await turning.heard(stage.target.timeout) is None:
        raise NotExercised("the turn does not end")
    if await _left(turning):
        raise Broken("a process that the agent started still runs")


@in_both("error.told", "SHOULD", "Errors")
async def failures_are_told(stage: Stage) -> None:
    """A turn that fails says why, in an error for the user."""
    heard = await stage.take(Turn(stage.prompt("fail")))
    if not heard.failed():
        raise NotExercised("the turn did not fail; the prompt `fail` is to make it fail")
    if not (heard.error or "").strip():
        raise Broken(f"the exit status is {heard.exit_code}, and no error says why")
