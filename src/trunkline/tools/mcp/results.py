"""What a tool of an MCP server gave, as the output of a tool of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.tools.tool import ToolOutput

if TYPE_CHECKING:
    from mcp_types import CallToolResult

#: What a model is shown of a tool that said nothing: an empty result looks like a fault.
_NOTHING = "(no output)"


def tool_output(result: CallToolResult) -> ToolOutput:
    """The parts of a result, one below the other; pictures apart."""
    texts: list[str] = []
    images: list[tuple[str, str]] = []
    for part in result.content:
        texts.append(_text(part))
        if part.type == "image":
            images.append((part.mime_type, part.data))
    if not texts and result.structured_content is not None:
        texts.append(jsontext.dumps(result.structured_content).decode())
    text = "\n".join(texts) or _NOTHING
    return ToolOutput(text, "error" if result.is_error else "success", images=tuple(images))


def _text(part: Any) -> str:
    match part.type:
        case "text":
            return str(part.text)
        case "image" | "audio":
            return f"[{part.type}: {part.mime_type}]"
        case "resource" if hasattr(part.resource, "text"):
            return str(part.resource.text)
        case "resource":
            return f"[resource] {part.resource.uri}"
        case "resource_link":
            return f"[resource] {part.uri}"
        case other:
            return f"[{other}]"
