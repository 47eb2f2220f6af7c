"""The suite that the checks of bridges register with."""

from __future__ import annotations

from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.kit import Broken, NotExercised, Suite


async def tour(stage: Stage) -> None:
    """There are no judges: each check looks at its own turns."""


SUITE: Suite[Stage] = Suite(tour)
SUITE.gate = "br.run.reply"


def same(what: str, found: object, wanted: object) -> None:
    """Two things are the same.

    Raises:
        Broken: they are not.
    """
    if found != wanted:
        raise Broken(f"{what} is {_short(found)}, not {_short(wanted)}")


def holds(what: str, text: str, wanted: str) -> None:
    """A text holds another.

    Raises:
        Broken: it does not.
    """
    if wanted not in text:
        raise Broken(f"{what} does not hold {_short(wanted)}, but is {_short(text.strip())}")


def lacks(what: str, text: str, unwanted: str) -> None:
    """A text does not hold another.

    Raises:
        Broken: it does.
    """
    if unwanted in text:
        raise Broken(f"{what} holds {_short(unwanted)}: {_short(text.strip())}")


def needs(stage: Stage, placeholder: str) -> None:
    """The command has a place for what is to be said.

    Raises:
        NotExercised: it has not.
    """
    if not stage.takes(placeholder):
        raise NotExercised(f"the command has no `{placeholder}`")


def _short(value: object) -> str:
    text = f"{value!a}"
    return text if len(text) <= 200 else f"{text[:160]}... ({len(text)} characters)"
