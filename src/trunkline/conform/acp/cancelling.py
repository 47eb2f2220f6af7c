"""Checks of `session/cancel`: the turn ends with `cancelled`, and the session goes on."""

from __future__ import annotations

from trunkline.conform.acp.scenes import begin, new_session, opened, permission, say, under_way
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpReply, AcpSubject
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.kit import Broken


async def _cancelled(stage: Stage, within: float) -> tuple[AcpSubject, str, AcpReply]:
    """A turn that was cancelled while its answer came."""
    agent, session = await opened(stage)
    turn = await under_way(stage, agent, session)
    agent.notify("session/cancel", {"sessionId": session})
    return agent, session, await agent.answer(turn, within)


def _is_cancelled(reply: AcpReply) -> None:
    if reply.error is not None or reply.result.get("stopReason") != "cancelled":
        raise Broken(
            f"{reply.asked} was answered after `session/cancel` with {reply.shown}, "
            "not with the `stopReason` `cancelled`"
        )


@SUITE.check("acp.cancel.stops", "MUST", "Prompt Turn")
async def cancel_ends_the_turn(stage: Stage) -> None:
    """A turn that is cancelled ends with the `stopReason` `cancelled`, not with an error."""
    _is_cancelled((await _cancelled(stage, stage.target.timeout))[2])


@SUITE.check("acp.cancel.soon", "SHOULD", "Prompt Turn")
async def cancel_ends_it_soon(stage: Stage) -> None:
    """A turn that is cancelled ends soon: the agent stops its model and its tools."""
    await _cancelled(stage, stage.target.patience)


@SUITE.check("acp.cancel.permission", "MUST", "Prompt Turn")
async def cancel_ends_what_waits(stage: Stage) -> None:
    """Cancelled while a permission is open, which the client answers with `cancelled`, the turn ends so, too."""
    agent, session = await opened(stage, "hold")
    turn = begin(agent, session, stage.prompt("write"))
    request = await permission(stage, agent, turn)
    agent.notify("session/cancel", {"sessionId": session})
    agent.policy = "cancelled"
    agent.answer_permission(request, None)
    _is_cancelled(await agent.answer(turn, stage.target.timeout))
    if stage.file("write").exists():
        raise Broken("the tool was used although its turn was cancelled")


@SUITE.check("acp.cancel.again", "MUST", "Prompt Turn")
async def sessions_survive(stage: Stage) -> None:
    """After a cancelled turn the session takes the next prompt."""
    agent, session, _ = await _cancelled(stage, stage.target.timeout)
    reply = await say(stage, agent, session, "hello")
    if reply.result.get("stopReason") == "cancelled" or not reply.text(session):
        raise Broken(f"after a cancelled turn, {reply.asked} was answered with {reply.shown} and no text")


@SUITE.check("acp.cancel.idle", "MUST", "Prompt Turn")
async def idle_sessions_do_not_mind(stage: Stage) -> None:
    """`session/cancel` without a turn does nothing: the next prompt is answered as usual."""
    agent, session = await opened(stage)
    agent.notify("session/cancel", {"sessionId": session})
    reply = await say(stage, agent, session, "hello")
    if reply.result.get("stopReason") == "cancelled" or not reply.text(session):
        raise Broken(f"after a `session/cancel` without a turn, {reply.asked} was answered with {reply.shown}")


@SUITE.check("acp.cancel.other", "MUST", "Prompt Turn")
async def others_go_on(stage: Stage) -> None:
    """`session/cancel` of one session does not end the turn of another."""
    agent, session = await opened(stage)
    other = await new_session(stage, agent)
    turn = await under_way(stage, agent, session)
    agent.notify("session/cancel", {"sessionId": other})
    await agent.listen(stage.target.quiet)
    reply = agent.answer_to(turn.id)
    result = reply.get("result") if reply is not None else None
    if isinstance(result, dict) and result.get("stopReason") == "cancelled":
        raise Broken("a turn was cancelled by the `session/cancel` of another session")
