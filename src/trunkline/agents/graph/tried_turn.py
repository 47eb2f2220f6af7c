"""A turn of a graph as whoever tries one sees it: what was answered, which tools were called, what the nodes did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.core.events import Envelope, Extension, Failed, Progress, TextDelta, ToolJudged, TurnEnded
from trunkline.core.graph.turns import TURN_DIAGNOSTICS
from trunkline.core.usage import Usage


class TurnHeard:
    """A sink that keeps what a turn was. `on_progress` is told what it waits for."""

    congested = False
    #: All tools of the graph are allowed: nobody is asked about one.
    sees_judged = True

    def __init__(self, on_progress: Callable[[str], None] = lambda _: None) -> None:
        self.failed = ""
        """The first thing that went wrong."""
        self.outcome = ""
        self.usage: Usage | None = None
        """What it used, as far as the agent says so."""
        self.text = ""
        self.tools: list[tuple[str, Mapping[str, Any]]] = []
        self.diagnostics: Mapping[str, Any] | None = None
        """None if there was no agent to run it."""
        self.progress = ""
        """The last sign of life."""
        self._on_progress = on_progress

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Keep some events."""
        for envelope in envelopes:
            match envelope.event:
                case TextDelta(text=text):
                    self.text += text
                case ToolJudged(name=name, args=arguments):
                    self.tools.append((name, arguments))
                case Extension(kind=kind, data=data) if kind == TURN_DIAGNOSTICS:
                    self.diagnostics = data
                case Progress(message=text):
                    self.progress = text
                    self._on_progress(text)
                case Failed(message=message):
                    self.failed = self.failed or message
                case TurnEnded(outcome=outcome, usage=usage):
                    self.outcome, self.usage = outcome, usage

    async def drain(self) -> None:
        """It is never behind."""
