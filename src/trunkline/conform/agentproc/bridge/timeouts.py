"""Checks of time: the limit of a turn, the grace, the kill, and pipes that somebody else holds."""

from __future__ import annotations

from typing import Any

from trunkline.conform.agentproc.bridge.part import Step, partial, said
from trunkline.conform.agentproc.bridge.placeholders import UNREAD_BYTES
from trunkline.conform.agentproc.bridge.seen import SeenTurn
from trunkline.conform.agentproc.bridge.stage import Ask, Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken, NotExercised

#: What the shell's `timeout` says.
TIMED_OUT = 124
#: The shortest limits that every bridge understands: whole seconds.
LIMIT, GRACE = 1, 1
#: What an agent gets at most on a machine that is too busy to start one within `LIMIT`.
LONGEST_LIMIT = 8
_PREPARED = "prepared"

_SHORT: dict[str, Any] = {"timeout_secs": LIMIT, "kill_grace_secs": GRACE}


def _by(stage: Stage, seconds: float) -> float:
    return seconds + stage.target.patience


async def _outlasts(
    stage: Stage, prepare: Step, *, grace: float = GRACE, takes: float = GRACE
) -> tuple[SeenTurn, float]:
    """A turn that lasts longer than it may, and its limit; the agent then `takes` so long to go.

    An agent that is not prepared when its time is up says nothing about the bridge: it is played again, with more time.
    """
    limit = LIMIT
    while True:
        profile = {"timeout_secs": limit, "kill_grace_secs": grace}
        steps = (prepare, ["mark", _PREPARED], ["wait", 20])
        seen = await stage.play(*steps, profile=profile, within=_by(stage, limit + takes))
        if stage.has(_PREPARED) or limit >= LONGEST_LIMIT:
            return seen, limit
        limit *= 2


def _long_enough(seen: SeenTurn, seconds: float) -> None:
    if seen.seconds < seconds:
        raise Broken(f"the turn ended after {seen.seconds:.2f} s, too early")


def _over(seen: SeenTurn) -> None:
    if seen.code == 0:
        raise Broken("the exit code is 0 despite the timeout")


@SUITE.check("br.timeout.ends", "MUST", "Timeout")
async def turns_have_a_limit(stage: Stage) -> None:
    """After `timeout_secs` the agent gets SIGTERM, and the turn ends with exit code 124."""
    seen, limit = await _outlasts(stage, ["on", "SIGTERM", ["exit", 0]], takes=0)
    _long_enough(seen, limit)
    if not stage.has("SIGTERM"):
        raise Broken("the agent got no SIGTERM")
    same("the exit code", seen.code, TIMED_OUT)


@SUITE.check("br.timeout.total", "SHOULD", "Timeout")
async def the_limit_is_total(stage: Stage) -> None:
    """The limit applies to the whole turn: an agent cannot escape it by continuing to write."""
    talk = [step for number in range(60) for step in (said(partial(f"{number}")), ["wait", 0.1])]
    seen = await stage.play(*talk, profile=_SHORT, within=_by(stage, LIMIT + GRACE))
    _over(seen)


@SUITE.check("br.timeout.fraction", "SHOULD", "Timeout")
async def limits_have_fractions(stage: Stage) -> None:
    """`timeout_secs` may be a fraction of a second."""
    seen = await stage.play(["wait", 20], profile={"timeout_secs": 0.4, "kill_grace_secs": 0.4}, within=_by(stage, 0.8))
    _over(seen)


@SUITE.check("br.timeout.input", "SHOULD", "Timeout")
async def input_does_not_stop_the_clock(stage: Stage) -> None:
    """The limit also applies while a long message is waiting to be read from standard input."""
    seen = await stage.play(
        ["wait", 20],
        profile={**_SHORT, "stdin": "message"},
        ask=Ask("x" * UNREAD_BYTES),
        within=_by(stage, LIMIT + GRACE),
    )
    _over(seen)


@SUITE.check("br.timeout.grace", "MUST", "Timeout")
async def there_is_a_grace(stage: Stage) -> None:
    """After SIGTERM the agent has `kill_grace_secs` to exit by itself."""
    await _outlasts(stage, ["on", "SIGTERM", ["wait", 0.5], ["mark", "flushed"], ["exit", 0]], grace=4, takes=0.5)
    if not stage.has("SIGTERM"):
        raise NotExercised("the agent got no SIGTERM")
    if not stage.has("flushed"):
        raise Broken("the agent was killed before its grace period was over")


@SUITE.check("br.timeout.kill", "MUST", "Timeout")
async def the_grace_has_an_end(stage: Stage) -> None:
    """An agent that is still running after the grace period is killed."""
    seen, limit = await _outlasts(stage, ["ignore", "SIGTERM"])
    _long_enough(seen, limit + GRACE)
    if await stage.agent_lives():
        raise Broken("the agent is still running")


@SUITE.check("br.timeout.partials", "MUST", "Timeout")
async def partials_are_kept(stage: Stage) -> None:
    """Partials from before the limit are shown."""
    seen, _ = await _outlasts(stage, said(partial("piece-one")))
    holds("what was shown", seen.partials, "piece-one")


@SUITE.check("br.timeout.late", "SHOULD", "Timeout")
async def the_grace_is_listened_to(stage: Stage) -> None:
    """Output during the grace period counts: partials are shown, a session id is kept."""
    last = said(partial("piece-late"), "AGENT_SESSION:conform-late")
    seen, _ = await _outlasts(stage, ["on", "SIGTERM", last, ["exit", 0]])
    holds("what was shown", seen.partials, "piece-late")
    if seen.session is not None:
        same("the session id", seen.session, "conform-late")


@SUITE.check("br.timeout.told", "MUST", "Timeout")
async def timeouts_are_told(stage: Stage) -> None:
    """The user is told about the timeout, and an incomplete answer is not sent as the reply."""
    seen, _ = await _outlasts(stage, said("half an answer"))
    if not seen.complaint.replace("half an answer", "").strip():
        raise Broken("nothing was said")
    lacks("the reply", seen.reply, "half an answer")


@SUITE.check("br.tree.killed", "SHOULD", "Timeout")
async def trees_are_killed(stage: Stage) -> None:
    """At the limit, everything the agent started ends with it and does not delay the end of the turn."""
    await _outlasts(stage, ["child", 20])
    if await stage.child_lives():
        raise Broken("a process that the agent started is still running")


@SUITE.check("br.tree.pipe", "SHOULD", "Output")
async def pipes_do_not_delay(stage: Stage) -> None:
    """A process that the agent leaves behind with its output open does not delay the end of the turn."""
    seen = await stage.play(["child", 20], said("reply"), within=stage.target.patience)
    same("the exit code", seen.code, 0)
    holds("the reply", seen.reply, "reply")
