"""How a bad habit of a bridge is told: a class of bridge, and the checks that must notice it."""

from __future__ import annotations

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.conform.agentproc.good_bridge import GoodBridge

    B = TypeVar("B", bound=type[GoodBridge])


class Habit:
    """A bridge with a bad habit, and the checks that must fail."""

    def __init__(self, bridge: type[GoodBridge], fails: tuple[str, ...]) -> None:
        self.bridge = bridge
        self.fails = fails


HABITS: dict[str, Habit] = {}


def habit(*fails: str) -> Callable[[B], B]:
    def register(bridge: B) -> B:
        HABITS[bridge.__name__] = Habit(bridge, fails)
        return bridge

    return register
