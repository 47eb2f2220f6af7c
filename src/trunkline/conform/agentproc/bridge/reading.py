"""Checks of reading: lines, characters, and what belongs to the reply."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.part import err, in_bytes, out, partial, said
from trunkline.conform.agentproc.bridge.seen import SeenTurn
from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken

#: One line of this length is long for an agent, and nothing for a bridge.
LONG_LINE = 4 * 1024 * 1024
#: More than all pipes hold.
NOISE = 1024 * 1024


def _fine(seen: SeenTurn) -> None:
    if seen.code != 0:
        raise Broken(f"the exit code is {seen.code}: {seen.complaint[-200:]!a}")


@SUITE.check("br.body.verbatim", "MUST", "Output")
async def bodies_are_verbatim(stage: Stage) -> None:
    """Lines that do not belong to the protocol are the reply, exactly as written."""
    body = "first\n\n  indented\t\n AGENT_SESSION:kept\nAGENT_SESSION\nagent_error:x\nAGENT_PARTIALS:y\nlast"
    seen = await stage.play(said(body))
    _fine(seen)
    same("the reply", seen.reply, body)


@SUITE.check("br.body.escape", "MUST", "Output")
async def the_escape_works(stage: Stage) -> None:
    """A line with a space before a protocol prefix is part of the reply, including the space."""
    seen = await stage.play(said(' AGENT_ERROR:"no error"', " AGENT_PARTIAL:x"))
    _fine(seen)
    same("the reply", seen.reply, ' AGENT_ERROR:"no error"\n AGENT_PARTIAL:x')


@SUITE.check("br.body.protocol", "MUST", "Output")
async def protocol_is_not_shown(stage: Stage) -> None:
    """Protocol lines are not part of the reply."""
    seen = await stage.play(said("before", "AGENT_SESSION:conform-1", partial("piece"), "after"))
    lacks("the reply", seen.reply, "AGENT_")
    lacks("the reply", seen.reply, "conform-1")
    holds("the reply", seen.reply, "before")
    holds("the reply", seen.reply, "after")


@SUITE.check("br.body.last-line", "SHOULD", "Output")
async def last_lines_count(stage: Stage) -> None:
    """A last line without a line feed counts."""
    seen = await stage.play(out("one\ntwo"))
    same("the reply", seen.reply, "one\ntwo")
    seen = await stage.play(out('one\nAGENT_ERROR:"two"'))
    if seen.code == 0:
        raise Broken("an error line without a line feed was not noticed")


@SUITE.check("br.body.crlf", "SHOULD", "Output")
async def carriage_returns_are_forgiven(stage: Stage) -> None:
    """Lines that end with CR LF are lines."""
    seen = await stage.play(out("one\r\nAGENT_SESSION:conform-1\r\ntwo\r\n"))
    _fine(seen)
    same("the reply", seen.reply, "one\ntwo")


@SUITE.check("br.body.line-ends", "SHOULD", "Output")
async def only_line_feeds_end_lines(stage: Stage) -> None:
    """Only a line feed ends a line: not a carriage return, not a form feed, not U+2028."""
    seen = await stage.play(*(out(f'x{end}AGENT_ERROR:"no error"\n') for end in ("\r", "\f", "\u2028", "\x85")))
    _fine(seen)
    same("the number of lines", seen.reply.count("no error"), 4)


@SUITE.check("br.body.characters", "MUST", "Output")
async def characters_survive(stage: Stage) -> None:
    """The output is UTF-8, however it is split into reads."""
    text = "Grüße, 你好, 🙂"
    seen = await stage.play(in_bytes(f"{text}\n"))
    same("the reply", seen.reply, text)


@SUITE.check("br.body.not-utf8", "SHOULD", "Output")
async def bad_bytes_are_survived(stage: Stage) -> None:
    """Invalid UTF-8 costs a character, not the turn."""
    seen = await stage.play(out(b"before \xff\xfe here\nafter\n"))
    _fine(seen)
    holds("the reply", seen.reply, "before ")
    holds("the reply", seen.reply, "after")


@SUITE.check("br.body.empty", "SHOULD", "Output")
async def silence_is_no_failure(stage: Stage) -> None:
    """An agent that prints nothing and exits with 0 has not failed."""
    seen = await stage.play()
    _fine(seen)
    same("the reply", seen.reply.strip(), "")


@SUITE.check("br.body.long-line", "SHOULD", "Output")
async def long_lines_are_read(stage: Stage) -> None:
    """A line of four megabytes is read, and so is what follows it."""
    steps = (["flood", 1, LONG_LINE], said("", "AGENT_SESSION:conform-1", "after"))
    seen = await stage.play(*steps, profile={"max_reply_chars": 2 * LONG_LINE})
    _fine(seen)
    if len(seen.reply) < LONG_LINE:
        raise Broken(f"the reply has {len(seen.reply)} characters")
    holds("the end of the reply", seen.reply[-100:], "after")


@SUITE.check("br.body.stderr", "MUST", "Profile")
async def errors_are_no_reply(stage: Stage) -> None:
    """The agent's standard error is not part of the reply."""
    seen = await stage.play(err("diagnostics\n"), said("reply"), err("more diagnostics\n"))
    same("the reply", seen.reply, "reply")


@SUITE.check("br.body.noise", "SHOULD", "Output")
async def noise_does_not_block(stage: Stage) -> None:
    """A megabyte on standard error blocks neither side."""
    seen = await stage.play(["flood", 2, NOISE], said("reply"))
    _fine(seen)
    holds("the reply", seen.reply, "reply")


@SUITE.check("br.body.closed", "SHOULD", "Output")
async def the_end_is_the_exit(stage: Stage) -> None:
    """A turn ends when the agent has exited and all of its output has been read."""
    seen = await stage.play(said("one"), ["wait", 0.2], said("two"), ["exit", 0])
    same("the reply", seen.reply, "one\ntwo")
