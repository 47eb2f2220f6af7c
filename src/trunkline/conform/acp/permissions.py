"""Checks of permissions: how they are asked for, and that the answer is what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.conform.acp.lines import messages
from trunkline.conform.acp.scenes import begin, finish, opened, permission
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import PERMISSION, AcpAsked, AcpReply, AcpSubject, option, options_of
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.tools import told
from trunkline.conform.acp.vocabulary import OPTION_KINDS, TOOL_CALL_UPDATE
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken, Judgement, NotApplicable
from trunkline.conform.record import Record

_NONE = "the agent asked for no permission; the prompt `write` must make it use a tool for which it asks"


def _asked(record: Record) -> list[dict[str, Any]]:
    return [each for each in messages(record) if each.get("method") == PERMISSION]


@SUITE.judge("acp.permission.shape", "MUST", "Tool Calls", _NONE)
def requests_have_a_shape(record: Record) -> Judgement:
    """A request for a permission has an `id`, a `sessionId`, a `toolCall` with its id, and at least one option."""
    found = _asked(record)
    for request in found:
        params = request.get("params")
        call = params.get("toolCall") if isinstance(params, dict) else None
        fine = isinstance(params, dict) and isinstance(params.get("sessionId"), str) and "id" in request
        fine = fine and isinstance(call, dict) and isinstance(call.get("toolCallId"), str)
        if not fine or not options_of(request):
            return Judgement(len(found), f"the request {short(request)} lacks something")
    return Judgement(len(found))


@SUITE.judge("acp.permission.options", "MUST", "Tool Calls", _NONE)
def options_have_a_shape(record: Record) -> Judgement:
    """Every option has an `optionId` of its own, a `name` and one of the four kinds."""
    found = _asked(record)
    for request in found:
        options = options_of(request)
        ids = [each.get("optionId") for each in options]
        named = all(isinstance(each.get("name"), str) and isinstance(each.get("optionId"), str) for each in options)
        known = all(each.get("kind") in OPTION_KINDS for each in options)
        if not named or not known or len(set(map(str, ids))) < len(ids):
            return Judgement(len(found), f"the options {short(options)} are not as the schema has them")
    return Judgement(len(found))


@SUITE.judge("acp.permission.choice", "SHOULD", "Tool Calls", _NONE)
def there_is_a_choice(record: Record) -> Judgement:
    """The options allow to say yes, and to say no."""
    found = _asked(record)
    for request in found:
        if option(request, "allow") is None or option(request, "reject") is None:
            return Judgement(len(found), f"the options {short(options_of(request))} leave no choice")
    return Judgement(len(found))


@SUITE.judge("acp.permission.known", "SHOULD", "Tool Calls", _NONE)
def calls_are_told_before(record: Record) -> Judgement:
    """The call that a permission is asked for was told by a `tool_call` before."""
    known: set[tuple[str, str]] = set()
    count = 0
    for session, what, call in told(record):
        key = (session, str(call.get("toolCallId")))
        if what == PERMISSION:
            count += 1
            if key not in known:
                return Judgement(count, f"a permission was asked for {short(call)}, which nobody told of before")
        known.add(key)
    return Judgement(count)


# What becomes of it.


async def _held(stage: Stage, prompt: str = "write") -> tuple[AcpSubject, str, AcpAsked, Mapping[str, Any]]:
    """A turn that waits for a permission: the agent, the session, the turn, the request."""
    agent, session = await opened(stage, "hold")
    turn = begin(agent, session, stage.prompt(prompt))
    return agent, session, turn, await permission(stage, agent, turn)


async def _ended(stage: Stage, agent: AcpSubject, turn: AcpAsked) -> AcpReply:
    """The end of the turn; whatever else the agent asks for is rejected."""
    agent.policy = "reject"
    return await finish(stage, agent, turn)


def _not_written(stage: Stage, after: str) -> None:
    if stage.file("write").exists():
        raise Broken(f"the tool was used {after}: `{stage.file('write').name}` was written")


def _chosen(request: Mapping[str, Any], answer: str) -> str:
    found = option(request, answer)
    if found is None:
        raise NotApplicable(f"none of the options {short(options_of(request))} is of the kind `{answer}`")
    return found


@SUITE.check("acp.permission.waits", "MUST", "Tool Calls")
async def tools_wait(stage: Stage) -> None:
    """A tool is not used, and its turn does not end, before the permission is given."""
    agent, _, turn, _ = await _held(stage)
    await agent.listen(stage.target.quiet)
    _not_written(stage, "before the permission was given")
    if agent.answer_to(turn.id) is not None:
        raise Broken("the turn ended while its request for a permission was open")


@SUITE.check("acp.permission.allow", "SHOULD", "Tool Calls")
async def allowed_tools_are_used(stage: Stage) -> None:
    """A tool that was allowed is used, and the turn ends by itself."""
    agent, session, turn, request = await _held(stage)
    agent.policy = "allow"
    agent.answer_permission(request, _chosen(request, "allow"))
    reply = await finish(stage, agent, turn)
    # An agent for tests may only say that it did something.
    said = [each.get("status") for each in reply.updates(session, TOOL_CALL_UPDATE)]
    if not stage.file("write").exists() and "completed" not in said:
        raise Broken(f"the tool was allowed, but `{stage.file('write').name}` was not written, nor the call completed")


@SUITE.check("acp.permission.reject", "MUST", "Tool Calls")
async def rejected_tools_are_not_used(stage: Stage) -> None:
    """A tool that was rejected is not used, and the turn ends."""
    agent, _, turn, request = await _held(stage)
    agent.answer_permission(request, _chosen(request, "reject"))
    await _ended(stage, agent, turn)
    _not_written(stage, "although it was rejected")


@SUITE.check("acp.permission.cancelled", "MUST", "Tool Calls")
async def cancelled_is_no_leave(stage: Stage) -> None:
    """The outcome `cancelled` does not allow anything: the tool is not used, and the turn ends."""
    agent, _, turn, request = await _held(stage)
    agent.answer_permission(request, None)
    agent.policy = "cancelled"
    await finish(stage, agent, turn)
    _not_written(stage, "although the outcome was `cancelled`")


@SUITE.check("acp.permission.error", "SHOULD", "Tool Calls")
async def errors_are_no_leave(stage: Stage) -> None:
    """An error as the answer does not allow anything: the tool is not used, and the turn ends."""
    agent, _, turn, request = await _held(stage)
    error = {"code": -32603, "message": "The kit cannot ask its user."}
    agent.send({"jsonrpc": "2.0", "id": request["id"], "error": error})
    agent.policy = "reject"
    await agent.answer(turn, stage.target.timeout)
    _not_written(stage, "although the answer was an error")


@SUITE.check("acp.permission.unknown", "SHOULD", "Tool Calls")
async def unknown_options_are_no_leave(stage: Stage) -> None:
    """An option that was not offered does not allow anything: the tool is not used, and the turn ends."""
    agent, _, turn, request = await _held(stage)
    agent.answer_permission(request, "conform-no-such-option")
    agent.policy = "reject"
    await agent.answer(turn, stage.target.timeout)
    _not_written(stage, "although the option was not offered")


@SUITE.check("acp.permission.once", "MUST", "Tool Calls")
async def once_is_once(stage: Stage) -> None:
    """`allow_once` holds for one call: the next one is asked for again."""
    agent, session, turn, request = await _held(stage)
    chosen = option(request, "", "allow_once")
    if chosen is None:
        raise NotApplicable("the agent offers no option of the kind `allow_once`")
    agent.answer_permission(request, chosen)
    await _ended(stage, agent, turn)
    known = len(agent.permissions)
    await finish(stage, agent, begin(agent, session, stage.prompt("write-again")))
    if len(agent.permissions) == known and stage.file("write-again").exists():
        raise Broken("a second tool was used without being asked for, after `allow_once` for the first")


@SUITE.check("acp.permission.always", "SHOULD", "Tool Calls")
async def always_is_remembered(stage: Stage) -> None:
    """`allow_always` is remembered: the same tool is not asked for again."""
    agent, session, turn, request = await _held(stage)
    chosen = option(request, "", "allow_always")
    if chosen is None:
        raise NotApplicable("the agent offers no option of the kind `allow_always`")
    agent.policy = "allow"
    agent.answer_permission(request, chosen)
    await finish(stage, agent, turn)
    known = len(agent.permissions)
    await finish(stage, agent, begin(agent, session, stage.prompt("write-again")))
    if len(agent.permissions) > known:
        raise Broken(f"{short(agent.permissions[-1])} was asked for although `allow_always` was chosen before")
