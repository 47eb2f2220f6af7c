"""Claude: Anthropic's Messages format, and the model that speaks it over HTTP.

`AnthropicFormat` writes requests and reads events without knowing how they travel, so that it also serves where Claude
is reached through somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.models.abilities import is_adaptive
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.encoding import COMMON_KEYS, Compat, identifier, to_bytes
from trunkline.models.endpoint import endpoint
from trunkline.models.format import Format
from trunkline.models.http_model import KeyedModel
from trunkline.models.messages import Block, Document, Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Request, ToolSpec
from trunkline.models.outgoing import FILLER, Sent
from trunkline.models.providers import ModelSettings

DEFAULT_BASE_URL = "https://api.anthropic.com"

#: The version of the format, which has been the same since it exists.
API_VERSION = "2023-06-01"

#: Keys of a profile's `compat` that have an effect here.
COMPAT_KEYS = COMMON_KEYS | {"prompt_caching"}

#: The provider refuses to think with less.
LEAST_THINKING_TOKENS = 1024

#: How many of the user's messages are marked: up to the last one the next request will find everything in the cache, up
#: to the one before this request does. With the system prompt and the tools these are four marks, as many as allowed.
MARKED_MESSAGES = 2

_MARK = b',"cache_control":{"type":"ephemeral"}}'


class _Written:
    """A conversation in pieces to be joined. It grows with the conversation, and only what is new is looked at."""

    def __init__(self, sent: Sequence[Sent]) -> None:
        self.sent = sent
        self._seen = 0
        self._pieces: list[bytes] = []
        self._ends: list[int] = []
        """Where the user's turns end that are over."""
        self._role = ""

    def complete(self) -> tuple[list[bytes], list[int]]:
        """The pieces up to now, for the caller to change, and where the latest turns of the user end."""
        pieces = self._pieces
        for one in self.sent[self._seen :]:
            if one.role == self._role:
                pieces.append(b",")
            else:
                if self._role == "user":
                    self._ends.append(len(pieces) - 1)
                pieces.append(_OPENINGS[one.role] if not pieces else _TURNS[one.role])
                self._role = one.role
            pieces.append(one.data)
        self._seen = len(self.sent)
        return list(pieces), [*self._ends[-MARKED_MESSAGES:], len(pieces) - 1]


class AnthropicFormat(Format):
    """Writes requests. `caching`: the model can remember what it has read."""

    def __init__(self, *, caching: bool = True, compat: Mapping[str, Any] = {}) -> None:
        super().__init__(compat, shape="anthropic_input_schema", thinks=True)
        self._caching = caching and self._profile.flag("prompt_caching", True)
        self._written = _Written(())

    def body(
        self,
        request: Request,
        *,
        model: str | None,
        max_tokens: int,
        version: str | None = None,
        stream: bool = True,
        name: str | None = None,
    ) -> bytes:
        """The body of a request.

        Args:
            model: left out where it is None, because the address says it.
            max_tokens: the longest answer, unless the request says it.
            version: goes in as `anthropic_version`.
            stream: False leaves `stream` out.
            name: the model's, where `model` is None: newer models are asked to think in another way.
        """
        tokens = request.max_tokens or max_tokens
        head: dict[str, Any] = {} if model is None else {"model": model}
        if version is not None:
            head["anthropic_version"] = version
        head["max_tokens"] = tokens
        head |= self._asked_to_think(request, model or name or "", tokens)
        if stream:
            head["stream"] = True
        pieces = [to_bytes(head)[:-1], self._preamble_of(request), b',"messages":[', *self._messages(request), b"]}"]
        return b"".join(pieces)

    def decoder(self) -> AnthropicDecoder:
        """Reads one answer."""
        return AnthropicDecoder()

    def _asked_to_think(self, request: Request, model: str, max_tokens: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        adaptive = is_adaptive(model)
        effort = self._effort(request, adaptive)
        if effort is not None:
            found["output_config"] = {"effort": effort}
        if request.thinking_budget is None or not self._thinks:
            return found
        if adaptive:
            return found | {"thinking": {"type": "adaptive", "display": "summarized"}}
        # The budget is a part of the longest answer, and something must be left to answer with.
        budget = min(max(request.thinking_budget, LEAST_THINKING_TOKENS), max_tokens - 1)
        if budget >= LEAST_THINKING_TOKENS:
            found["thinking"] = {"type": "enabled", "budget_tokens": budget}
        return found

    def _preamble(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        written = b""
        if system.strip():
            written = b',"system":[' + self._marked(to_bytes({"type": "text", "text": system})) + b"]"
        if described := self._described(tools):
            described[-1] = self._marked(described[-1])
            written += b',"tools":[' + b",".join(described) + b"]"
        return written

    def _marked(self, block: bytes) -> bytes:
        """A block up to which the provider is asked to remember the request."""
        return block[:-1] + _MARK if self._caching else block

    def _messages(self, request: Request) -> list[bytes]:
        """The messages in pieces to be joined: those of one side are one, and the user's last ones are marked."""
        sent = self._outgoing.sent(request.messages)
        if self._written.sent is not sent:
            self._written = _Written(sent)
        pieces, ends = self._written.complete()
        for end in ends[-MARKED_MESSAGES:]:
            # Every block ends with a brace, so this marks the last one.
            pieces[end] = self._marked(pieces[end])
        pieces.append(b"]}")
        return pieces

    def _message(self, message: Message) -> bytes:
        """A message's blocks, separated by commas."""
        content = message.content
        if message.role == "assistant":
            # An answer that was cut off while thinking ends with thoughts, which is refused.
            while content and isinstance(content[-1], ThinkingBlock):
                content = content[:-1]
        blocks = [written for block in content if (written := self._block(block)) is not None]
        if message.role == "user" and not blocks:
            blocks = [{"type": "text", "text": FILLER}]
        elif all(block["type"] in ("thinking", "redacted_thinking") for block in blocks):
            return b""
        return to_bytes(blocks)[1:-1]

    def _block(self, block: Block) -> dict[str, Any] | None:
        """A block as it is sent; None if it cannot be."""
        match block:
            case Text(text):
                text = self._stripped(text)
                return {"type": "text", "text": text} if text.strip() else None
            case ThinkingBlock():
                return _thinking(block)
            case ToolUse():
                name = identifier(block.name, "unknown")
                used = {"type": "tool_use", "id": identifier(block.id, "call"), "name": name}
                return {**used, "input": block.input or {}}
            case ToolResultBlock():
                return self._result(block)
            case Image():
                return self._image(block)
            case Document():
                return _document(block)
        return None

    def _result(self, result: ToolResultBlock) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "tool_result", "tool_use_id": identifier(result.id, "call")}
        text = self._stripped(result.text)
        if result.images:
            words = [{"type": "text", "text": text}] if text.strip() else []
            written["content"] = [*words, *map(self._image, result.images)]
        elif text.strip():
            written["content"] = text
        if result.is_error:
            written["is_error"] = True
        return written

    def _image(self, image: Image) -> dict[str, Any]:
        if not self._images:
            return {"type": "text", "text": f"[A picture ({image.media_type}), which this model cannot see.]"}
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


_OPENINGS = {"user": b'{"role":"user","content":[', "assistant": b'{"role":"assistant","content":['}
_TURNS = {role: b"]}," + opening for role, opening in _OPENINGS.items()}


class AnthropicModel(KeyedModel):
    """Claude at Anthropic, or at whoever offers the same interface."""

    def __init__(self, settings: ModelSettings) -> None:
        base = settings.base_url or DEFAULT_BASE_URL
        profile = Compat(settings.compat)
        super().__init__(
            settings,
            url=endpoint(base, "/messages", api_path=profile.text("api_path")),
            headers={
                "content-type": "application/json",
                "anthropic-version": API_VERSION,
                **({"x-api-key": settings.api_key} if settings.api_key else {}),
            },
            variable="ANTHROPIC_API_KEY",
        )
        self._format = AnthropicFormat(compat=settings.compat)

    @property
    def longest_answer(self) -> int:
        return self.max_tokens or self.known_max_tokens

    def body(self, request: Request) -> bytes:
        """What is sent for a request."""
        return self._format.body(request, model=self.name, max_tokens=self.longest_answer)

    def decoder(self) -> AnthropicDecoder:
        """Reads one answer."""
        return self._format.decoder()


def _thinking(block: ThinkingBlock) -> dict[str, Any] | None:
    if block.redacted is not None:
        return {"type": "redacted_thinking", "data": block.redacted}
    # Thoughts without a signature are another provider's, and refused by this one.
    if block.signature:
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return None


def _document(block: Document) -> dict[str, Any]:
    if block.media_type == "application/pdf" and block.data:
        source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    else:
        source = {"type": "text", "media_type": "text/plain", "data": block.text or FILLER}
    return {"type": "document", "source": source, "title": block.name}
