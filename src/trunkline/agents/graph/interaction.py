"""One interaction, for the diagnostics: the message, and what the nodes have added to it, in their order.

[{"_type": "HumanMessage", "text": "who guards the gate?"},
 {"_type": "KnowledgeComponent", "source": "lore", "chunks": [{"id": "0", "text": "...", "distance": 0.2}]},
 {"_type": "CharacterMessage", "text": "Nobody does."}]
"""

from __future__ import annotations

from typing import Any

from trunkline.agents.graph.turn import GraphTurn, InstructionText, Knowledge
from trunkline.models.tool_calls import Call

#: Characters of all that is shown.
MAX_SHOWN = 128 * 1024
#: What a part costs beside its texts: names and marks of JSON, and time.
_EACH = 32

#: A part, or the type, the key and the text of one that has no more than that.
_Part = InstructionText | Knowledge | Call | tuple[str, str, str]


class Interaction:
    """What one turn has gathered so far. `update` looks at what is new."""

    def __init__(self, turn: GraphTurn) -> None:
        self._turn = turn
        self._parts: list[_Part] = [("HumanMessage", "text", turn.text)]
        self._instructions = self._knowledge = self._calls = self._written = 0
        self._intent: str | None = None

    def update(self) -> None:
        """A node is done: what it has added comes after what was there."""
        turn = self._turn
        self._parts += turn.knowledge[self._knowledge :]
        if turn.intent is not None and turn.intent != self._intent:
            self._parts.append(("IntentionComponent", "intentLabel", turn.intent))
        self._parts += turn.instructions[self._instructions :]
        self._parts += turn.tool_calls[self._calls :]
        self._parts += [("CharacterMessage", "text", text) for text in turn.written[self._written :]]
        self._knowledge, self._intent = len(turn.knowledge), turn.intent
        self._instructions, self._calls = len(turn.instructions), len(turn.tool_calls)
        self._written = len(turn.written)

    def shown(self, cut: int = MAX_SHOWN) -> tuple[list[dict[str, Any]], bool]:
        """All parts, with no text longer than that, and whether nothing is missing."""
        parts = [*self._parts]
        if self._turn.pieces:
            # A node that was stopped has said so much.
            parts.append(("CharacterMessage", "text", "".join(self._turn.pieces)))
        paper = _Paper(cut)
        found = []
        for part in parts:
            if paper.full:
                break
            found.append(paper.part(part))
        return found, paper.whole


class _Paper:
    """Where parts are written down. `whole`: none of their texts was cut, and none is missing."""

    def __init__(self, cut: int) -> None:
        self._cut = cut
        self._left = MAX_SHOWN
        self.whole = True

    @property
    def full(self) -> bool:
        """Whether there is no room for more; asked only when there is more."""
        if self._left > 0 and self._cut:
            return False
        self.whole = False
        return True

    def part(self, part: _Part) -> dict[str, Any]:
        """What is written of one."""
        self._left -= _EACH
        if isinstance(part, InstructionText):
            return {"_type": "InstructionComponent", "name": self.text(part.name), "text": self.text(part.text)}
        if isinstance(part, Knowledge):
            return {"_type": "KnowledgeComponent", "source": self.text(part.source), "chunks": self._chunks(part)}
        if isinstance(part, Call):
            arguments = self.text(part.arguments_json)
            return {"_type": "ToolCallComponent", "tool_name": self.text(part.name), "arguments_json": arguments}
        kind, key, text = part
        return {"_type": kind, key: self.text(text)}

    def _chunks(self, found: Knowledge) -> list[dict[str, Any]]:
        chunks = []
        for chunk in found.chunks:
            if self.full:
                break
            self._left -= _EACH
            chunks.append(
                {"id": self.text(chunk.id), "text": self.text(chunk.text), "distance": round(chunk.distance, 6)}
            )
        return chunks

    def text(self, text: str) -> str:
        """As much of a text as may be."""
        most = max(0, min(self._cut, self._left))
        if len(text) > most:
            self.whole = False
            text = text[:most] + " ..."
        self._left -= len(text)
        return text
