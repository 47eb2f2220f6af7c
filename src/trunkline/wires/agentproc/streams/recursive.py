"""`--json --stream` of recursive: each step in pieces, then whole."""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "partial_token":
                self.piece(event.get("text"))
            case "assistant_text":
                self.passage(event.get("text"))
            case "turn_finished":
                self.succeed()
