"""How a bad habit is told: a class of agent, and the checks that must notice it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.conform.good_agent import GoodAgent

    A = TypeVar("A", bound=type[GoodAgent])


class Habit:
    """An agent with a bad habit. Of the checks in `among`, exactly those in `fails` must not pass."""

    def __init__(self, agent: type[GoodAgent], fails: tuple[str, ...], among: tuple[str, ...]) -> None:
        self.agent = agent
        self.fails = fails
        self.among = among


HABITS: dict[str, Habit] = {}


def habit(*fails: str, among: tuple[str, ...] | None = None) -> Callable[[A], A]:
    """Registers an agent under its class's name.

    `among` are patterns of check ids: unless given, the groups of the checks that it fails.
    """
    groups = tuple(sorted({".".join(check.split(".")[:2]) + ".*" for check in fails}))

    def register(agent: A) -> A:
        HABITS[agent.__name__] = Habit(agent, fails, groups if among is None else among)
        return agent

    return register
