"""`--output-format streaming-json` of Grok Build: pieces of the text and of the reasoning, and an end with the id."""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "text":
                self.piece(event.get("data"))
            case "thought":
                self.think(event.get("data"))
            case "end":
                self.session(event.get("sessionId"))
                self.succeed(event.get("usage"))
            case "error":
                self.session(event.get("sessionId"))
                self.fail(event.get("message"))
