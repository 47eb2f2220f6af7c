"""Checks of tool calls: asked for, waiting, approved, run, told."""

from __future__ import annotations

from trunkline.conform.jsonstream.scenes import (
    PendingCall,
    any_of,
    approve,
    ask,
    asked,
    deny,
    ends,
    greet,
    of,
    request,
    say,
    see_out,
    two_requests,
    unasked,
    unbidden,
)
from trunkline.conform.jsonstream.stage import Stage
from trunkline.conform.jsonstream.subject import SeenEvent, Subject
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import Broken, NotExercised


@SUITE.check("js.tool.request", "MUST", "1.5")
async def tools_are_asked_for(stage: Stage) -> None:
    """A tool that changes something needs an approval before it runs."""
    async with stage.agent() as agent:
        await asked(stage, agent, "write", "edit", "")


@SUITE.check("js.tool.pause", "MUST", "1.5")
async def calls_wait(stage: Stage) -> None:
    """Nothing of a call happens until it is approved or denied."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        early = await unbidden(stage, agent, wanted)
        if early:
            raise Broken(f"`{early[0].type}` came without an answer to `tool_request`")
        if (stage.workspace / "conform-write.txt").exists():
            raise Broken("the file was written without an answer to `tool_request`")


@SUITE.check("js.tool.turn-waits", "MUST", "1.5")
async def turns_wait(stage: Stage) -> None:
    """A turn does not end while one of its calls is waiting for an answer."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        if any(map(ends(wanted.msg_id), await agent.listen(stage.target.quiet))):
            raise Broken("`stream_end` came without an answer to `tool_request`")


@SUITE.check("js.tool.flow", "MUST", "3.3")
async def approved_calls_run(stage: Stage) -> None:
    """An approved call runs and reports its result; then the turn continues to its end."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await approve(agent, wanted)
        await _runs(stage, agent, wanted)
        await see_out(stage, agent, wanted.msg_id)


async def _runs(stage: Stage, agent: Subject, wanted: PendingCall) -> SeenEvent:
    """The call runs and tells its result."""
    await agent.expect(
        "`tool_running` after the approval", of("tool_running", call_id=wanted.call_id), stage.target.timeout
    )
    found = await agent.expect("`tool_result`", of("tool_result", call_id=wanted.call_id), stage.target.timeout)
    return found[-1]


@SUITE.check("js.tool.default-scope", "SHOULD", "2.3")
async def scope_may_be_left_out(stage: Stage) -> None:
    """`tool_approve` without a `scope` approves the call."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await agent.send(type="tool_approve", call_id=wanted.call_id)
        await _runs(stage, agent, wanted)


@SUITE.check("js.tool.diff", "MUST", "1.7")
async def edits_tell_a_diff(stage: Stage) -> None:
    """A successful Edit reports a diff, and the file in `metadata.file_path`."""
    async with stage.agent() as agent:
        results = [event for event in await ask(stage, agent, "edit") if event.type == "tool_result"]
    edits = [
        event for event in results if event.data.get("tool_name") == "Edit" and event.data.get("status") == "success"
    ]
    if not edits:
        raise NotExercised("no Edit succeeded")
    output, path = str(edits[-1].data.get("output")), edits[-1].member("metadata", "file_path")
    if edits[-1].data.get("output_type") != "diff":
        raise Broken(f"`output_type` is {edits[-1].data.get('output_type')!a}")
    if not all(mark in output for mark in ("--- ", "+++ ", "@@ ")):
        raise Broken(f"the output is not a unified diff: {output[:80]!a}")
    if not isinstance(path, str) or not path:
        raise Broken(f"`metadata.file_path` is {path!a}")


@SUITE.check("js.tool.error-status", "SHOULD", "1.7")
async def failing_tools_say_so(stage: Stage) -> None:
    """A tool that fails has the status `error`."""
    async with stage.agent() as agent:
        found = await ask(stage, agent, "bash", command="exit 3")
    results = [event for event in found if event.type == "tool_result"]
    if not results:
        raise NotExercised("no tool ran")
    if results[0].data.get("status") != "error":
        raise Broken(f"a command that exits with 3 has the status {results[0].data.get('status')!a}")


@SUITE.check("js.tool.stdio", "SHOULD", "Overview")
async def tools_do_not_reach_the_wire(stage: Stage) -> None:
    """A tool's process reaches neither the commands nor the events."""
    async with stage.agent("--auto-approve") as agent:
        command = "cat; echo conform-leak"
        msg_id = await say(stage, agent, "bash", command=command)
        # A child that shares the agent's input would now wait for it, and eat this.
        next_id = await say(stage, agent, "hello")
        found = await agent.hope("`stream_end`", any_of(ends(msg_id), of("tool_request")), stage.target.timeout)
        if not any(event.type == "tool_result" for event in found):
            raise NotExercised("the command did not run")
        await agent.expect("the answer to the next message", ends(next_id), stage.target.timeout)
        if any(entry.line.strip() == b"conform-leak" for entry in agent.record.entries):
            raise Broken("the output of a command went to standard output")


@SUITE.check("js.tool.parallel", "MUST", "3.4")
async def requests_come_together(stage: Stage) -> None:
    """All tools of one step are requested before the first is answered."""
    async with stage.agent() as agent:
        first, second = await two_requests(stage, agent)
        await approve(agent, first)
        await approve(agent, second)
        found = await _results(stage, agent, first, second)
        if found[-1].type == "stream_end":
            raise Broken("the turn ended before both tools had a result")


@SUITE.check("js.tool.any-order", "MUST", "3.4")
async def answers_come_in_any_order(stage: Stage) -> None:
    """Calls can be answered in any order; only an approved one runs."""
    async with stage.agent() as agent:
        first, second = await two_requests(stage, agent)
        await approve(agent, second)
        await _runs(stage, agent, second)
        early = await unbidden(stage, agent, first)
        if early:
            raise Broken(f"`{early[0].type}` for the unanswered call")
        await approve(agent, first)
        await _runs(stage, agent, first)
        await see_out(stage, agent, first.msg_id)


@SUITE.check("js.tool.one-of-two", "MUST", "3.4")
async def one_of_two_is_denied(stage: Stage) -> None:
    """Of two calls, one can be denied and the other approved."""
    async with stage.agent() as agent:
        first, second = await two_requests(stage, agent)
        await deny(agent, second)
        await approve(agent, first)
        found = await _results(stage, agent, first, second)
        found += [] if found[-1].type == "stream_end" else await see_out(stage, agent, first.msg_id)
        kinds = {(event.call_id, event.type) for event in found}
        if (second.call_id, "tool_cancelled") not in kinds or (second.call_id, "tool_running") in kinds:
            raise Broken("the denied call was not cancelled")
        if (first.call_id, "tool_result") not in kinds:
            raise Broken("the approved call has no result")


async def _results(stage: Stage, agent: Subject, first: PendingCall, second: PendingCall) -> list[SeenEvent]:
    """What comes until both calls are over, or the turn is."""
    open_calls = {first.call_id, second.call_id}

    def over(event: SeenEvent) -> bool:
        if event.type in ("tool_result", "tool_cancelled"):
            open_calls.discard(event.call_id or "")
        return not open_calls or ends(first.msg_id)(event)

    return await agent.expect("the end of both calls", over, stage.target.timeout)


async def _is_refused(stage: Stage, agent: Subject, what: str) -> None:
    found = await agent.expect(f"`error` for {what}", of("error"), stage.target.patience)
    code = found[-1].member("error", "code")
    if code != "protocol_error":
        raise Broken(f"{what} got the code {code!a}")


@SUITE.check("js.tool.unknown-approve", "MUST", "2.3")
async def unknown_approvals_are_refused(stage: Stage) -> None:
    """An approval must match a request; otherwise it gets `protocol_error`."""
    async with stage.agent() as agent:
        await agent.send(type="tool_approve", call_id="conform-no-such-call", scope="once")
        await _is_refused(stage, agent, "an approval of an unknown call")
        await greet(stage, agent, "after a wrong approval")


@SUITE.check("js.tool.unknown-deny", "MUST", "2.4")
async def unknown_denials_are_refused(stage: Stage) -> None:
    """A denial must match a request; otherwise it gets `protocol_error`."""
    async with stage.agent() as agent:
        await agent.send(type="tool_deny", call_id="conform-no-such-call", reason="no")
        await _is_refused(stage, agent, "a denial of an unknown call")
        await greet(stage, agent, "after a wrong denial")


@SUITE.check("js.tool.repeated-answer", "MUST", "2.3")
async def repeated_answers_are_refused(stage: Stage) -> None:
    """A call is answered once; a second answer gets `protocol_error`."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await approve(agent, wanted)
        await agent.hope("`tool_running`", of("tool_running", call_id=wanted.call_id), stage.target.timeout)
        await deny(agent, wanted)
        await _is_refused(stage, agent, "a second answer")


@SUITE.check("js.tool.unknown-while-pending", "SHOULD", "2.3")
async def wrong_ids_leave_others_alone(stage: Stage) -> None:
    """A wrong `call_id` does not affect the pending call."""
    async with stage.agent() as agent:
        wanted = await request(stage, agent, "write", "edit")
        await agent.send(type="tool_approve", call_id="conform-no-such-call", scope="always")
        await _is_refused(stage, agent, "an approval of an unknown call")
        early = await unbidden(stage, agent, wanted)
        if early:
            raise Broken(f"`{early[0].type}` for the unanswered call")
        await approve(agent, wanted)
        await _runs(stage, agent, wanted)


@SUITE.check("js.flags.auto-approve", "MUST", "5")
async def auto_approve_asks_for_nothing(stage: Stage) -> None:
    """With `--auto-approve` the agent never asks for approval."""
    async with stage.agent("--auto-approve") as agent:
        await unasked(stage, agent, "bash", "exec", " despite `--auto-approve`", command="echo conform")


@SUITE.check("js.flags.workspace", "MUST", "5")
async def workspace_is_where_tools_work(stage: Stage) -> None:
    """`--workspace` sets the directory in which tools work."""
    elsewhere = stage.workspace / "conform elsewhere"
    elsewhere.mkdir(exist_ok=True)
    async with stage.agent("--workspace", str(elsewhere)) as agent:
        found = await ask(stage, agent, "bash", command="pwd")
    outputs = [str(event.data.get("output")) for event in found if event.type == "tool_result"]
    if not outputs:
        raise NotExercised("the command did not run")
    if str(elsewhere.resolve()) not in outputs[0]:
        raise Broken(f"`pwd` says {outputs[0][:200]!a}")
