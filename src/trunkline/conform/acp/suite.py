"""The suite that the checks of ACP agents register with, and the conversation that its judges always see."""

from __future__ import annotations

from trunkline.conform.acp.scenes import begin, finish, opened, say
from trunkline.conform.acp.stage import Stage
from trunkline.conform.kit import CheckStopped, Suite


async def tour(stage: Stage) -> None:
    """An ordinary conversation: a few turns, one with a tool, one that is cancelled, and a request that is refused."""
    agent, session = await opened(stage)
    try:
        await say(stage, agent, session, "hello")
        await say(stage, agent, session, "write")
        turn = begin(agent, session, stage.prompt("long"))
        await agent.until(lambda: len(agent.heard) > turn.since, stage.target.timeout)
        agent.notify("session/cancel", {"sessionId": session})
        await finish(stage, agent, turn)
    except CheckStopped as problem:
        agent.process.record.remark(f"left out: {problem}")
    await agent.ask("conform/no_such_method", {}, stage.target.patience)
    # Time for what should not come: a late word, a second answer.
    await agent.listen(stage.target.quiet)
    agent.close_input()
    await agent.process.ended(stage.target.patience)


#: The second part of the ids, in the order in which a client meets them.
_GROUPS = (
    "init", "auth", "rpc", "line", "session", "prompt", "update", "tool", "permission", "cancel", "load", "resume",
    "list", "close", "fork", "delete", "mode", "content", "bad", "exit",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="acp.init.answer")
