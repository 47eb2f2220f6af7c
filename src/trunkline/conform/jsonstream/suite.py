"""The suite that the checks of the JSON stream register with, and the conversation that its judges always see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.conform.jsonstream.scenes import approve, ask, deny, request, say, see_out, send
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.kit import NotExercised, Suite


async def tour(stage: Stage) -> None:
    """An ordinary conversation with a bit of everything. What the agent does not join in is left out."""
    async with stage.agent() as agent:
        for step in (_talk, _use_tools, _be_denied, _err):
            await _if_possible(step, stage, agent)
        # Time for what should not come: a second end, a late word.
        await agent.listen(stage.target.quiet)


async def _talk(stage: Stage, agent: Subject) -> None:
    await ask(stage, agent, "hello")
    await ask(stage, agent, "think")
    msg_id = await send(agent, stage.prompt("attachment"), files=[str(stage.workspace / "no-such-file.txt")])
    await see_out(stage, agent, msg_id)


async def _use_tools(stage: Stage, agent: Subject) -> None:
    for prompt, parts in (("read", {}), ("edit", {}), ("image", {}), ("bash", {"command": "echo conform"})):
        await ask(stage, agent, prompt, **parts)
    wanted = await request(stage, agent, "write", "edit")
    await approve(agent, wanted)
    await see_out(stage, agent, wanted.msg_id)
    await see_out(stage, agent, await say(stage, agent, "write-two"))


async def _be_denied(stage: Stage, agent: Subject) -> None:
    wanted = await request(stage, agent, "write-denied", "edit")
    await deny(agent, wanted)
    await see_out(stage, agent, wanted.msg_id)


async def _err(stage: Stage, agent: Subject) -> None:
    await agent.send(type="conform_no_such_command")
    await agent.collect(lambda event: event.type == "error", stage.target.patience)


async def _if_possible(step: Callable[[Stage, Subject], Awaitable[None]], stage: Stage, agent: Subject) -> None:
    try:
        await step(stage, agent)
    except NotExercised as reason:
        agent.record.remark(f"left out: {reason}")


#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "ready", "flags", "start", "line", "shape", "turn", "text", "usage", "error", "tool", "grant", "deny", "mode",
    "stop", "history", "bad", "eof", "sigterm", "dialect",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="js.ready.arrives")
