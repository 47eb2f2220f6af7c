"""Checks of the beginning: waiting for `ready`, and what comes instead of it."""

from __future__ import annotations

from trunkline.conform.jsonstream_host.part import (
    ANSWER,
    CLOSE,
    HOST_SECONDS,
    OPEN,
    Step,
    end,
    error,
    ready,
    say,
    start,
    text,
    turn,
)
from trunkline.conform.jsonstream_host.stage import ASKED, Stage
from trunkline.conform.jsonstream_host.suite import CONVERSES, SUITE, told, well
from trunkline.conform.kit import Broken
from trunkline.conform.probe import UNENDED

#: How late an agent is ready that loads much, and hosts are patient with.
LATE_SECONDS = 2.0


@SUITE.check("jh.turn.answer", "MUST", "3.2")
async def answers_are_shown(stage: Stage) -> None:
    """The host starts the agent, sends it the user's message, and shows the answer."""
    seen = await stage.play(*turn(text("conform-"), text("answer")))
    messages = seen.of("message")
    if not messages:
        raise Broken("no message reached the agent")
    said = messages[0].data.get("input", messages[0].data.get("content"))
    if not isinstance(said, str) or ASKED not in said:
        raise Broken(f"the agent was not asked {ASKED!a}, but {said!a}")
    well(seen)


@SUITE.check("jh.turn.second", "MUST", "Overview", needs=(CONVERSES,))
async def one_process_for_all_turns(stage: Stage) -> None:
    """A conversation has one process: the second message goes to the same one, and its answer is shown as well."""
    say = (ASKED, "conform: and once more")
    seen = await stage.play(*OPEN, say_answer(), ["serve", "conform-second"], say=say)
    if len(seen.of("message")) < 2:
        raise Broken("the second message did not reach the agent of the first")
    well(seen)
    if "conform-second" not in seen.stdout:
        raise Broken("the second answer was not shown")


def say_answer() -> Step:
    """A whole answer."""
    return say(start(), text(ANSWER), end())


async def _late(stage: Stage, *before: Step, seconds: float) -> None:
    """An agent that says something, and after a while that it is ready."""
    steps = (["listen"], *before, ["wait", seconds], ["mark", "ready"], say(ready()), ["message", HOST_SECONDS])
    seen = await stage.play(*steps, say_answer(), CLOSE)
    # The mark comes before the event, and a host may be very quick to answer that.
    at = stage.marked("ready")
    if any(at is None or each.at < at for each in seen.of("message")):
        raise Broken("a `message` came before `ready`")
    if at is None:
        raise Broken(f"the host gave up before the agent was ready, after {seen.seconds:.1f} s")
    well(seen)


@SUITE.check("jh.ready.waits", "MUST", "1.1")
async def messages_wait_for_ready(stage: Stage) -> None:
    """No `message` is sent before `ready`, even if the agent is slow to start."""
    await _late(stage, seconds=LATE_SECONDS)


@SUITE.check("jh.ready.bare", "MUST", "1.1")
async def ready_may_lack_a_session(stage: Stage) -> None:
    """`ready` may lack a `session_id`: sessions can be disabled."""
    event = ready()
    del event["session_id"]
    well(await stage.play(["listen"], say(event), ["message", HOST_SECONDS], say_answer(), CLOSE))


@SUITE.check("jh.ready.never", "SHOULD", "1.1")
async def ready_may_not_come(stage: Stage) -> None:
    """If the agent never sends `ready`, the host gives up in bounded time, sends no message, and tells the user."""
    seen = await stage.play(["listen"], ["end", stage.target.lifetime])
    if seen.of("message"):
        raise Broken("a `message` was sent")
    if stage.has(UNENDED):
        raise Broken("the host waited until the agent ended by itself")
    told(seen)


@SUITE.check("jh.ready.other", "SHOULD", "1.1")
async def other_events_are_not_ready(stage: Stage) -> None:
    """Other events before `ready`, such as an `info`, are not mistaken for it."""
    await _late(stage, say({"type": "info", "msg_id": "", "message": "loading"}), seconds=0.5)


@SUITE.check("jh.start.fatal", "SHOULD", "4.3")
async def fatal_errors_are_told(stage: Stage) -> None:
    """An agent that sends `error` instead of `ready`, and exits, has failed: its message is shown."""
    event = error("conform-key is not set", "config_error", None)
    seen = await stage.play(["listen"], say(event), ["exit", 1])
    told(seen)
    if "conform-key is not set" not in seen.shown:
        raise Broken("the agent's reason was not shown")


@SUITE.check("jh.start.silent", "SHOULD", "4.3")
async def a_start_may_fail_in_silence(stage: Stage) -> None:
    """An agent that exits at once without a word has failed, and the user is told at once."""
    told(await stage.play(["exit", 1], within=min(stage.target.timeout, 2 * stage.target.patience)))


@SUITE.check("jh.version.minor", "MUST", "6")
async def newer_minor_versions_work(stage: Stage) -> None:
    """A newer minor version is compatible: unknown events and members do no harm."""
    new = {"type": "conform_news", "msg_id": "$msg_id", "about": {"anything": [1, 2]}}
    capabilities = {"tool_approval": True, "thinking": True, "mcp": False, "telepathy": {"range": 3}}
    first = ready(version="0.2.0", capabilities=capabilities, mood="fine")
    more = say(new, {**start(), "colour": "blue"}, new, {**text(ANSWER), "language": "en"}, new, end(mood="good"), new)
    well(await stage.play(["listen"], say(new, first), ["message", HOST_SECONDS], more, CLOSE))


@SUITE.check("jh.version.major", "SHOULD", "6")
async def other_major_versions_are_noticed(stage: Stage) -> None:
    """An agent with another major version is refused, or the user is warned."""
    steps = (["listen"], say(ready(version="9.0.0")), ["message", HOST_SECONDS], say_answer(), CLOSE)
    seen = await stage.play(*steps)
    if seen.status == 0 and "9.0.0" not in seen.shown:
        raise Broken("nothing was said about the version 9.0.0")
