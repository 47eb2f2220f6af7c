"""How a bad habit of an agent is told: a class of agent, and the checks that must notice it."""

from __future__ import annotations

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.conform.agentproc.good_agent import GoodAgent

    A = TypeVar("A", bound=type[GoodAgent])


class Habit:
    """An agent with a bad habit, and the checks of each dialect (`ap`, `ap4`) that must fail."""

    def __init__(self, agent: type[GoodAgent], fails: tuple[str, ...]) -> None:
        self.agent = agent
        self.fails = fails


HABITS: dict[str, Habit] = {}


def habit(*fails: str) -> Callable[[A], A]:
    def register(agent: A) -> A:
        HABITS[agent.__name__] = Habit(agent, fails)
        return agent

    return register


def both(name: str) -> tuple[str, str]:
    """The ids of a check that both dialects have."""
    return f"ap.{name}", f"ap4.{name}"
