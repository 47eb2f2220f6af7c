"""How a bad habit of a Tryll server is told: what it does otherwise, and the checks that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conform.tryll.bent import Answers, Habit, Requests
from trunkline.wires.tryll import messages as m

#: By name; made anew for each run, since a habit may remember things.
HABITS: dict[str, Callable[[], Habit]] = {}


def answers(*fails: str) -> Callable[[Answers], Answers]:
    """Decorator: a habit that is told by what becomes of a server's message."""

    def register(bend: Answers) -> Answers:
        HABITS[bend.__name__] = lambda: Habit(fails, answers=bend)
        return bend

    return register


def requests(*fails: str) -> Callable[[Requests], Requests]:
    """Decorator: a habit that is told by what becomes of a client's message."""

    def register(bend: Requests) -> Requests:
        HABITS[bend.__name__] = lambda: Habit(fails, requests=bend)
        return bend

    return register


def rewrites(name: str, kind: type[m.NodeParams], *fails: str, **fields: Any) -> None:
    """A habit that takes other parameters for nodes of a kind than it is given."""

    def bend(way: Any, message: Any, payload: bytes) -> Any:
        if not isinstance(message, m.CreateAgentRequest) or message.graph is None:
            return None
        nodes = tuple(
            each.replace(params=each.params.replace(**fields)) if isinstance(each.params, kind) else each
            for each in message.graph.nodes
        )
        return message.replace(graph=message.graph.replace(nodes=nodes))

    HABITS[name] = lambda: Habit(fails, requests=bend)


def changes(name: str, kind: type[m.Message], *fails: str, **fields: Any) -> None:
    """A habit that says other things in its messages of a kind."""

    def bend(way: Any, message: Any) -> Any:
        return message.replace(**fields) if isinstance(message, kind) else None

    HABITS[name] = lambda: Habit(fails, answers=bend)
