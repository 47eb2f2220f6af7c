"""Checks of the end: the agent hears of it, has time for it, and does not outlive the host."""

from __future__ import annotations

from trunkline.conform.jsonstream_host.part import ANSWER, CLOSE, OPEN, end, say, start, text, turn
from trunkline.conform.jsonstream_host.stage import Stage
from trunkline.conform.jsonstream_host.suite import SUITE, well
from trunkline.conform.kit import Broken, NotExercised

#: What an agent takes to put things in order; hosts wait for two seconds.
ORDER_SECONDS = 0.5


@SUITE.check("jh.end.told", "MUST", "3.5")
async def the_end_is_told(stage: Stage) -> None:
    """The host ends a conversation by closing the agent's standard input, or by SIGTERM."""
    well(await stage.play(*turn(text(ANSWER))))
    if await stage.agent_lives():
        raise Broken("the agent is still running although the host has ended")
    if stage.input_ended() is None and not stage.has("SIGTERM"):
        raise Broken("the agent was killed without the end of its input or SIGTERM")


@SUITE.check("jh.end.time", "SHOULD", "3.5")
async def the_agent_may_put_things_in_order(stage: Stage) -> None:
    """The agent has a moment to clean up: it is not killed right after being told to end."""
    tidy = (["wait", ORDER_SECONDS], ["mark", "tidy"], ["exit", 0])
    steps = (["on", "SIGTERM", *tidy], ["end", stage.target.lifetime], *tidy)
    await stage.play(*OPEN, say(start(), text(ANSWER), end()), *steps)
    if await stage.agent_lives():
        raise NotExercised("the agent was not told to end")
    if not stage.has("tidy"):
        raise Broken(f"the agent was killed before it could clean up, which takes {ORDER_SECONDS:g} s")


@SUITE.check("jh.end.deaf", "SHOULD", "3.5")
async def an_agent_that_stays_is_ended(stage: Stage) -> None:
    """An agent that ignores both the end of its input and SIGTERM is killed, in bounded time."""
    # Deaf before it speaks: a host that ends it on its last word must meet the same agent.
    steps = (*OPEN, ["ignore", "SIGTERM"], say(start(), text(ANSWER), end()), ["wait", stage.target.lifetime])
    seen = await stage.play(*steps, within=min(stage.target.timeout, 4 * stage.target.patience))
    if ANSWER not in seen.stdout:
        raise NotExercised("there was no answer")
    if await stage.agent_lives():
        raise Broken("the agent is still running although the host has ended")


@SUITE.check("jh.end.interrupt", "SHOULD", "2.2")
async def ctrl_c_stops_the_agent(stage: Stage) -> None:
    """When the user interrupts the host (SIGINT), the agent gets `stop`, the end of its input or SIGTERM, and both end
    in bounded time.
    """
    running = await stage.begin(*OPEN, say(start(), text("conform-half")), ["mark", "half"], CLOSE)
    if not await stage.comes("half", stage.target.timeout):
        raise NotExercised("no message reached the agent")
    stage.interrupt(running)
    seen = await stage.seen(running, stage.target.timeout)
    if await stage.agent_lives():
        raise Broken("the agent is still running although the host has ended")
    if not seen.of("stop") and stage.input_ended() is None and not stage.has("SIGTERM"):
        raise Broken("the agent was killed without warning")
