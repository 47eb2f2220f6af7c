"""Checks of `stop`: whatever the agent is doing, the turn ends and the process goes on."""

from __future__ import annotations

from trunkline.conform.jsonstream.processes import TICKING, is_still, ticks
from trunkline.conform.jsonstream.scenes import (
    approve,
    ask,
    ends,
    greet,
    of,
    request,
    running,
    say,
    streaming,
    text_of,
    two_requests,
)
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import SeenEvent, Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised

#: How soon a stopped turn should be over: a person has pressed a button and looks at the screen.
STOP_SECONDS = 1.0
#: The last thing that the long answer says, if nobody stops it.
LAST_WORD = "2000"


async def _stopped(stage: Stage, agent: Subject, msg_id: str) -> list[SeenEvent]:
    """Stop, and what comes up to the end of the turn."""
    await agent.send(type="stop")
    found = await agent.expect("`stream_end` after `stop`", ends(msg_id), stage.target.patience)
    if LAST_WORD in text_of(found)[-2 * len(LAST_WORD) :]:
        raise NotExercised("the answer was finished before it could be stopped")
    return found


@SUITE.check("js.stop.streaming", "MUST", "2.2")
async def answers_are_stopped(stage: Stage) -> None:
    """`stop` ends an answer in progress with `stream_end`."""
    async with stage.agent() as agent:
        await _stopped(stage, agent, await streaming(stage, agent))
        await agent.listen(stage.target.quiet)


@SUITE.check("js.stop.pending", "MUST", "2.2")
async def pending_approvals_are_stopped(stage: Stage) -> None:
    """`stop` ends a turn that is waiting for an approval with `stream_end`."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await _stopped(stage, agent, wanted.msg_id)
        await agent.listen(stage.target.quiet)


@SUITE.check("js.stop.pending-not-run", "MUST", "2.2")
async def stopped_calls_do_not_run(stage: Stage) -> None:
    """A call that was pending at the `stop` never runs."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        found = await _stopped(stage, agent, wanted.msg_id) + await agent.listen(stage.target.quiet)
        if any(of("tool_running", call_id=wanted.call_id)(event) for event in found):
            raise Broken("`tool_running` came after `stop`")


@SUITE.check("js.stop.cancels-first", "SHOULD", "1.8")
async def stopped_calls_are_cancelled(stage: Stage) -> None:
    """Each pending call gets `tool_cancelled` before `stream_end`."""
    async with stage.agent() as agent:
        first, second = await two_requests(stage, agent)
        found = await _stopped(stage, agent, first.msg_id)
        cancelled = {event.call_id for event in found if event.type == "tool_cancelled"}
        if not {first.call_id, second.call_id} <= cancelled:
            raise Broken(f"of 2 pending calls, {len(cancelled)} got `tool_cancelled` before `stream_end`")


@SUITE.check("js.stop.late-answer", "SHOULD", "2.3")
async def late_answers_are_refused(stage: Stage) -> None:
    """An approval after `stop` gets `protocol_error`."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await _stopped(stage, agent, wanted.msg_id)
        await approve(agent, wanted)
        found = await agent.expect("`error` for an approval after `stop`", of("error"), stage.target.patience)
        if found[-1].member("error", "code") != "protocol_error":
            raise Broken(f"the code is {found[-1].member('error', 'code')!a}")


@SUITE.check("js.stop.tool", "MUST", "2.2")
async def running_tools_are_stopped(stage: Stage) -> None:
    """`stop` ends a turn whose tool is running with `stream_end`."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "bash", "exec", command=TICKING)
        await running(stage, agent, wanted)
        await _stopped(stage, agent, wanted.msg_id)


@SUITE.check("js.stop.kills-tool", "MUST", "2.2")
async def stop_ends_processes(stage: Stage) -> None:
    """`stop` cancels the running tool: its process ends."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "bash", "exec", command=TICKING)
        await running(stage, agent, wanted)
        await ticks(stage)
        await _stopped(stage, agent, wanted.msg_id)
        if not await is_still(stage):
            raise Broken("the stopped tool's command is still running after `stream_end`")


@SUITE.check("js.stop.prompt", "SHOULD", "2.2")
async def stop_is_prompt(stage: Stage) -> None:
    """A stopped turn ends within one second, whatever it was doing."""
    async with stage.agent() as agent:
        await _in_time(stage, agent, "an answer in progress", await streaming(stage, agent))
        wanted = await request(stage, agent, "write", "edit")
        await _in_time(stage, agent, "a turn waiting for an approval", wanted.msg_id)
        wanted = await request(stage, agent, "bash", "exec", command=TICKING)
        await running(stage, agent, wanted)
        await _in_time(stage, agent, "a turn whose tool was running", wanted.msg_id)


async def _in_time(stage: Stage, agent: Subject, what: str, msg_id: str) -> None:
    end = (await _stopped(stage, agent, msg_id))[-1]
    stop = next(entry for entry in reversed(agent.record.entries) if entry.who == "host")
    if end.at - stop.at > STOP_SECONDS:
        raise Broken(f"{what} ended {end.at - stop.at:.2f} s after `stop`")


@SUITE.check("js.stop.idle", "SHOULD", "2.2")
async def stop_when_idle_is_nothing(stage: Stage) -> None:
    """`stop` with nothing to stop does nothing: no event, no exit."""
    async with stage.agent() as agent:
        await agent.send(type="stop")
        await ask(stage, agent, "hello")
        await agent.send(type="stop")
        heard = await agent.listen(stage.target.quiet)
        found = [event for event in heard if event.type != "info"]
        if found:
            raise Broken(f"`{found[0].type}` came after a `stop` with nothing to stop")
        await greet(stage, agent, "after a `stop` with nothing to stop")


@SUITE.check("js.stop.next", "MUST", "2.2")
async def next_message_is_answered(stage: Stage) -> None:
    """After a stopped turn the same process answers the next message."""
    async with stage.agent() as agent:
        await _stopped(stage, agent, await streaming(stage, agent))
        await greet(stage, agent, "after a stopped one")


@SUITE.check("js.stop.next-tool", "MUST", "2.2")
async def next_tool_works(stage: Stage) -> None:
    """After a turn was stopped while waiting, tools work as before."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await _stopped(stage, agent, wanted.msg_id)
        wanted = await request(stage, agent, "write-again", "edit")
        await approve(agent, wanted)
        result = of("tool_result", call_id=wanted.call_id)
        await agent.expect("`tool_result` of the next call", result, stage.target.timeout)


@SUITE.check("js.stop.twice", "SHOULD", "2.2")
async def stopping_twice_is_stopping_once(stage: Stage) -> None:
    """A second `stop` for the same turn changes nothing."""
    async with stage.agent() as agent:
        msg_id = await streaming(stage, agent)
        await agent.send(type="stop")
        found = await _stopped(stage, agent, msg_id) + await agent.listen(stage.target.quiet)
        if len([event for event in found if event.type in ("stream_end", "error")]) != 1:
            raise Broken("the second `stop` also got an answer")
        await greet(stage, agent, "after a turn that was stopped twice")


@SUITE.check("js.stop.queued", "SHOULD", "2.2")
async def dropped_messages_end(stage: Stage) -> None:
    """Messages that a `stop` drops from the queue also get their `stream_end`."""
    async with stage.agent() as agent:
        sent = [await streaming(stage, agent), await say(stage, agent, "hello"), await say(stage, agent, "hello")]
        await agent.send(type="stop")
        found = await agent.collect(ends(sent[-1]), stage.target.patience + stage.target.timeout)
        ended = [event.msg_id for event in found if event.type == "stream_end"]
        if sorted(map(str, ended)) != sorted(sent):
            raise Broken(f"of {len(sent)} messages, {len(ended)} got their `stream_end`")
        await greet(stage, agent, "after a queue was stopped")
