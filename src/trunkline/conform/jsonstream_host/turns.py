"""Checks of a turn: what an agent may say in it, in which form, and what it should not have said."""

from __future__ import annotations

from trunkline.conform.jsonstream_host.part import (
    ANSWER,
    CLOSE,
    OPEN,
    end,
    error,
    result,
    running,
    say,
    start,
    text,
    turn,
)
from trunkline.conform.jsonstream_host.stage import Stage
from trunkline.conform.jsonstream_host.suite import SUITE, shows, told, well
from trunkline.conform.kit import Broken

#: A line longer than any buffer that a careless reader has, and shorter than what a tool may well give.
LONG_LINE = 1024 * 1024
#: More than a pipe holds.
FLOOD_BYTES = 1024 * 1024
#: What an agent never says at a time, and a host must be able to take.
MANY = 2000


@SUITE.check("jh.text.order", "MUST", "1.3")
async def pieces_are_joined(stage: Stage) -> None:
    """The pieces of an answer are shown in order, with nothing in between."""
    seen = await stage.play(*turn(*(text(f"<{number}>") for number in range(MANY))))
    shows(seen, "".join(f"<{number}>" for number in range(MANY)))


@SUITE.check("jh.text.unicode", "MUST", "Overview")
async def text_is_utf_8(stage: Stage) -> None:
    """Characters outside ASCII are shown correctly, even if a read splits them."""
    said = "ü 会话 🙂 \u2028 end"
    seen = await stage.play(*OPEN, ["dribble", start(), text(said), end()], CLOSE)
    shows(seen, said)


@SUITE.check("jh.text.batch", "MUST", "Overview")
async def events_may_come_together(stage: Stage) -> None:
    """Several events, or a whole turn, may arrive in one read."""
    well(await stage.play(*OPEN, say(start(), text("conform-"), text("answer"), end()), CLOSE))


@SUITE.check("jh.text.long", "MUST", "Overview")
async def lines_may_be_long(stage: Stage) -> None:
    """Lines may be long: a tool result of one mebibyte is read, and the turn continues."""
    well(await stage.play(*turn(running("t1"), result("t1", "x" * LONG_LINE), text(ANSWER))))


@SUITE.check("jh.event.known", "MUST", "1")
async def every_event_is_understood(stage: Stage) -> None:
    """The host copes with every event of the protocol: `thinking`, `info`, tools that run without approval,
    `tool_cancelled`, diffs.
    """
    about = {"msg_id": "$msg_id", "call_id": "t1"}
    diff = {**result("t1", "--- a\n+++ b\n"), "output_type": "diff", "metadata": {"file_path": "/a"}}
    events = (
        {"type": "thinking", "text": "hm", "msg_id": "$msg_id"},
        {"type": "info", "msg_id": "$msg_id", "message": "retrying"},
        running("t1"),
        diff,
        {"type": "tool_cancelled", **about, "reason": "not now"},
    )
    well(await stage.play(*turn(*events, text(ANSWER))))


@SUITE.check("jh.event.unused", "SHOULD", "1.9")
async def usage_may_be_unknown(stage: Stage) -> None:
    """`stream_end` may lack `usage`, and `usage` may lack some of its numbers."""
    last = end()
    del last["usage"]
    well(await stage.play(*OPEN, say(start(), text(ANSWER), last), CLOSE))


@SUITE.check("jh.event.late", "SHOULD", "1.9")
async def late_events_do_no_harm(stage: Stage) -> None:
    """Events after `stream_end` do no harm and are not shown as part of the answer."""
    late = say(text("conform-late"), error("conform: too late"), end())
    seen = await stage.play(*OPEN, say(start(), text(ANSWER), end()), late, CLOSE)
    well(seen)
    if f"{ANSWER}conform-late" in seen.stdout:
        raise Broken("text from after the end was appended to the answer")


@SUITE.check("jh.event.foreign", "SHOULD", "1.3")
async def other_turns_are_not_mixed_in(stage: Stage) -> None:
    """Text with the `msg_id` of a message that the host did not send is not shown as an answer."""
    foreign = {"type": "text_delta", "text": "conform-foreign", "msg_id": "conform-no-such-message"}
    seen = await stage.play(*turn(text("conform-"), foreign, text("answer")))
    shows(seen)


@SUITE.check("jh.event.garbage", "SHOULD", "Overview")
async def lines_that_are_none_do_no_harm(stage: Stage) -> None:
    """A line that is not JSON, or not an object, does not end the conversation."""
    garbage = ["out", 'not json\n[1, 2]\n\n{"no": "type"}\nnull\n\xff\xfe\n']
    well(await stage.play(*turn(garbage, text(ANSWER))))


@SUITE.check("jh.error.shown", "SHOULD", "1.10")
async def errors_are_shown(stage: Stage) -> None:
    """An `error` during a turn is shown to the user."""
    seen = await stage.play(*turn(error("conform: rate limit exceeded")))
    if "conform: rate limit exceeded" not in seen.shown:
        raise Broken("the error was not shown")


@SUITE.check("jh.error.goes-on", "SHOULD", "1.10")
async def errors_may_pass(stage: Stage) -> None:
    """The agent may continue after an `error`: everything up to `stream_end` is shown."""
    seen = await stage.play(*turn(error("conform: trying again"), ["wait", 0.3], text(ANSWER)))
    shows(seen)


@SUITE.check("jh.error.null", "MUST", "4.1")
async def errors_may_be_about_no_message(stage: Stage) -> None:
    """An `error` with a null `msg_id`, which concerns no message, does not end the turn."""
    seen = await stage.play(*turn(error("conform: odd", "protocol_error", None), ["wait", 0.3], text(ANSWER)))
    shows(seen)


@SUITE.check("jh.crash.told", "SHOULD", "4.3")
async def crashes_are_told(stage: Stage) -> None:
    """If the agent dies during a turn, the host notices at once: the run ends, the user is told, and half an answer is
    not taken for a whole one.
    """
    steps = (*OPEN, say(start(), text("conform-half")), ["die", "SIGKILL"])
    told(await stage.play(*steps, within=min(stage.target.timeout, 3 * stage.target.patience)))


@SUITE.check("jh.crash.exit", "SHOULD", "4.3")
async def leaving_is_not_ending(stage: Stage) -> None:
    """An agent that exits with 0 without ending its turn has not answered either."""
    steps = (*OPEN, say(start(), text("conform-half")), ["exit", 0])
    told(await stage.play(*steps, within=min(stage.target.timeout, 3 * stage.target.patience)))


@SUITE.check("jh.stderr.apart", "MUST", "Overview")
async def standard_error_is_no_protocol(stage: Stage) -> None:
    """The agent's standard error is for people: events there are ignored."""
    forged = '{"type":"stream_end","msg_id":"$msg_id"}\n{"type":"text_delta","text":"conform-forged","msg_id":"m"}\n'
    seen = await stage.play(*turn(["err", forged], ["wait", 0.3], text(ANSWER)))
    well(seen)
    lines = seen.stdout.splitlines()
    if any("conform-forged" in line and not line.lstrip().startswith("{") for line in lines):
        raise Broken("text from standard error was shown as the answer")


@SUITE.check("jh.stderr.flood", "SHOULD", "Overview")
async def standard_error_is_read(stage: Stage) -> None:
    """An agent that writes a lot to standard error is not blocked."""
    well(await stage.play(*turn(["flood", 2, FLOOD_BYTES], text(ANSWER))))
