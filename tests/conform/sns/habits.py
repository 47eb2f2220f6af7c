"""How a bad habit of a network is told: what bends its answers, and the checks that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.conform.sns.bent import Asked, Bend, Reply


class Habit(NamedTuple):
    """A network with a bad habit: bent on its way, or in its own code."""

    fails: tuple[str, ...]
    bend: Bend | None = None
    patch: Callable[[pytest.MonkeyPatch], None] | None = None
    alone: bool = False
    """No other check of the same groups may fail."""


HABITS: dict[str, Habit] = {}


def bends(*fails: str, alone: bool = False) -> Callable[[Bend], Bend]:
    """Decorator: a habit that is told by what becomes of a request."""

    def register(bend: Bend) -> Bend:
        HABITS[bend.__name__] = Habit(fails, bend=bend, alone=alone)
        return bend

    return register


def patched(name: str, place: str, value: Any, *fails: str, alone: bool = False) -> None:
    """A habit that is told by what is different in the network's code."""
    HABITS[name] = Habit(fails, patch=lambda patch: patch.setattr(place, value), alone=alone)


def says(name: str, wrong: str, reply: Reply, *fails: str, alone: bool = False) -> None:
    """A habit that gives another answer where the network would say `wrong`."""

    async def bend(asked: Asked) -> Reply:
        told = await asked.forward()
        return reply if told.error == wrong else told

    HABITS[name] = Habit(fails, bend=bend, alone=alone)


def forgives(name: str, wrong: str, when: Callable[[Asked], bool], *fails: str, alone: bool = False) -> None:
    """A habit that does what was asked although it is `wrong`, in some cases."""

    async def bend(asked: Asked) -> Reply:
        told = await asked.forward()
        return await asked.resigned() if told.error == wrong and when(asked) else told

    HABITS[name] = Habit(fails, bend=bend, alone=alone)
