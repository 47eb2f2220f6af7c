"""What is said between an agent and a model, in no provider's dialect.

A conversation is a list of `Message`s whose content is a tuple of blocks. `to_json` and `from_json` are the form in
which agents keep them in their journals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from trunkline.base import shapes
from trunkline.base.values import Value

Role = Literal["user", "assistant"]


class Block(Value):
    """Base of what a message is made of."""

    type: ClassVar[str] = ""


class Text(Block):
    """Words."""

    type: ClassVar[str] = "text"

    text: str


class ThinkingBlock(Block):
    """The model's reasoning. What the provider sent with it is sent back with it, or the provider refuses."""

    type: ClassVar[str] = "thinking"

    text: str
    signature: str | None = None
    redacted: str | None = None
    """Reasoning that the provider encrypted; then there is no text."""
    extra: Mapping[str, Any] | None = None
    """The provider's own form of it, which goes back as it came."""


class ToolUse(Block):
    """The model calls a tool. `input` is None when what it wrote is no JSON object; `raw` is what it wrote then."""

    type: ClassVar[str] = "tool_use"

    id: str
    name: str
    input: Mapping[str, Any] | None
    raw: str | None = None
    extra: Mapping[str, Any] | None = None
    """What the provider wants back with the call, such as a thought signature."""


class Image(Block):
    """A picture, in base64."""

    type: ClassVar[str] = "image"

    media_type: str
    data: str


class Document(Block):
    """A file that some models can read by themselves (PDF), in base64, and its text for those that cannot."""

    type: ClassVar[str] = "document"

    media_type: str
    data: str
    name: str
    text: str


class ToolResultBlock(Block):
    """What became of a tool call."""

    type: ClassVar[str] = "tool_result"

    id: str
    """The call's."""
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


class Message(Value):
    """One side's words. Tool results are the user's side, and come first in it."""

    role: Role
    content: tuple[Block, ...]


BLOCKS: dict[str, type[Block]] = {
    kind.type: kind for kind in (Text, ThinkingBlock, ToolUse, Image, Document, ToolResultBlock)
}


def to_json(message: Message) -> dict[str, Any]:
    """A message as JSON data."""
    return {
        "role": message.role,
        "content": [{"type": block.type, **shapes.encode(block)} for block in message.content],
    }


def from_json(data: Mapping[str, Any]) -> Message:
    """The message of some JSON data.

    Raises:
        ValueError: it is none.
    """
    try:
        blocks = tuple(shapes.decode(BLOCKS[block["type"]], block) for block in data["content"])
        role: Role = "assistant" if data["role"] == "assistant" else "user"
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a message: {error}") from None
    return Message(role, blocks)
