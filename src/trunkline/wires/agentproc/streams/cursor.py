"""`--output-format stream-json --stream-partial-output` of Cursor's command-line agent.

An `assistant` object is one of three things, and only the first is new text:

- with `timestamp_ms` alone, a piece as it comes from the model;
- with `timestamp_ms` and `model_call_id`, the pieces since the last tool, again;
- with neither, the whole answer, again.

Without `--stream-partial-output` there are only whole messages. A failure ends the output early; why is on standard
error.
"""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, objects, text_of


class Stream(JsonLines):
    """Reads one run."""

    def take(self, event: Event) -> None:
        """Say what an object means."""
        match event.get("type"):
            case "system":
                self.session(event.get("session_id"))
            case "thinking":
                self.think(event.get("text"))
            case "assistant":
                self._tell(event)
            case "tool_call":
                self.part()
            case "result":
                self._end(event)

    def _tell(self, event: Event) -> None:
        text = "".join(text_of(block.get("text")) for block in objects(member(event, "message", "content")))
        if "timestamp_ms" in event and "model_call_id" not in event:
            self.piece(text)
        elif not self.repeats_the_answer(text):
            self.passage(text)

    def _end(self, event: Event) -> None:
        if event.get("is_error") is True:
            self.fail(text_of(event.get("result")) or event.get("subtype"))
            return
        self.session(event.get("session_id"))
        if not self.answer():
            self.passage(event.get("result"))
        self.succeed(event.get("usage"))
