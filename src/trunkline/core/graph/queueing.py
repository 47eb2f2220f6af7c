"""How long a turn of a graph waits until a model has time for it.

Who makes turn and model wait for each other, and who tells of the turn, are far apart: nodes, engines and those who
share an engine out are between them. So a turn puts an account where it runs, and whoever lets it wait adds to that.
"""

from __future__ import annotations

from contextvars import ContextVar


class WaitAccount:
    """What one turn has waited so far."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


#: That of the turn that runs here; None outside of one.
account: ContextVar[WaitAccount | None] = ContextVar("trunkline_wait_account", default=None)


def waited(seconds: float) -> None:
    """A model has let whoever runs here wait."""
    found = account.get()
    if found is not None:
        found.seconds += seconds
