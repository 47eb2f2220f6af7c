"""Checks of partial lines: shown at once where that is wanted, and nowhere else."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.part import partial, said
from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken, NotExercised

#: How soon after the agent said it a piece has to be shown: it is there within milliseconds, or only at the end.
LIVE_SECONDS = 1.0
#: More pieces than any buffer on the way holds.
MANY = 5000


@SUITE.check("br.partial.shown", "MUST", "Partials")
async def partials_are_shown(stage: Stage) -> None:
    """Partial lines are shown, in order."""
    seen = await stage.play(said(partial("piece-one "), partial("piece-two ")))
    same("the exit code", seen.code, 0)
    holds("what was shown", seen.partials, "piece-one")
    holds("what was shown", seen.partials, "piece-two")
    if seen.partials.index("piece-one") > seen.partials.index("piece-two"):
        raise Broken("the partials are in another order")


@SUITE.check("br.partial.decoded", "MUST", "Partials")
async def partials_are_decoded(stage: Stage) -> None:
    """What is shown is the text of the JSON string, not the JSON."""
    text = 'tab\tquote" line\nü 🙂'
    seen = await stage.play(said(partial(text)))
    holds("what was shown", seen.partials, text)


@SUITE.check("br.partial.live", "SHOULD", "Partials")
async def partials_are_live(stage: Stage) -> None:
    """A partial is shown at once, while the agent is still running."""
    steps = (said(partial("piece-one")), ["mark", "said"], ["await", "go"], said(partial("piece-two")))
    running = await stage.begin(*steps)

    def shown() -> bool:
        return b"piece-one" in running.output or "piece-one" in running.stderr

    if not await stage.comes("said", stage.target.timeout):
        raise NotExercised("the agent was not started")
    came = await running.until(shown, LIVE_SECONDS)
    stage.put("go")
    seen = await stage.seen(running, stage.target.timeout)
    if not came and seen.data is not None:
        raise NotExercised("the bridge shows everything at the end")
    if not came:
        raise Broken(f"nothing was shown {LIVE_SECONDS:g} s after the agent wrote it")


@SUITE.check("br.partial.off", "MUST", "Partials")
async def partials_can_be_off(stage: Stage) -> None:
    """With `streaming: false` partial lines are ignored, and the reply is shown."""
    seen = await stage.play(said(partial("piece-one"), "the reply"), profile={"streaming": False})
    lacks("what was shown", seen.shown, "piece-one")
    same("the reply", seen.reply, "the reply")


@SUITE.check("br.partial.and-body", "MUST", "Partials")
async def partials_and_reply_are_shown(stage: Stage) -> None:
    """A turn may have both partials and a reply; the reply does not include the partials."""
    seen = await stage.play(said(partial("piece-one"), "the reply"))
    holds("what was shown", seen.shown, "piece-one")
    holds("the reply", seen.reply, "the reply")
    if seen.data is not None:
        lacks("the reply", seen.reply, "piece-one")


@SUITE.check("br.partial.lenient", "SHOULD", "Partials")
async def careless_partials_are_shown(stage: Stage) -> None:
    """Text after the prefix that is not a JSON string is shown as it is, not lost."""
    seen = await stage.play(said("AGENT_PARTIAL:plain words", "AGENT_PARTIAL:[42, true]"))
    same("the exit code", seen.code, 0)
    holds("what was shown", seen.partials, "plain words")
    holds("what was shown", seen.partials, "[42, true]")


@SUITE.check("br.partial.many", "SHOULD", "Partials")
async def no_partial_is_lost(stage: Stage) -> None:
    """No partial is lost, however fast they arrive."""
    seen = await stage.play(
        said(*(partial(f"<{number}>") for number in range(MANY))), profile={"max_reply_chars": 10**6}
    )
    shown = seen.partials
    missing = [number for number in range(MANY) if f"<{number}>" not in shown]
    if missing:
        raise Broken(f"{len(missing)} of {MANY} partials are missing, {missing[0]} first")
