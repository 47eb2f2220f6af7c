"""Bad habits of servers, by the names of their classes: which checks notice each of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Habit:
    """A server, and what it fails of that which is tried with it."""

    def __init__(self, server: type[Any], fails: tuple[str, ...], among: tuple[str, ...], web: bool) -> None:
        self.server = server
        self.fails = fails
        self.among = among
        self.web = web


HABITS: dict[str, Habit] = {}


def habit(*fails: str, among: tuple[str, ...] = (), web: bool = False) -> Callable[[type[Any]], type[Any]]:
    """The checks that a server fails, without their `mcp.`. Tried are those of the same groups, and `among`."""

    def register(server: type[Any]) -> type[Any]:
        groups = {f"mcp.{each.partition('.')[0]}.*" for each in fails}
        named = tuple(f"mcp.{each}" for each in fails)
        HABITS[server.__name__] = Habit(server, named, (*sorted(groups), *(f"mcp.{each}" for each in among)), web)
        return server

    return register
