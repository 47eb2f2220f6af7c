"""How a bad habit of a server is told: a class of server, and the checks that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tests.conform.openai.good_server import GoodServer

S = TypeVar("S", bound=type[GoodServer])


class Habit(NamedTuple):
    """A server with a bad habit. Of the checks in `among`, exactly those in `fails` must fail."""

    server: type[GoodServer]
    fails: tuple[str, ...]
    among: tuple[str, ...]


HABITS: dict[str, Habit] = {}


def habit(*fails: str, among: tuple[str, ...] | None = None) -> Callable[[S], S]:
    """Registers a server under its class's name.

    The checks are named without their `openai.`; `among`: unless given, the groups of the checks that it fails.
    """
    named = tuple(f"openai.{each}" for each in fails)
    groups = tuple(sorted({f"openai.{each.split('.')[0]}.*" for each in fails}))

    def register(server: S) -> S:
        HABITS[server.__name__] = Habit(server, named, groups if among is None else tuple(f"openai.{e}" for e in among))
        return server

    return register
