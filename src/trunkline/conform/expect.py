"""What checks say about what they found, in the same words in every kit. Each raises `Broken` where it is not so."""

from __future__ import annotations

import asyncio
import time

from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.process import RunningTarget

#: What is shown of a value as a whole, and how much of a longer one: a reason has to fit into a row of a table.
SHORT_CHARS = 200
CUT_CHARS = 160

#: A process that is being killed may still be seen for a moment.
DYING_SECONDS = 0.5
_LOOK_SECONDS = 0.02


def expect(condition: bool, problem: str) -> None:
    """Something is so."""
    if not condition:
        raise Broken(problem)


def same(what: str, found: object, wanted: object) -> None:
    """Two things are the same."""
    if found != wanted:
        raise Broken(f"{what} is {short(found)}, not {short(wanted)}")


def holds(what: str, text: str, wanted: str) -> None:
    """A text holds another."""
    if wanted not in text:
        raise Broken(f"{what} does not contain {short(wanted)}, but is {short(text.strip())}")


def lacks(what: str, text: str, unwanted: str) -> None:
    """A text does not hold another."""
    if unwanted in text:
        raise Broken(f"{what} contains {short(unwanted)}: {short(text.strip())}")


def short(value: object) -> str:
    """Enough of a value for a reason."""
    text = f"{value!a}"
    return text if len(text) <= SHORT_CHARS else f"{text[:CUT_CHARS]}... ({len(text)} characters)"


async def exits(process: RunningTarget, patience: float, after: str) -> int:
    """A program ends in time; with which status."""
    code = await process.ended(patience)
    if code is None:
        raise Broken(f"still running {patience:g} s after {after}")
    return code


async def is_outlived(process: RunningTarget) -> bool:
    """Whether something that a program started goes on without it; a moment is granted.

    Raises:
        NotExercised: that cannot be seen here.
    """
    deadline = time.monotonic() + DYING_SECONDS
    while left := process.leftovers():
        if time.monotonic() > deadline:
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    if left is None:
        raise NotExercised("this system does not list its processes")
    return False
