"""Checks of a write's time: milliseconds, at most two minutes from the network's, either way."""

from __future__ import annotations

from trunkline.conform.kit import NotExercised
from trunkline.conform.sns.cast import CastAgent
from trunkline.conform.sns.exchange import SnsResponse
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import DENIED, answered, check, refused

#: How near to the limit of 120 s is tried, in seconds; and where the clocks are not the same.
_NEAR = 1
_NEAR_FOREIGN = 4
_LIMIT = 120
#: How often a write is sent whose time may have run over the limit on its way.
_TRIES = 5


@check("sns.time.near", "MUST", "Validation")
async def near(stage: Stage) -> None:
    """A timestamp less than two minutes off, in either direction, is accepted."""
    agent = await stage.agent()
    await stage.nonce(agent)
    margin = _margin(stage)
    # What is old grows older on its way, and may be refused for that.
    answered(await _in_time(stage, agent, margin - _LIMIT, margin, *DENIED), 200)
    answered(await _written(stage, agent, _LIMIT - margin), 200)


@check("sns.time.far", "MUST", "Validation")
async def far(stage: Stage) -> None:
    """A timestamp more than two minutes off, in either direction, is refused, and so is one in seconds."""
    agent = await stage.agent()
    await stage.nonce(agent)
    margin = _margin(stage)
    early, late = -_LIMIT - margin, _LIMIT + margin
    refused(await _written(stage, agent, early), f"with a timestamp {early} s off")
    # What is ahead comes nearer on its way, and may be accepted for that.
    refused(await _in_time(stage, agent, late, margin, 200), f"with a timestamp {late} s off")
    draft = await stage.thread_draft(agent, timestamp=str(stage.now() // 1000))
    refused(await stage.send(draft), "with a timestamp in seconds")


@check("sns.time.text", "SHOULD", "Details")
async def text(stage: Stage) -> None:
    """A timestamp that is not a number gets 400."""
    agent = await stage.agent()
    for timestamp in ("abc", "NaN", "Infinity", "2026-02-18T10:00:00Z"):
        answered(await stage.send(await stage.thread_draft(agent, timestamp=timestamp)), 400)


async def _in_time(stage: Stage, agent: CastAgent, seconds: int, margin: int, *excused: int) -> SnsResponse:
    """The answer to a write that far off; one of those `excused` counts only if it came within the margin.

    Raises:
        NotExercised: none did.
    """
    for _ in range(_TRIES):
        answer, took_ms = await _timed(stage, agent, seconds)
        if answer.status not in excused or took_ms < margin * 1000:
            return answer
    raise NotExercised(f"a write took {margin} s or more each of {_TRIES} times, too long to tell")


async def _written(stage: Stage, agent: CastAgent, seconds: int) -> SnsResponse:
    """The answer to a write that far off when it is sent."""
    return (await _timed(stage, agent, seconds))[0]


async def _timed(stage: Stage, agent: CastAgent, seconds: int) -> tuple[SnsResponse, int]:
    """The same, and how many milliseconds it took since it got its time."""
    # Whatever has to be asked first is asked before it gets its time.
    nonce = await stage.nonce(agent)
    await stage.community(agent)
    began = stage.now()
    draft = await stage.thread_draft(agent, nonce=nonce, timestamp=str(began + seconds * 1000))
    answer = await stage.send(draft)
    return answer, stage.now() - began


def _margin(stage: Stage) -> int:
    return _NEAR_FOREIGN if stage.cast.offset_ms else _NEAR
