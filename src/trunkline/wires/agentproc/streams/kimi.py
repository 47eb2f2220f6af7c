"""`--output-format stream-json` of Kimi Code, and of kimi-cli before it: the messages of a chat, one to a line.

Kimi Code names the session in its last line. kimi-cli does not name it on standard output at all.
"""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, objects, text_of


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("role"):
            case "assistant":
                self._tell(event.get("content"))
            case "meta" if event.get("type") == "session.resume_hint":
                self.session(event.get("session_id"))
                self.succeed()
            case "meta" if event.get("type") == "turn.step.retrying":
                self.note(f"kimi tries again: {text_of(event.get('error_message'))}")

    def _tell(self, content: object) -> None:
        if isinstance(content, str):
            self.passage(content)
        for part in objects(content):
            self.think(part.get("think"))
            if part.get("type") == "text":
                self.passage(part.get("text"))
