"""`--output-format stream-json` of Claude Code, and of Qwen Code, which took it over.

`assistant` messages hold whole passages; with `--include-partial-messages` their pieces come before as `stream_event`.
The last object is a `result`. What a sub-agent says, to be told by its `parent_tool_use_id`, is not the answer.
"""

from __future__ import annotations

from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, objects, text_of

#: The model's name in a message that the program made up to tell of an error.
_SYNTHETIC = "<synthetic>"
#: How such a message begins where it has no such mark.
_API_ERROR = "[API Error"

#: Why a run was ended where no words come with it.
_SUBTYPES = {
    "error_max_turns": "The agent has reached its limit of steps.",
    "error_max_budget_usd": "The agent has reached its limit of cost.",
}


class Stream(JsonLines):
    """Reads one run."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[str] = []

    def take(self, event: Event) -> None:
        """Say what an object means."""
        kind = event.get("type")
        if kind == "result":
            self._end(event)
            return
        self.session(event.get("session_id"))
        if event.get("parent_tool_use_id"):
            return
        if kind == "stream_event":
            self._go_on(event.get("event"))
        elif kind == "assistant":
            self._tell(event)

    def close(self) -> None:
        """A message about an error that no `result` followed is all there is."""
        for text in self._held:
            self.passage(text)
        self._held.clear()

    def _go_on(self, event: object) -> None:
        if member(event, "type") == "content_block_start":
            if member(event, "content_block", "type") == "text":
                self.part()
        elif member(event, "type") == "content_block_delta":
            text = text_of(member(event, "delta", "text"))
            if text.startswith(_API_ERROR):
                self._hold(text)
            else:
                self.piece(text)
            self.think(member(event, "delta", "thinking"))

    def _tell(self, event: Event) -> None:
        for block in objects(member(event, "message", "content")):
            if block.get("type") == "thinking":
                self.think_passage(block.get("thinking"))
            elif block.get("type") == "text":
                text = text_of(block.get("text"))
                if member(event, "message", "model") == _SYNTHETIC or text.startswith(_API_ERROR):
                    self._hold(text)
                else:
                    self.passage(text)

    def _hold(self, text: str) -> None:
        """Wait with a message about an error: the result says the same, and as an answer it would be said twice."""
        if text not in self._held:
            self._held.append(text)

    def _end(self, event: Event) -> None:
        if event.get("is_error") is True:
            self._held.clear()
            self.fail(_complaint(event))
            return
        self.session(event.get("session_id"))
        self.close()
        if not self.answer():
            self.passage(event.get("result"))
        usage = event.get("usage")
        cost = event.get("total_cost_usd")
        counted = {**usage} if isinstance(usage, dict) else {}
        self.succeed({**counted, "cost_usd": cost} if isinstance(cost, int | float) else counted)


def _complaint(event: Event) -> str:
    errors = event.get("errors")
    listed = [text_of(error) for error in errors] if isinstance(errors, list) else []
    return (
        text_of(event.get("result"))
        or "\n".join(filter(None, listed))
        or text_of(member(event, "error", "message"))
        or _SUBTYPES.get(text_of(event.get("subtype")), "")
    )
