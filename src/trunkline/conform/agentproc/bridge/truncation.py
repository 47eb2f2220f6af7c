"""Checks of long replies: cut at the limit, and said so."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.part import error, partial, said
from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken

#: What a profile says unless it says something else.
DEFAULT_LIMIT = 8000
DEFAULT_SUFFIX = "\n\n…(truncated)"


@SUITE.check("br.cut.limit", "MUST", "Profile")
async def replies_are_cut(stage: Stage) -> None:
    """A reply longer than `max_reply_chars` is cut there, followed by `truncation_suffix`."""
    seen = await stage.play(said("0123456789abcdef"), profile={"max_reply_chars": 10, "truncation_suffix": " [cut]"})
    same("the reply", seen.reply, "0123456789 [cut]")


@SUITE.check("br.cut.default", "MUST", "Profile")
async def limits_have_a_default(stage: Stage) -> None:
    """By default the limit is 8000 characters, and the suffix is a line of its own."""
    seen = await stage.play(said("x" * DEFAULT_LIMIT + "y"))
    same("the reply", seen.reply, "x" * DEFAULT_LIMIT + DEFAULT_SUFFIX)


@SUITE.check("br.cut.exact", "SHOULD", "Profile")
async def full_replies_are_whole(stage: Stage) -> None:
    """A reply of exactly the maximum length is not cut."""
    seen = await stage.play(said("0123456789"), profile={"max_reply_chars": 10, "truncation_suffix": " [cut]"})
    same("the reply", seen.reply, "0123456789")


@SUITE.check("br.cut.characters", "SHOULD", "Profile")
async def characters_are_not_cut(stage: Stage) -> None:
    """The limit counts characters, and never cuts one in half."""
    seen = await stage.play(said("🙂🙂🙂🙂ü"), profile={"max_reply_chars": 3, "truncation_suffix": "!"})
    if seen.reply[:4].count("🙂") != 3:
        raise Broken(f"the reply is {seen.reply!a}")


@SUITE.check("br.cut.session", "SHOULD", "Session")
async def reading_goes_on(stage: Stage) -> None:
    """Output after a reply that was cut is still read."""
    seen = await stage.play(said("0123456789abcdef", error("rate limited")), profile={"max_reply_chars": 10})
    if seen.code == 0:
        raise Broken("an error line after a long reply was not noticed")


@SUITE.check("br.cut.partials", "SHOULD", "Profile")
async def streams_are_cut(stage: Stage) -> None:
    """The limit also applies to all partials together."""
    pieces = said(partial("0123"), partial("4567"), partial("89abcd"), partial("efgh"))
    seen = await stage.play(pieces, profile={"max_reply_chars": 10, "truncation_suffix": " [cut]"})
    holds("what was shown", seen.partials, "4567")
    lacks("what was shown", seen.partials, "efgh")
