"""Checks of the end: SIGTERM, exit statuses, and what is left behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.agentproc.agent.suite import in_both
from trunkline.conform.agentproc.agent.turn import EndedTurn, Turning
from trunkline.conform.expect import is_outlived
from trunkline.conform.kit import Broken, NotExercised
from trunkline.wires.agentproc.messages import Ignored, TurnRequest

#: What the shell says of a process that SIGTERM ended.
TERMINATED = 143
#: How often an agent that is fast is tried: its answer may be over before the signal can reach it.
TRIES = 3
#: An agent that is silent for this long before its answer can be interrupted in the middle of that. In a shorter
#: silence the signal might meet an interpreter that is still starting, which says nothing about the agent.
SILENT_SECONDS = 1.0
#: A turn that has said all it has to say ends sooner than this.
LINGERING_SECONDS = 0.5

#: What is wrong with an agent that was interrupted; None if nothing is.
Problem = Callable[[Turning, EndedTurn], Awaitable[str | None]]


async def _interrupted(stage: Stage, problem: Problem) -> None:
    """Interrupt an answer with SIGTERM, and look for a problem then.

    What is seen counts only if the turn was really cut off: another one, left alone, goes on from there. Without that
    it would be chance whether the signal or the agent's own end came first.

    Raises:
        NotExercised: the answer was over too soon, each time.
        Broken: there is a problem, or SIGTERM does not end it.
    """
    silence: float | None = None
    for _ in range(TRIES):
        turning = await stage.begin(TurnRequest(stage.prompt("long")))
        silence = await _wait_for_the_moment(stage, turning, silence)
        if await turning.process.ended(0) is not None:
            continue
        turning.process.signal(signal.SIGTERM)
        heard = await turning.heard(stage.target.exit_seconds)
        if heard is None:
            raise Broken(f"still running {stage.target.exit_seconds:g} s after SIGTERM")
        found = await problem(turning, heard)
        if not await _goes_on(stage, heard):
            continue
        if found is not None:
            raise Broken(found)
        return
    raise NotExercised(
        "the answer was finished before SIGTERM could interrupt it; the prompt `long` must ask for a long one"
    )


async def _wait_for_the_moment(stage: Stage, turning: Turning, silence: float | None) -> float:
    """Wait for the beginning of the answer, or, where a long silence is known to come before it, for its middle.

    Gives how long the silence is.
    """
    if silence is not None and silence >= SILENT_SECONDS:
        await turning.speaks(silence / 2)
        return silence
    await turning.speaks(stage.target.timeout)
    return time.monotonic() - turning.process.began


async def _goes_on(stage: Stage, cut_off: EndedTurn) -> bool:
    """Whether a turn that is left alone says more than one that was interrupted, or at least takes longer for it."""
    alone = await stage.begin(TurnRequest(stage.prompt("long")))
    most = len(cut_off.text)
    await alone.process.until(lambda: len(alone.text) >= most, stage.target.timeout)
    more = await alone.process.until(lambda: len(alone.text) > most, LINGERING_SECONDS)
    ended = await alone.process.ended(0) is not None
    await alone.process.close()
    return more or not ended


async def _no_problem(turning: Turning, heard: EndedTurn) -> str | None:
    return None


@in_both("term.prompt", "SHOULD", "Timeout")
async def sigterm_ends_it(stage: Stage) -> None:
    """After SIGTERM the agent exits promptly, even during an answer."""
    await _interrupted(stage, _no_problem)


@in_both("term.status", "SHOULD", "Exit codes")
async def sigterm_has_its_status(stage: Stage) -> None:
    """After SIGTERM the exit status is 143."""

    async def problem(turning: Turning, heard: EndedTurn) -> str | None:
        return None if heard.exit_code == TERMINATED else f"the exit status is {heard.exit_code}"

    await _interrupted(stage, problem)


@in_both("term.flushed", "SHOULD", "Timeout")
async def what_was_said_is_whole(stage: Stage) -> None:
    """After SIGTERM the output is complete: no line is cut off."""

    async def problem(turning: Turning, heard: EndedTurn) -> str | None:
        if turning.process.record.unfinished:
            return f"the last line is cut off: {turning.process.record.unfinished[:80]!a}"
        if heard.said and isinstance(heard.said[-1], Ignored):
            return f"the last line cannot be read: {heard.said[-1].why}"
        return None

    await _interrupted(stage, problem)


@in_both("term.children", "SHOULD", "Timeout")
async def sigterm_ends_children(stage: Stage) -> None:
    """After SIGTERM nothing that the agent started keeps running."""

    async def problem(turning: Turning, heard: EndedTurn) -> str | None:
        return "a process that the agent started is still running" if await is_outlived(turning.process) else None

    await _interrupted(stage, problem)


@in_both("exit.children", "SHOULD", "Exit codes")
async def nothing_is_left(stage: Stage) -> None:
    """When a turn is over, nothing that the agent started keeps running."""
    turning = await stage.begin(TurnRequest(stage.prompt("hello")))
    if await turning.heard(stage.target.timeout) is None:
        raise NotExercised("the turn does not end")
    if await is_outlived(turning.process):
        raise Broken("a process that the agent started is still running")


@in_both("error.told", "SHOULD", "Errors")
async def failures_are_told(stage: Stage) -> None:
    """A turn that fails gives the user an error with the reason."""
    heard = await stage.take(TurnRequest(stage.prompt("fail")))
    if not heard.failed():
        raise NotExercised("the turn did not fail; the prompt `fail` must make it fail")
    if not (heard.error or "").strip():
        raise Broken(f"the exit status is {heard.exit_code}, and no error says why")
