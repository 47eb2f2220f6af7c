"""How a bad habit of an agent is told: a class of agent, and the checks that must notice it."""

from __future__ import annotations

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.conform.acp.good_agent import GoodAgent

    A = TypeVar("A", bound=type[GoodAgent])


class Habit:
    """An agent with a bad habit. Of the checks in `among`, exactly those in `fails` must fail."""

    def __init__(self, agent: type[GoodAgent], fails: tuple[str, ...], among: tuple[str, ...]) -> None:
        self.agent = agent
        self.fails = fails
        self.among = among


HABITS: dict[str, Habit] = {}


def habit(*fails: str, among: tuple[str, ...] | None = None) -> Callable[[A], A]:
    """Registers an agent under its class's name.

    The checks are named without their `acp.`; `among`: unless given, the groups of the checks that it fails.
    """
    named = tuple(f"acp.{each}" for each in fails)
    groups = tuple(sorted({f"acp.{each.split('.')[0]}.*" for each in fails}))

    def register(agent: A) -> A:
        HABITS[agent.__name__] = Habit(agent, named, groups if among is None else tuple(f"acp.{e}" for e in among))
        return agent

    return register
