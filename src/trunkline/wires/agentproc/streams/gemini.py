"""`--output-format stream-json` of Gemini CLI: messages in pieces, and a `result` that may be an error."""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "init":
                self.session(event.get("session_id"))
            case "message" if event.get("role") == "assistant":
                if event.get("delta") is True:
                    self.piece(event.get("content"))
                else:
                    self.passage(event.get("content"))
            case "tool_use":
                self.part()
            case "error":
                self._take_error(event)
            case "result" if event.get("status") == "error":
                self.fail(member(event, "error", "message"))
            case "result":
                self.succeed(event.get("stats"))

    def _take_error(self, event: Event) -> None:
        if event.get("severity") == "warning":
            self.note(f"gemini warns: {event.get('message')}")
        else:
            self.worry(event.get("message"))
