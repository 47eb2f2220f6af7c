"""`codex exec --json`: items of a turn in a thread. Text comes in whole messages, not in pieces."""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, text_of


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "thread.started":
                self.session(event.get("thread_id"))
            case "item.completed":
                self._take_item(event.get("item"))
            case "turn.completed":
                self.succeed(event.get("usage"))
            case "turn.failed":
                self.fail(member(event, "error", "message"))
            case "error":
                # Also said of an attempt that is made again.
                self.worry(event.get("message"))

    def _take_item(self, item: object) -> None:
        match member(item, "type"):
            case "agent_message":
                self.passage(member(item, "text"))
            case "reasoning":
                self.think(member(item, "text"))
            case "error":
                self.note(f"codex reports: {text_of(member(item, 'message'))}")
