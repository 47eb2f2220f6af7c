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
    """The pieces of an answer are shown in their order, with nothing in between."""
    seen = await stage.play(*turn(*(text(f"<{number}>") for number in range(MANY))))
    shows(seen, "".join(f"<{number}>" for number in range(MANY)))


@SUITE.check("jh.text.unicode", "MUST", "Overview")
async def text_is_utf_8(stage: Stage) -> None:
    """Characters beyond ASCII are shown as they are, also where a read cuts them in two."""
    said = "ü 会话 🙂 \u2028 end"
    seen = await stage.play(*OPEN, ["dribble", start(), text(said), end()], CLOSE)
    shows(seen, said)


@SUITE.check("jh.text.batch", "MUST", "Overview")
async def events_may_come_together(stage: Stage) -> None:
    """Several events, and the whole of a turn, may come in one piece."""
    well(await stage.play(*OPEN, say(start(), text("conform-"), text("answer"), end()), CLOSE))


@SUITE.check("jh.text.long", "MUST", "Overview")
async def lines_may_be_long(stage: Stage) -> None:
    """A line may be long: the result of a tool of a mebibyte is read, and the turn goes on."""
    well(await stage.play(*turn(running("t1"), result("t1", "x" * LONG_LINE), text(ANSWER))))


@SUITE.check("jh.event.known", "MUST", "1")
async def every_event_is_understood(stage: Stage) -> None:
    """Every event of the protocol may come: `thinking`, `info`, tools that run unasked, `tool_cancelled`, diffs."""
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
    """`stream_end` may lack `usage`, and `usage` some of its numbers."""
    last = end()
    del last["usage"]
    well(await stage.play(*OPEN, say(start(), text(ANSWER), last), CLOSE))


@SUITE.check("jh.event.late", "SHOULD", "1.9")
async def late_events_do_no_harm(stage: Stage) -> None:
    """What comes after `stream_end` does no harm, and is not shown as a part of the answer."""
    late = say(text("conform-late"), error("conform: too late"), end())
    seen = await stage.play(*OPEN, say(start(), text(ANSWER), end()), late, CLOSE)
    well(seen)
    if f"{ANSWER}conform-late" in seen.stdout:
        raise Broken("words that came after the end were put behind the answer")


@SUITE.check("jh.event.foreign", "SHOULD", "1.3")
async def other_turns_are_not_mixed_in(stage: Stage) -> None:
    """Words with the `msg_id` of no message of the host are not shown as the answer to its own."""
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
    """An `error` in a turn is shown to the user."""
    seen = await stage.play(*turn(error("conform: rate limit exceeded")))
    if "conform: rate limit exceeded" not in seen.shown:
        raise Broken("the error was not shown")


@SUITE.check("jh.error.goes-on", "SHOULD", "1.10")
async def errors_may_pass(stage: Stage) -> None:
    """The agent may go on after an `error`: what it says until `stream_end` is shown."""
    seen = await stage.play(*turn(error("conform: trying again"), ["wait", 0.3], text(ANSWER)))
    shows(seen)


@SUITE.check("jh.error.null", "MUST", "4.1")
async def errors_may_be_about_no_message(stage: Stage) -> None:
    """An `error` with `msg_id` null, which is about no message, does not end the turn."""
    seen = await stage.play(*turn(error("conform: odd", "protocol_error", None), ["wait", 0.3], text(ANSWER)))
    shows(seen)


@SUITE.check("jh.crash.told", "SHOULD", "4.3")
async def crashes_are_told(stage: Stage) -> None:
    """An agent that dies in a turn is noticed at once: the run ends, the user is told, half an answer is not taken
    for a whole one."""
    steps = (*OPEN, say(start(), text("conform-half")), ["die", "SIGKILL"])
    told(await stage.play(*steps, within=min(stage.target.timeout, 3 * stage.target.patience)))


@SUITE.check("jh.crash.exit", "SHOULD", "4.3")
async def leaving_is_not_ending(stage: Stage) -> None:
    """An agent that exits with 0 and has not ended its turn has not answered, either."""
    steps = (*OPEN, say(start(), text("conform-half")), ["exit", 0])
    told(await stage.play(*steps, within=min(stage.target.timeout, 3 * stage.target.patience)))


@SUITE.check("jh.stderr.apart", "MUST", "Overview")
async def standard_error_is_no_protocol(stage: Stage) -> None:
    """What the agent writes to standard error is for people: an event that stands there is none."""
    forged = '{"type":"stream_end","msg_id":"$msg_id"}\n{"type":"text_delta","text":"conform-forged","msg_id":"m"}\n'
    seen = await stage.play(*turn(["err", forged], ["wait", 0.3], text(ANSWER)))
    well(seen)
    lines = seen.stdout.splitlines()
    if any("conform-forged" in line and not line.lstrip().startswith("{") for line in lines):
        raise Broken("words from standard error were shown as the answer")


@SUITE.check("jh.stderr.flood", "SHOULD", "Overview")
async def standard_error_is_read(stage: Stage) -> None:
    """An agent that writes very much to standard error is not kept waiting for it to be read."""
    well(await stage.play(*turn(["flood", 2, FLOOD_BYTES], text(ANSWER))))
