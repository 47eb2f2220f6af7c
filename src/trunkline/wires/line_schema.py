"""The schema of a wire of JSON lines, as JSON Schema (2020-12): one line is one instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Direction = Literal["events", "commands", "both"]
#: Those who speak: the agent in events, whoever started it in commands.
Union = Literal["event", "command"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_UNIONS: Mapping[Direction, tuple[Union, ...]] = {
    "events": ("event",),
    "commands": ("command",),
    "both": ("event", "command"),
}


def document(
    id: str,
    title: str,
    direction: Direction,
    messages: Mapping[Union, Mapping[str, Any]],
    shared: Mapping[Union, Mapping[str, Any]] = {},
) -> dict[str, Any]:
    """The schema of one line. Its `$defs` have each message under its `type`, and `event` and `command` for all.

    `shared` is what messages refer to.
    """
    unions = _UNIONS[direction]
    definitions: dict[str, Any] = {}
    for union in unions:
        definitions[union] = {"oneOf": [_ref(name) for name in messages[union]]}
        definitions |= {**messages[union], **shared.get(union, {})}
    return {
        "$schema": DIALECT,
        "$id": id if direction == "both" else f"{id}:{direction}",
        "title": title,
        "oneOf": [_ref(union) for union in unions],
        "$defs": definitions,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}
