"""`goose run --output-format stream-json`: messages in pieces that share an id.

The session's id is not part of the stream: it stands in the lines for people that goose prints before it, unless it
is told to be quiet.
"""

from __future__ import annotations

import re

from trunkline.base.cutting import cut_between_words
from trunkline.base.escapes import without_escapes
from trunkline.wires.agentproc.codec import SHOWN_CHARS
from trunkline.wires.agentproc.streams.jsonlines import Event, JsonLines, member, objects, text_of

#: Goose numbers the sessions of a day.
_SESSION = re.compile(r"\b(20\d{6}_\d+)\b")


class Stream(JsonLines):
    """Reads one run."""

    def __init__(self) -> None:
        super().__init__()
        self._began = False
        self._message_id: object = None

    def take(self, event: Event) -> None:
        """Say what an object means."""
        self._began = True
        match event.get("type"):
            case "message":
                self._take_message(event.get("message"))
            case "error":
                self.fail(event.get("error"))
            case "complete":
                total = event.get("total_tokens")
                self.succeed({"total_tokens": total} if isinstance(total, int) else None)

    def take_noise(self, line: str) -> None:
        """The lines before the stream tell the session's id; what comes later is noise."""
        shown = without_escapes(line).strip()
        found = None if self._began else _SESSION.search(shown)
        if found is not None:
            self.session(found[1])
        elif shown:
            self.note(f"a line for people was skipped: `{cut_between_words(shown, SHOWN_CHARS)}`")

    def _take_message(self, message: object) -> None:
        if member(message, "role") != "assistant" or member(message, "id") != self._message_id:
            self.part()
        self._message_id = member(message, "id")
        if member(message, "role") != "assistant":
            return
        for content in objects(member(message, "content")):
            match content.get("type"):
                case "text":
                    self.piece(content.get("text"))
                case "thinking" | "reasoning":
                    self.think(text_of(content.get("thinking")) or content.get("text"))
