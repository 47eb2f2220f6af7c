"""Checks of 0.4: the agent asks before it uses a tool, and does as it is told."""

from __future__ import annotations

from typing import Literal

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.agentproc.agent.suite import NEW
from trunkline.conform.agentproc.agent.turn import Turning
from trunkline.conform.kit import Broken, NotExercised
from trunkline.wires.agentproc.codec_ndjson import encode_response
from trunkline.wires.agentproc.messages import PermissionRequest, PermissionResponse, TurnRequest


async def _asked(stage: Stage) -> tuple[Turning, PermissionRequest]:
    """A turn in which the agent waits for permission.

    Raises:
        NotExercised: it does not ask.
    """
    turning = await stage.begin(TurnRequest(stage.prompt("tool"), permission=True), stdin="open")
    request = await turning.asks(stage.target.timeout)
    if request is None:
        raise NotExercised("the agent did not ask for permission")
    return turning, request


async def _ends(stage: Stage, turning: Turning, what: str) -> None:
    heard = await turning.heard(stage.target.timeout)
    if heard is None:
        raise Broken(f"still running {stage.target.timeout:g} s after {what}")
    if not heard.failed() and not heard.text.strip():
        raise Broken(f"after {what} there is neither text nor an error")


async def _answered(stage: Stage, behavior: Literal["allow", "deny"]) -> None:
    turning, request = await _asked(stage)
    turning.send(encode_response(PermissionResponse(request.request_id, behavior, "conform says so")))
    await _ends(stage, turning, f"`{behavior}`")


@NEW.check("ap4.permission.allow", "SHOULD", "0.4")
async def permission_is_taken(stage: Stage) -> None:
    """After an allowed request the turn continues to its end."""
    await _answered(stage, "allow")


@NEW.check("ap4.permission.deny", "SHOULD", "0.4")
async def denial_is_obeyed(stage: Stage) -> None:
    """A denied request is not carried out, and the turn continues to its end."""
    await _answered(stage, "deny")
    if (stage.workspace / "conform-write.txt").exists():
        raise Broken("the tool was used although it was denied")


@NEW.check("ap4.permission.other", "SHOULD", "0.4")
async def answers_are_matched(stage: Stage) -> None:
    """An answer to a request that was never made is ignored."""
    turning, request = await _asked(stage)
    turning.send(encode_response(PermissionResponse("conform-no-such-request", "allow")))
    turning.send(encode_response(PermissionResponse(request.request_id, "deny")))
    await _ends(stage, turning, "a denial")
    if (stage.workspace / "conform-write.txt").exists():
        raise Broken("the answer to another request was taken as the answer to this one")


@NEW.check("ap4.permission.eof", "SHOULD", "0.4")
async def silence_is_a_denial(stage: Stage) -> None:
    """When standard input ends while a request is open, the tool is not used and the turn ends."""
    turning, _ = await _asked(stage)
    turning.process.close_input()
    await _ends(stage, turning, "the end of standard input")
    if (stage.workspace / "conform-write.txt").exists():
        raise Broken("the tool was used although nobody allowed it")
