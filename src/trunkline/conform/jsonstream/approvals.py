"""Checks of who may run what: grants, denials and modes."""

from __future__ import annotations

from trunkline.conform.jsonstream.scenes import (
    approve,
    asked,
    deny,
    greet,
    of,
    request,
    see_out,
    text_of,
    two_requests,
    unasked,
    unbidden,
)
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised

#: A reason that no agent would make up.
REASON = "conform-reason-7351: the kit said no"


async def _granted(stage: Stage, agent: Subject, scope: str) -> None:
    wanted = await request(stage, agent, "write", "edit")
    await approve(agent, wanted, scope)
    await see_out(stage, agent, wanted.msg_id)


@SUITE.check("js.grant.once", "MUST", "2.3")
async def once_is_once(stage: Stage) -> None:
    """`once` approves this call only: the next of its kind needs an approval again."""
    async with stage.agent() as agent:
        await _granted(stage, agent, "once")
        await asked(stage, agent, "write-again", "edit", " after an approval for one call only")


@SUITE.check("js.grant.always", "MUST", "2.3")
async def always_is_for_the_session(stage: Stage) -> None:
    """`always` approves later calls of the same tool for the session."""
    async with stage.agent() as agent:
        await _granted(stage, agent, "always")
        await unasked(stage, agent, "write-again", "edit", " although `always` was granted")


@SUITE.check("js.grant.category", "MUST", "2.3")
async def always_covers_the_category(stage: Stage) -> None:
    """`always` covers the other tools of the same category."""
    async with stage.agent() as agent:
        await _granted(stage, agent, "always")
        await unasked(stage, agent, "edit", "edit", " although `always` was granted for its category")


@SUITE.check("js.grant.other-category", "MUST", "2.3")
async def always_covers_no_other(stage: Stage) -> None:
    """`always` does not cover other categories."""
    async with stage.agent() as agent:
        await _granted(stage, agent, "always")
        await asked(stage, agent, "bash", "exec", " after `always` for `edit`", command="echo conform")


@SUITE.check("js.grant.pending", "SHOULD", "2.3")
async def always_releases_what_waits(stage: Stage) -> None:
    """`always` also releases pending calls of the category."""
    async with stage.agent() as agent:
        first, second = await two_requests(stage, agent)
        await approve(agent, first, "always")
        running = of("tool_running", call_id=second.call_id)
        await agent.expect("`tool_running` of the other pending call", running, stage.target.patience)


@SUITE.check("js.grant.modes", "SHOULD", "2.3")
async def grants_survive_modes(stage: Stage) -> None:
    """What `always` granted stays granted when the mode changes."""
    async with stage.agent() as agent:
        await _granted(stage, agent, "always")
        await agent.send(type="set_mode", mode="yolo")
        await agent.send(type="set_mode", mode="default")
        await unasked(stage, agent, "write-again", "edit", " although `always` was granted before the mode changed")


async def _denied(stage: Stage, agent: Subject) -> tuple[str, str]:
    """A call that has just been denied: message, call."""
    wanted = await request(stage, agent, "write-denied", "edit")
    await deny(agent, wanted, REASON)
    return wanted.msg_id, wanted.call_id


@SUITE.check("js.deny.cancelled", "MUST", "2.4")
async def denied_calls_are_cancelled(stage: Stage) -> None:
    """A denied call is reported as `tool_cancelled`."""
    async with stage.agent() as agent:
        _, call_id = await _denied(stage, agent)
        await agent.expect("`tool_cancelled`", of("tool_cancelled", call_id=call_id), stage.target.patience)


@SUITE.check("js.deny.told-reason", "SHOULD", "1.8")
async def denials_repeat_the_reason(stage: Stage) -> None:
    """`tool_cancelled` repeats the reason for the denial."""
    async with stage.agent() as agent:
        _, call_id = await _denied(stage, agent)
        found = await agent.hope("`tool_cancelled`", of("tool_cancelled", call_id=call_id), stage.target.patience)
        if REASON not in str(found[-1].data.get("reason")):
            raise Broken(f"the reason is {found[-1].data.get('reason')!a}")


@SUITE.check("js.deny.not-run", "MUST", "1.8")
async def denied_calls_do_not_run(stage: Stage) -> None:
    """A denied call does not run: no `tool_running`, no `tool_result`."""
    async with stage.agent() as agent:
        msg_id, call_id = await _denied(stage, agent)
        for event in await see_out(stage, agent, msg_id, approving=False):
            if event.call_id == call_id and event.type in ("tool_running", "tool_result"):
                raise Broken(f"`{event.type}` came after the denial")
    if (stage.workspace / "conform-denied.txt").exists():
        raise Broken("the file was written although the call was denied")


@SUITE.check("js.deny.reason", "MUST", "2.4")
async def reasons_reach_the_model(stage: Stage) -> None:
    """The model receives the reason for the denial."""
    async with stage.agent() as agent:
        msg_id, _ = await _denied(stage, agent)
        said = text_of(await see_out(stage, agent, msg_id, approving=False))
        if REASON.partition(":")[0] not in said:
            raise Broken(f"asked for the reason it was given, the agent said {said[:200]!a}")


@SUITE.check("js.deny.continues", "MUST", "2.4")
async def conversation_goes_on(stage: Stage) -> None:
    """After a denial the turn continues to its end, and so does the conversation."""
    async with stage.agent() as agent:
        msg_id, _ = await _denied(stage, agent)
        try:
            await see_out(stage, agent, msg_id, approving=False)
        except NotExercised as problem:
            raise Broken(f"after a denial: {problem}") from None
        await greet(stage, agent, "after a denial")


@SUITE.check("js.deny.no-reason", "SHOULD", "2.4")
async def reason_may_be_left_out(stage: Stage) -> None:
    """A denial may have no reason; `tool_cancelled` still has one."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write-denied", "edit")
        await agent.send(type="tool_deny", call_id=wanted.call_id)
        cancelled = of("tool_cancelled", call_id=wanted.call_id)
        found = await agent.expect("`tool_cancelled`", cancelled, stage.target.patience)
        if not found[-1].data.get("reason"):
            raise Broken(f"the reason is {found[-1].data.get('reason')!a}")


async def _in_mode(agent: Subject, mode: str) -> Subject:
    await agent.send(type="set_mode", mode=mode)
    return agent


@SUITE.check("js.mode.default", "MUST", "2.6")
async def default_asks(stage: Stage) -> None:
    """In `default` mode an `exec` tool needs an approval."""
    async with stage.agent() as agent:
        await asked(
            stage, await _in_mode(agent, "default"), "bash", "exec", " in `default` mode", command="echo conform"
        )


@SUITE.check("js.mode.auto-edit.edit", "MUST", "2.6")
async def auto_edit_edits(stage: Stage) -> None:
    """In `auto_edit` mode an `edit` tool needs no approval."""
    async with stage.agent() as agent:
        await unasked(stage, await _in_mode(agent, "auto_edit"), "write", "edit", " in `auto_edit` mode")


@SUITE.check("js.mode.auto-edit.info", "MUST", "2.6")
async def auto_edit_reads(stage: Stage) -> None:
    """In `auto_edit` mode an `info` tool needs no approval."""
    async with stage.agent() as agent:
        await unasked(stage, await _in_mode(agent, "auto_edit"), "read", "info", " in `auto_edit` mode")


@SUITE.check("js.mode.auto-edit.exec", "MUST", "2.6")
async def auto_edit_does_not_execute(stage: Stage) -> None:
    """In `auto_edit` mode an `exec` tool needs an approval."""
    async with stage.agent() as agent:
        await asked(
            stage,
            await _in_mode(agent, "auto_edit"),
            "bash",
            "exec",
            " in `auto_edit` mode",
            command="echo conform",
        )


@SUITE.check("js.mode.auto-edit.mcp", "SHOULD", "2.6")
async def auto_edit_asks_for_mcp(stage: Stage) -> None:
    """In `auto_edit` mode an `mcp` tool needs an approval."""
    async with stage.agent() as agent:
        await asked(stage, await _in_mode(agent, "auto_edit"), "mcp", "mcp", " in `auto_edit` mode")


@SUITE.check("js.mode.yolo", "MUST", "2.6")
async def yolo_runs_all(stage: Stage) -> None:
    """In `yolo` mode no tool needs an approval."""
    async with stage.agent() as agent:
        await _in_mode(agent, "yolo")
        await unasked(stage, agent, "bash", "exec", " in `yolo` mode", command="echo conform")
        await unasked(stage, agent, "write", "edit", " in `yolo` mode")


@SUITE.check("js.mode.back", "MUST", "2.6")
async def default_asks_again(stage: Stage) -> None:
    """Back in `default` mode, tools need an approval again."""
    async with stage.agent() as agent:
        await _in_mode(agent, "yolo")
        await _in_mode(agent, "default")
        await asked(stage, agent, "bash", "exec", " back in `default` mode", command="echo conform")


@SUITE.check("js.mode.pending", "SHOULD", "2.6")
async def modes_release_what_waits(stage: Stage) -> None:
    """Changing to a mode that allows a pending call releases it."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await agent.send(type="set_mode", mode="auto_edit")
        running = of("tool_running", call_id=wanted.call_id)
        await agent.expect("`tool_running` after `set_mode`", running, stage.target.patience)


@SUITE.check("js.mode.pending-other", "MUST", "2.6")
async def modes_leave_others_waiting(stage: Stage) -> None:
    """Changing to a mode that does not allow a pending call leaves it pending."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "bash", "exec", command="echo conform")
        await agent.send(type="set_mode", mode="auto_edit")
        early = await unbidden(stage, agent, wanted)
        if early:
            raise Broken(f"`{early[0].type}` for a call that `auto_edit` does not allow")
