"""Checks of a write's time: milliseconds, at most two minutes from the network's, either way."""

from __future__ import annotations

from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import answered, check, refused

#: How near to the limit of 120 s is tried, in seconds; and where the clocks are not the same.
_NEAR = 1
_NEAR_FOREIGN = 4
_LIMIT = 120


@check("sns.time.near", "MUST", "Validation")
async def near(stage: Stage) -> None:
    """A timestamp less than two minutes off, in either direction, is accepted."""
    agent = await stage.agent()
    await stage.nonce(agent)
    for seconds in (-_LIMIT + _margin(stage), _LIMIT - _margin(stage)):
        draft = await stage.thread_draft(agent, timestamp=str(stage.now() + seconds * 1000))
        answered(await stage.send(draft), 200)


@check("sns.time.far", "MUST", "Validation")
async def far(stage: Stage) -> None:
    """A timestamp more than two minutes off, in either direction, is refused, and so is one in seconds."""
    agent = await stage.agent()
    await stage.nonce(agent)
    for seconds in (-_LIMIT - _margin(stage), _LIMIT + _margin(stage)):
        draft = await stage.thread_draft(agent, timestamp=str(stage.now() + seconds * 1000))
        refused(await stage.send(draft), f"with a timestamp {seconds} s off")
    draft = await stage.thread_draft(agent, timestamp=str(stage.now() // 1000))
    refused(await stage.send(draft), "with a timestamp in seconds")


@check("sns.time.text", "SHOULD", "Details")
async def text(stage: Stage) -> None:
    """A timestamp that is not a number gets 400."""
    agent = await stage.agent()
    for timestamp in ("abc", "NaN", "Infinity", "2026-02-18T10:00:00Z"):
        answered(await stage.send(await stage.thread_draft(agent, timestamp=timestamp)), 400)


def _margin(stage: Stage) -> int:
    return _NEAR_FOREIGN if stage.cast.offset_ms else _NEAR
