"""AgentProc 0.4, as JSON Schema."""

from __future__ import annotations

import json

from trunkline.wires.agentproc import schema
from trunkline.wires.line_schema import Direction

DIRECTIONS = ("events", "commands", "both")


def text(direction: Direction) -> str:
    """The document of one direction, or of both."""
    return json.dumps(schema.document(direction), indent=2, ensure_ascii=False) + "\n"
