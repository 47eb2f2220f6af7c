"""The suite that the checks of bridges register with."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.kit import NotExercised, Suite


async def tour(stage: Stage) -> None:
    """There are no judges: each check looks at its own turns."""


#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "run", "place", "env", "stdin", "body", "session", "partial", "error", "exit", "timeout", "tree", "cut",
)  # fmt: skip

SUITE: Suite[Stage] = Suite(tour, package=__package__, groups=_GROUPS, gate="br.run.reply")


def needs(stage: Stage, placeholder: str) -> None:
    """The command has a place for what is to be said.

    Raises:
        NotExercised: it has not.
    """
    if not stage.takes(placeholder):
        raise NotExercised(f"the command has no `{placeholder}`")
