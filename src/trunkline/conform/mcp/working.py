"""Checks of requests that take their time: progress, cancelling, and others meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.conform.expect import short
from trunkline.conform.kit import Broken, Judgement
from trunkline.conform.mcp.rpc import messages_of
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.record import Record

_NO_PROGRESS = "the server told of no progress"


def _progress(record: Record) -> list[dict[str, Any]]:
    told = [each for each in messages_of(record) if each.get("method") == "notifications/progress"]
    return [each["params"] for each in told if isinstance(each.get("params"), dict)]


@SUITE.judge("mcp.progress.token", "MUST", "Utilities: progress", optional=_NO_PROGRESS)
def progress_has_a_known_token(record: Record) -> Judgement:
    """Progress is told only of requests that gave a token, with that token."""
    sent = [each.data for each in record.entries if each.who == "host" and isinstance(each.data, dict)]
    given = [(each.get("params") or {}).get("_meta", {}).get("progressToken") for each in sent]
    told = _progress(record)
    wrong = next((each for each in told if each.get("progressToken") not in [one for one in given if one]), None)
    return Judgement(len(told), None if wrong is None else f"nobody gave the token of {short(wrong)}")


@SUITE.judge("mcp.progress.grows", "MUST", "Utilities: progress", optional=_NO_PROGRESS)
def progress_grows(record: Record) -> Judgement:
    """The progress of a request grows with each notification."""
    told = _progress(record)
    last: dict[Any, float] = {}
    for each in told:
        token, progress = each.get("progressToken"), each.get("progress")
        if not isinstance(progress, int | float) or isinstance(progress, bool):
            return Judgement(len(told), f"`progress` is {short(progress)}, not a number")
        if token in last and progress <= last[token]:
            return Judgement(len(told), f"progress went from {last[token]} to {progress}")
        last[token] = progress
    return Judgement(len(told))


@SUITE.check("mcp.cancel.unknown", "MUST", "Utilities: cancellation")
async def cancelling_nothing_is_ignored(stage: Stage) -> None:
    """Cancelling a request that was never made, or has its answer, changes nothing."""
    link = await stage.ready()
    await stage.lives(link, "the handshake")
    for id in (1, 999_999, "conform-never"):
        link.notify("notifications/cancelled", {"requestId": id})
    link.notify("notifications/cancelled", {})
    await stage.lives(link, "cancelling requests that it does not know")


@SUITE.check("mcp.cancel.silent", "SHOULD", "Utilities: cancellation")
async def cancelled_requests_have_no_answer(stage: Stage) -> None:
    """A request that was cancelled is not answered, and the connection lives on; over HTTP, an error may end it."""
    stage.slow_tool()
    link = await stage.ready()
    id = await stage.slow(link)
    link.notify("notifications/cancelled", {"requestId": id, "reason": "a test"})
    await asyncio.sleep(2 * stage.target.quiet)
    await stage.lives(link, "cancelling a request")
    answer = link.answer_to(id)
    if answer is not None and (link.is_stdio or "result" in answer):
        raise Broken(f"the request was cancelled, and answered with {short(answer)}")


@SUITE.check("mcp.cancel.meanwhile", "SHOULD", "Base protocol")
async def others_are_answered_meanwhile(stage: Stage) -> None:
    """While a tool takes its time, other requests are answered."""
    stage.slow_tool()
    link = await stage.ready()
    id = await stage.slow(link)
    await stage.lives(link, "a tool that takes its time was called")
    if link.answer_to(id) is not None:
        raise Broken("`ping` was answered only when the tool was done")
    link.notify("notifications/cancelled", {"requestId": id})
