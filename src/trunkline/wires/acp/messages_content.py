"""What is said: blocks of text, pictures, sound and resources; and what a tool call shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base.shapes import CamelCased, Tagged

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]


class ContentBlock(Tagged):
    """A piece of a message, of the user or of the agent."""


class TextBlock(ContentBlock):
    """Text, in Markdown if it is the agent's."""

    tag: ClassVar[str | None] = "text"

    text: str
    annotations: Mapping[str, Any] | None = None


class ImageBlock(ContentBlock):
    """A picture."""

    tag: ClassVar[str | None] = "image"

    data: bytes
    mime_type: str
    uri: str | None = None


class AudioBlock(ContentBlock):
    """Sound."""

    tag: ClassVar[str | None] = "audio"

    data: bytes
    mime_type: str


class ResourceLinkBlock(ContentBlock):
    """Something that the agent may look up, such as a file that the user mentions."""

    tag: ClassVar[str | None] = "resource_link"

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class ResourceContents(CamelCased):
    """What a resource holds: `text` or `blob`."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = None


class ResourceBlock(ContentBlock):
    """A resource with what it holds, which the agent may not be able to look up."""

    tag: ClassVar[str | None] = "resource"

    resource: ResourceContents


class ToolCallContent(Tagged):
    """Something that a tool call shows."""


class ShownContent(ToolCallContent):
    """Text, a picture, a resource."""

    tag: ClassVar[str | None] = "content"

    content: ContentBlock


class ShownDiff(ToolCallContent):
    """A file before and after. Without `old_text` it is new."""

    tag: ClassVar[str | None] = "diff"

    path: str
    new_text: str
    old_text: str | None = None


class ShownTerminal(ToolCallContent):
    """The output of a terminal that the client made for the agent."""

    tag: ClassVar[str | None] = "terminal"

    terminal_id: str


class OtherToolContent(ToolCallContent):
    """What newer agents show."""

    raw: Mapping[str, Any]


ToolCallContent.otherwise = OtherToolContent


class ToolCallLocation(CamelCased):
    """A file that a tool call is about; an editor may open it."""

    path: str
    line: int | None = None


class ToolCallUpdate(CamelCased):
    """What is known of a tool call, or has become known since. What is absent is as it was.

    `kind` is a `ToolKind` and `status` a `ToolCallStatus`, but for agents that are newer than this.
    """

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: Mapping[str, Any] | None = None
