"""The parts of MCP that checks speak of."""

from __future__ import annotations

from typing import Any

#: What the kit asks for. Servers of newer revisions still speak it, and those of older ones name their own.
PROTOCOL_VERSION = "2025-11-25"
#: One that there never was.
NO_VERSION = "1999-01-01"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002

#: The lists that a server may offer, by the capability that announces them: the method, and the member of its result.
LISTS = {
    "tools": ("tools/list", "tools"),
    "resources": ("resources/list", "resources"),
    "prompts": ("prompts/list", "prompts"),
}

#: The kinds of content, with the members that each must have.
CONTENT: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}

Json = dict[str, Any]


def is_response(message: Json) -> bool:
    """Whether a message answers a request."""
    return "method" not in message and ("result" in message or "error" in message)


def content_problem(block: Any) -> str | None:
    """What is wrong with a block of content, if something is."""
    if not isinstance(block, dict) or block.get("type") not in CONTENT:
        return f"a block of content is of no known type: {block!a:.160}"
    missing = [name for name in CONTENT[block["type"]] if name not in block]
    return f"a block of the type `{block['type']}` lacks `{missing[0]}`" if missing else None
