"""A turn of a client's graph for whoever follows it (`core.tracing`): these belong to no session of ours."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from trunkline.core.events import Outcome
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.turns import Ending
from trunkline.core.tracing import TurnTrace
from trunkline.core.usage import Usage

#: What all of their agents are called: a client gives a graph, and no name.
AGENT = "graph"

_OUTCOMES: dict[int, Outcome] = {TurnStatus.SUCCESS: "success", TurnStatus.CANCELLED: "cancelled"}


async def traced(work: Coroutine[Any, Any, Ending], trace: TurnTrace) -> Ending:
    """Do it, while somebody follows it."""
    trace.entered()
    ending = Ending(TurnStatus.CANCELLED)
    try:
        ending = await work
        return ending
    finally:
        used = Usage(ending.tokens_prompt or None, ending.tokens_generated, ending.tokens_cached or None)
        trace.ended(_OUTCOMES.get(ending.status, "error"), used, ending.error.kind if ending.error else "")
