"""What a cell of the loss ledger is, and short ways to write one. The columns are in files of their own."""

from __future__ import annotations

from typing import Literal

from trunkline.base.values import Value

Fate = Literal["carried", "degraded", "refused"]


class Cell(Value):
    """What becomes of a concept on one wire."""

    fate: Fate
    how: str
    """In which form it crosses the wire, or why it does not."""
    lost: str | None = None
    """What a peer does not learn or cannot say. Only where it is degraded, and always there."""
    lines: tuple[str, ...] = ()
    """The types of the messages that carry it."""


def carried(how: str, *lines: str) -> Cell:
    """It crosses whole, in this form and in these messages."""
    return Cell("carried", how, lines=lines)


def degraded(how: str, lost: str, *lines: str) -> Cell:
    """Something of it crosses, and something is lost."""
    return Cell("degraded", how, lost, lines)


def refused(why: str) -> Cell:
    """Nothing of it crosses."""
    return Cell("refused", why)


#: Of what is for the log alone.
PRIVATE = "private: for the log alone, no peer ever sees it"
