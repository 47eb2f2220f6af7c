"""What checks say about what they found, in the same words in every kit. Each raises `Broken` where it is not so."""

from __future__ import annotations

from trunkline.conform.kit import Broken

#: What is shown of a value as a whole, and how much of a longer one: a reason has to fit into a row of a table.
SHORT_CHARS = 200
CUT_CHARS = 160


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
