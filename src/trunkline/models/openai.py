"""OpenAI's Chat Completions format, and the model that speaks it over HTTP: OpenAI's own and the many that follow it.

They follow it more or less; what a configuration says about one of them (`compat`) is honoured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline.models.abilities import takes_effort
from trunkline.models.encoding import COMMON_KEYS, Compat, identifier, to_bytes
from trunkline.models.endpoint import endpoint, host_of
from trunkline.models.format import Format
from trunkline.models.http_model import KeyedModel
from trunkline.models.messages import Block, Document, Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import AnswerOptions, Request, ToolSpec
from trunkline.models.openai_decoder import OpenAIDecoder
from trunkline.models.outgoing import FILLER, Sent
from trunkline.models.providers import ModelSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"

#: The one host that knows every part of the format, and refuses what is not part of it.
OFFICIAL_HOST = "api.openai.com"

#: Keys of a profile's `compat` that have an effect here.
COMPAT_KEYS = COMMON_KEYS | {"auto_tool_id", "include_stream_options", "max_tokens_field", "openai_api_mode"}

#: Stands before the pictures of a result, which is text alone.
TOOL_PICTURES = "The pictures of the tool's result:"


class _Written:
    """A conversation in pieces to be joined. It grows with the conversation, and only what is new is looked at.

    What the user says in several messages goes out as one: servers that fill templates insist that sides take turns.
    """

    def __init__(self, sent: Sequence[Sent], encode: Callable[[Message], bytes]) -> None:
        self.sent = sent
        self._encode = encode
        self._seen = 0
        self._pieces: list[bytes] = []
        self._turn: list[Sent] = []
        """What the user said last; its bytes are the last piece."""

    def complete(self) -> Sequence[bytes]:
        """The pieces up to now."""
        fresh = False
        for one in self.sent[self._seen :]:
            if one.role == "user" and self._turn:
                self._turn.append(one)
                fresh = True
                continue
            if fresh:
                self._merge()
                fresh = False
            self._turn = [one] if one.role == "user" else []
            self._pieces += [b",", one.data] if self._pieces else [one.data]
        if fresh:
            self._merge()
        self._seen = len(self.sent)
        return self._pieces

    def _merge(self) -> None:
        content = tuple(block for one in self._turn for block in one.message.content)
        self._pieces[-1] = self._encode(Message("user", content))


class OpenAIFormat(Format):
    """Writes requests. `official`: what reads them is OpenAI itself."""

    def __init__(self, *, official: bool = False, compat: Mapping[str, Any] = {}) -> None:
        super().__init__(compat, shape="openai_function", thinks=False)
        profile = self._profile
        self._official = official
        default_field = "max_completion_tokens" if official else "max_tokens"
        self._max_tokens_field = profile.text("max_tokens_field") or default_field
        self._usage_wanted = profile.flag("include_stream_options", True)
        self._auto_id = profile.flag("auto_tool_id", True)
        self._written = _Written((), self._message)

    def body(self, request: Request, *, model: str, max_tokens: int | None, stream: bool = True) -> bytes:
        """The body of a request. `max_tokens` is the longest answer, unless the request says it; None: no limit."""
        head: dict[str, Any] = {"model": model}
        tokens = request.max_tokens or max_tokens
        if tokens is not None:
            head[self._max_tokens_field] = tokens
        effort = self._effort(request, takes_effort(model))
        if effort is not None:
            head["reasoning_effort"] = effort
        if request.thinking_budget is not None and self._thinks:
            head["thinking"] = {"type": "enabled"}
        if request.options is not None:
            head |= _options(request.options)
        if stream:
            head["stream"] = True
            if self._usage_wanted:
                head["stream_options"] = {"include_usage": True}
        return b"".join([to_bytes(head)[:-1], self._preamble_of(request), *self._messages(request), b"]}"])

    def decoder(self) -> OpenAIDecoder:
        """Reads one answer."""
        return OpenAIDecoder(auto_id=self._auto_id)

    def _preamble(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        described = self._described(tools)
        written = b',"tools":[' + b",".join(described) + b"]" if described else b""
        written += b',"messages":['
        if system.strip():
            written += to_bytes({"role": "system", "content": system}) + b","
        return written

    def _messages(self, request: Request) -> Sequence[bytes]:
        """The messages in pieces to be joined."""
        sent = self._outgoing.sent(request.messages)
        if self._written.sent is not sent:
            self._written = _Written(sent, self._message)
        return self._written.complete()

    def _message(self, message: Message) -> bytes:
        """A message as it is sent: one, or one for each result and one for the rest, separated by commas."""
        written = self._assistant(message) if message.role == "assistant" else self._user(message)
        return to_bytes(written)[1:-1]

    def _user(self, message: Message) -> list[dict[str, Any]]:
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        written: list[dict[str, Any]] = [
            {"role": "tool", "tool_call_id": result.id, "content": self._stripped(result.text)} for result in results
        ]
        # A result is text alone; its pictures come as if the user showed them.
        pictures = [picture for result in results for picture in result.images]
        shown: list[Block] = [Text(TOOL_PICTURES), *pictures] if pictures else []
        parts = [part for block in (*shown, *message.content) if (part := self._part(block)) is not None]
        if parts or not written:
            written.append({"role": "user", "content": _joined(parts) or FILLER})
        return written

    def _part(self, block: Block) -> dict[str, Any] | None:
        match block:
            case Text(text):
                text = self._stripped(text)
                return {"type": "text", "text": text} if text.strip() else None
            case Image() if self._images:
                return {"type": "image_url", "image_url": {"url": data_url(block.media_type, block.data)}}
            case Image():
                return {"type": "text", "text": f"[A picture ({block.media_type}), which this model cannot see.]"}
            case Document() if self._official and block.media_type == "application/pdf" and block.data:
                file = {"filename": block.name, "file_data": data_url(block.media_type, block.data)}
                return {"type": "file", "file": file}
            case Document():
                return {"type": "text", "text": f"{block.name}:\n{block.text}"}
        return None

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        text = "".join(self._stripped(block.text) for block in message.content if isinstance(block, Text))
        calls = [_call(block) for block in message.content if isinstance(block, ToolUse)]
        if not calls and not text.strip():
            return []
        written: dict[str, Any] = {"role": "assistant", "content": text or None}
        thoughts = "".join(block.text for block in message.content if isinstance(block, ThinkingBlock))
        # OpenAI never shows its models' thoughts, and refuses others'.
        if thoughts and not self._official:
            written["reasoning_content"] = thoughts
        if calls:
            written["tool_calls"] = calls
        return [written]


def headers(key: str | None) -> dict[str, str]:
    """What a request is sent with."""
    return {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}


class OpenAIModel(KeyedModel):
    """A model at OpenAI, or at whoever offers the same interface."""

    def __init__(self, settings: ModelSettings) -> None:
        base = settings.base_url or DEFAULT_BASE_URL
        path = Compat(settings.compat).text("api_path")
        super().__init__(
            settings,
            url=endpoint(base, "/chat/completions", api_path=path, deep=True),
            headers=headers(settings.api_key),
            variable="OPENAI_API_KEY",
        )
        self._format = OpenAIFormat(official=host_of(base) == OFFICIAL_HOST, compat=settings.compat)

    def body(self, request: Request) -> bytes:
        """What is sent for a request."""
        return self._format.body(request, model=self.name, max_tokens=self.max_tokens)

    def decoder(self) -> OpenAIDecoder:
        """Reads one answer."""
        return self._format.decoder()


def _call(block: ToolUse) -> dict[str, Any]:
    # What was no object cannot be sent back as one: servers that fill templates parse it.
    arguments = to_bytes(block.input or {}).decode("utf-8")
    function = {"name": identifier(block.name, "unknown"), "arguments": arguments}
    written = {"id": block.id, "type": "function", "function": function}
    return written if block.extra is None else {**written, "extra_content": block.extra}


def _options(options: AnswerOptions) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for name in ("temperature", "top_p", "seed"):
        if (value := getattr(options, name)) is not None:
            written[name] = value
    if options.stop:
        written["stop"] = list(options.stop)
    if options.must_call:
        written["tool_choice"] = "required"
    if options.schema is not None:
        written["response_format"] = response_format(options.schema)
    return written


def response_format(schema: Any) -> dict[str, Any]:
    """What asks for JSON that fits a schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _joined(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Text as one string, which every server takes; a list only where there is more than text."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def data_url(media_type: str, data: str) -> str:
    """The address of something that is its own content; `data` is base64."""
    return f"data:{media_type};base64,{data}"
