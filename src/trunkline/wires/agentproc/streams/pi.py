"""`pi --mode json`: a header with the session's id, then all that happens, pieces included.

A message that failed ends with `stopReason` `error`; pi may try again, so that only the last one counts.
"""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, objects

#: What a message counts -> what usage calls it.
_COUNTS = {"input": "input_tokens", "output": "output_tokens", "totalTokens": "total_tokens"}


class Stream(JsonLines):
    """Reads one run."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "session":
                self.session(event.get("id"))
            case "message_start" if member(event, "message", "role") == "assistant":
                self.part()
            case "message_update":
                self._go_on(event.get("assistantMessageEvent"))
            case "message_end" if member(event, "message", "role") == "assistant":
                self._end(event.get("message"))

    def _go_on(self, event: object) -> None:
        match member(event, "type"):
            case "text_delta":
                self.piece(member(event, "delta"))
            case "thinking_delta":
                self.think(member(event, "delta"))

    def _end(self, message: object) -> None:
        if member(message, "stopReason") == "error":
            self.worry(member(message, "errorMessage") or "the model's service failed")
            return
        self.relax()
        texts = [block.get("text") for block in objects(member(message, "content")) if block.get("type") == "text"]
        self.passage("".join(text for text in texts if isinstance(text, str)))
        self._count(member(message, "usage"))
        self.succeed(self._counted)

    def _count(self, usage: object) -> None:
        """Each message counts for itself."""
        for theirs, ours in _COUNTS.items():
            count = member(usage, theirs)
            if isinstance(count, int):
                self._counted[ours] = self._counted.get(ours, 0) + count
