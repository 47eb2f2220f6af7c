"""The suite that the checks of hosts register with, and the conversation that its judges always see."""

from __future__ import annotations

from trunkline.conform.expect import holds
from trunkline.conform.jsonstream_host.part import ANSWER, request, result, running, text, turn
from trunkline.conform.jsonstream_host.stage import ASKED, SeenRun, Stage
from trunkline.conform.kit import Broken, Suite

#: What a check may need: that the host can be told more than one thing.
CONVERSES = "converses"


async def tour(stage: Stage) -> None:
    """An ordinary turn with a tool; a second one where the host can be told to."""
    say = (ASKED, "conform: and once more") if stage.target.converses else (ASKED,)
    steps = (request("t1"), ["decisions", 1, stage.target.patience], running("t1"), result("t1"), text(ANSWER))
    await stage.play(*turn(*steps), say=say)


#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "turn", "ready", "start", "version", "line", "message", "history", "text", "event", "tool", "error", "crash",
    "stderr", "end",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="jh.turn.answer")


def shows(seen: SeenRun, wanted: str = ANSWER) -> None:
    """The host has shown something.

    Raises:
        Broken: it has not.
    """
    holds("standard output", seen.stdout, wanted)


def well(seen: SeenRun) -> None:
    """The run ended well, and the answer was shown.

    Raises:
        Broken: it did not.
    """
    shows(seen)
    if seen.status != 0:
        raise Broken(f"the exit status is {seen.status} although the turn went well")


def told(seen: SeenRun) -> None:
    """The user was told of a failure.

    Raises:
        Broken: the host ended as if all were well, or said nothing.
    """
    if seen.status == 0:
        raise Broken("the exit status is 0 although there was no answer")
    if not seen.shown.strip():
        raise Broken("nothing was said")
