"""Checks of approvals: an agent that asks is answered."""

from __future__ import annotations

from trunkline.conform.jsonstream_host.part import ANSWER, request, result, running, text, turn
from trunkline.conform.jsonstream_host.stage import SeenRun, Stage
from trunkline.conform.jsonstream_host.suite import SUITE, well
from trunkline.conform.kit import Broken


def _decided(seen: SeenRun) -> list[str]:
    return [str(each.data.get("call_id")) for each in seen.of("tool_approve", "tool_deny")]


@SUITE.check("jh.tool.answered", "MUST", "1.5")
async def requests_are_answered(stage: Stage) -> None:
    """A `tool_request` is answered with `tool_approve` or `tool_deny`: the agent waits for it."""
    wait = ["decisions", 1, stage.target.patience]
    seen = await stage.play(*turn(request("t1"), wait, running("t1"), result("t1"), text(ANSWER)))
    if "t1" not in _decided(seen):
        raise Broken("the request was not answered")
    well(seen)


@SUITE.check("jh.tool.once", "MUST", "2.3")
async def requests_are_answered_once(stage: Stage) -> None:
    """A request is answered once."""
    wait = ["decisions", 1, stage.target.patience]
    seen = await stage.play(*turn(request("t1"), wait, ["wait", 0.5], running("t1"), result("t1"), text(ANSWER)))
    if _decided(seen).count("t1") != 1:
        raise Broken(f"the request was answered {_decided(seen).count('t1')} times")


@SUITE.check("jh.tool.two", "MUST", "3.4")
async def requests_may_come_together(stage: Stage) -> None:
    """Several requests may be pending at once; each is answered."""
    wait = ["decisions", 2, stage.target.patience]
    ran = (running("t1"), running("t2"), result("t1"), result("t2"))
    seen = await stage.play(*turn(request("t1"), request("t2", "false"), wait, *ran, text(ANSWER)))
    if sorted(_decided(seen)) != ["t1", "t2"]:
        raise Broken(f"the host answered {', '.join(_decided(seen)) or 'none'} of t1 and t2")
    well(seen)


@SUITE.check("jh.tool.unasked", "MUST", "1.5")
async def what_was_not_asked_is_not_answered(stage: Stage) -> None:
    """A tool that runs without a request, because it was allowed before, is not answered."""
    seen = await stage.play(*turn(running("t1"), result("t1"), ["wait", 0.5], text(ANSWER)))
    if _decided(seen):
        raise Broken("the host decided on a call without a request")
    well(seen)
