"""`opencode run --format json`: the parts of each step, with the session's id on every line."""

from __future__ import annotations

from typing import Any

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, text_of

#: What a step counts -> what usage calls it.
_COUNTS = {"input": "input_tokens", "output": "output_tokens", "reasoning": "reasoning_tokens", "total": "total_tokens"}


class Stream(JsonLines):
    """Reads one run."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, Any] = {}

    def take(self, event: Event) -> None:
        """Say what an object means."""
        self.session(event.get("sessionID"))
        part = event.get("part")
        match event.get("type"):
            case "text":
                self.passage(member(part, "text"))
            case "reasoning":
                self.think(member(part, "text"))
            case "tool_use":
                self._take_tool(part)
            case "step_finish":
                self._count(part)
                self.succeed(self._counted)
            case "error":
                error = event.get("error")
                self.fail(text_of(member(error, "data", "message")) or member(error, "name"))

    def _take_tool(self, part: object) -> None:
        if member(part, "state", "status") == "error":
            tool, why = text_of(member(part, "tool")), text_of(member(part, "state", "error"))
            self.note(f"the tool `{tool}` was not used: {why}")

    def _count(self, part: object) -> None:
        """Each step counts for itself."""
        for theirs, ours in _COUNTS.items():
            count = member(part, "tokens", theirs)
            if isinstance(count, int | float):
                self._counted[ours] = self._counted.get(ours, 0) + count
        cost = member(part, "cost")
        if isinstance(cost, int | float):
            self._counted["cost_usd"] = self._counted.get("cost_usd", 0) + cost
