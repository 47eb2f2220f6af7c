"""How a project's file may change what the user has set: it may make it narrower, and nothing else.

A `Narrowing` is given what is in force, or None where nobody has said anything, and what the project says. It gives
what is in force then, which is never more than before. `followed` says whether that holds all that the project said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

Narrowing: TypeAlias = Callable[[Any, Any], Any]


def followed(theirs: Any, value: Any) -> bool:
    """Whether what a project says is in force. A list may hold what others said, too."""
    if isinstance(theirs, list) and isinstance(value, list):
        return all(entry in value for entry in theirs)
    return bool(theirs == value)


def less(ours: int | None, theirs: int) -> int | None:
    """The smaller number. Where nobody set one, whoever asks has to know what holds, or that it is nothing."""
    return ours if ours is None else min(ours, theirs)


def fewer(ours: int | None, theirs: int) -> int | None:
    """The smaller limit; 0 and None are none."""
    if not ours or not theirs:
        return ours or theirs
    return min(ours, theirs)


def stricter(words: Sequence[str], otherwise: str | None = None) -> Narrowing:
    """The word that comes first in the list. Where nobody has said one, none behind what then holds, or the first."""
    holds = words.index(otherwise or words[0])

    def narrowed(ours: str | None, theirs: str) -> str | None:
        if ours is None:
            return theirs if words.index(theirs) <= holds else None
        return min(ours, theirs, key=words.index)

    return narrowed


def only_off(ours: bool | None, theirs: bool) -> bool | None:
    """A switch that a project may turn off."""
    return ours if theirs else False


def within(otherwise: Collection[str] | None = None) -> Narrowing:
    """Those of a project's names that are also ours; without ours, of those that are so by themselves, or of all."""

    def narrowed(ours: Collection[str] | None, theirs: Sequence[str]) -> list[str]:
        allowed = otherwise if ours is None else ours
        return [name for name in theirs if allowed is None or name in allowed]

    return narrowed


def joined(ours: Sequence[str] | None, theirs: Sequence[str]) -> list[str]:
    """Both: each entry of such a list takes something away."""
    return [*(ours or ()), *theirs]


def unless_said(safe: Callable[[Any], bool]) -> Narrowing:
    """One of a few equals, where the user has left it open."""

    def narrowed(ours: Any, theirs: Any) -> Any:
        return theirs if ours is None and safe(theirs) else ours

    return narrowed
