"""How a bad habit of a bridge is told: a class of bridge, and the checks that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tests.conform.agentproc.good_bridge import GoodBridge

B = TypeVar("B", bound=type[GoodBridge])


class Habit(NamedTuple):
    """A bridge with a bad habit, and the checks that must fail."""

    bridge: type[GoodBridge]
    fails: tuple[str, ...]


HABITS: dict[str, Habit] = {}


def habit(*fails: str) -> Callable[[B], B]:
    def register(bridge: B) -> B:
        HABITS[bridge.__name__] = Habit(bridge, fails)
        return bridge

    return register
