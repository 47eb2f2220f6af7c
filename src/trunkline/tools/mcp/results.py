"""What a tool of an MCP server gave, as the output of a tool of ours.

A picture that a provider refuses would make it refuse every later request, too. So pictures are shown only where they
are what providers take; of the others the model is told why it does not see them.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.tools import pictures
from trunkline.tools.tool import ToolOutput
from trunkline.tools.truncation import one_line

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ImageContent

#: Pictures of one result. With more in a request, providers take smaller ones only.
MAX_PICTURES = 20
#: All pictures of one result, in base64. Providers take requests of 32 MB, and there is more in one.
MAX_PICTURES_CHARS = 20_000_000

#: What a model is shown of a tool that said nothing: an empty result looks like a fault.
_NOTHING = "(no output)"
#: Of a media type. Some are as long as their server likes.
_TYPE_CHARS = 100


def tool_output(result: CallToolResult) -> ToolOutput:
    """The parts of a result, one below the other; pictures apart."""
    shown = _Pictures(failed=bool(result.is_error))
    texts = [shown.take(part) if part.type == "image" else _text(part) for part in result.content]
    if not texts and result.structured_content is not None:
        texts.append(jsontext.dumps(result.structured_content).decode())
    text = "\n".join(texts) or _NOTHING
    return ToolOutput(text, "error" if result.is_error else "success", images=tuple(shown.images), foreign=True)


class _Pictures:
    """The pictures of one result that the model is shown."""

    def __init__(self, failed: bool) -> None:
        self.images: list[tuple[str, str]] = []
        self._failed = failed
        self._room = MAX_PICTURES_CHARS

    def take(self, part: ImageContent) -> str:
        """Show a picture if that can be done; gives what stands in its place in the text."""
        try:
            media_type, data = _checked(part.data)
            self._check_room(data)
        except _NotShown as reason:
            return f"[image: {one_line(cut_between_words(part.mime_type, _TYPE_CHARS))}, not shown: {reason}]"
        self._room -= len(data)
        self.images.append((media_type, data))
        return f"[image: {media_type}]"

    def _check_room(self, data: str) -> None:
        if self._failed:
            raise _NotShown("providers take no pictures from a tool that failed")
        if len(self.images) >= MAX_PICTURES or len(data) > self._room:
            raise _NotShown("the result has too many pictures; ask for fewer at once")


class _NotShown(Exception):
    """A picture cannot be shown; the text says why."""


def _checked(data: str) -> tuple[str, str]:
    """What a picture in base64 really is, whatever its server says, and its base64 as everybody writes it.

    Raises:
        _NotShown: no provider would take it.
    """
    try:
        content = b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise _NotShown("it is not base64") from None
    picture = pictures.inspect(content)
    if picture is None:
        raise _NotShown("models take PNG, JPEG, GIF and WebP only")
    if problem := pictures.problem(picture, len(content)):
        raise _NotShown(problem)
    return picture.media_type, b64encode(content).decode("ascii")


def _text(part: Any) -> str:
    match part.type:
        case "text":
            return str(part.text)
        case "audio":
            return f"[audio: {part.mime_type}]"
        case "resource" if hasattr(part.resource, "text"):
            return str(part.resource.text)
        case "resource":
            return f"[resource] {part.resource.uri}"
        case "resource_link":
            return f"[resource] {part.uri}"
        case other:
            return f"[{other}]"
