"""The suites that the checks of agents register with, one for each dialect, and the turns that their judges see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from trunkline.conform.agentproc.agent.stage import Stage
from trunkline.conform.kit import Scene, Suite, Tier
from trunkline.wires.agentproc.messages import Dialect, TurnRequest


async def tour(stage: Stage) -> None:
    """Ordinary turns: new ones, with and without streaming, one that goes on, one that fails."""
    first = await stage.take(TurnRequest(stage.prompt("hello")))
    session = first.sessions[-1] if first.sessions else ""
    await stage.take(TurnRequest(stage.prompt("repeat", "one\ntwo"), session_id=session))
    await stage.take(TurnRequest(stage.prompt("hello"), streaming=False))
    await stage.take(TurnRequest(stage.prompt("fail")))


#: The second part of the ids, in the order of the protocol document as far as it has one.
_GROUPS = (
    "turn", "attach", "stdin", "line", "event", "body", "session", "stream", "permission", "error", "exit", "term",
)  # fmt: skip


def _suite(prefix: str) -> Suite[Stage]:
    return Suite(tour, package=__package__, groups=_GROUPS, gate=f"{prefix}.turn.answer")


#: 0.1: variables in, lines out; the ids of its checks begin with `ap`.
OLD = _suite("ap")
#: 0.4: JSON both ways; the ids of its checks begin with `ap4`.
NEW = _suite("ap4")

SUITES: Mapping[Dialect, Suite[Stage]] = {"0.1": OLD, "0.4": NEW}


def in_both(
    name: str, tier: Tier, section: str
) -> Callable[[Callable[[Stage], Awaitable[None]]], Callable[[Stage], Awaitable[None]]]:
    """Decorator: a check that both dialects have, under `ap.NAME` and `ap4.NAME`."""

    def register(scene: Scene[Stage]) -> Scene[Stage]:
        OLD.check(f"ap.{name}", tier, section)(scene)
        NEW.check(f"ap4.{name}", tier, section)(scene)
        return scene

    return register
