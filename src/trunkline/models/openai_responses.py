"""OpenAI's Responses format, and the model that speaks it over HTTP: `openai_api_mode = "responses"`.

Nothing is kept by the provider (`store: false`): the whole conversation goes out with every request. Reasoning comes
encrypted then, as an item that is kept as it is and sent back in its place; without it the model would have to think
everything again after each of its calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from trunkline.models.abilities import has_no_reasoning, takes_effort
from trunkline.models.encoding import Compat, identifier, to_bytes
from trunkline.models.endpoint import endpoint, host_of
from trunkline.models.format import Format
from trunkline.models.http_errors import ServiceError
from trunkline.models.http_model import KeyedModel
from trunkline.models.messages import Block, Document, Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import AnswerOptions, Chunk, Request, ToolSpec
from trunkline.models.openai import DEFAULT_BASE_URL, OFFICIAL_HOST, TOOL_PICTURES, data_url, headers
from trunkline.models.openai_responses_decoder import REASONING, ResponsesDecoder
from trunkline.models.outgoing import FILLER
from trunkline.models.providers import ModelSettings

PATH = "/responses"

#: What a profile that was made for the other format puts behind the address.
_CHAT_PATH = "/chat/completions"

#: Asks for reasoning that can be sent back to a provider that keeps nothing.
ENCRYPTED = "reasoning.encrypted_content"

#: What it says to accounts that have not shown who they are.
_NO_SUMMARY = "reasoning summaries"

#: The provider refuses a shorter limit.
LEAST_ANSWER_TOKENS = 16


class ResponsesFormat(Format):
    """Writes requests. `official`: what reads them is OpenAI itself."""

    def __init__(self, *, official: bool = False, compat: Mapping[str, Any] = {}) -> None:
        super().__init__(compat, shape="openai_responses", thinks=True)
        self._official = official
        self._auto_id = self._profile.flag("auto_tool_id", True)
        self._told_to_think = "supports_thinking" in compat
        self.summarises = True
        """Whether a model is asked to tell what it thinks."""

    def body(self, request: Request, *, model: str, max_tokens: int | None) -> bytes:
        """The body of a request. `max_tokens` is the longest answer, unless the request says it; None: no limit."""
        head: dict[str, Any] = {"model": model, "stream": True, "store": False}
        tokens = request.max_tokens or max_tokens
        if tokens is not None:
            head["max_output_tokens"] = max(tokens, LEAST_ANSWER_TOKENS)
        head |= self._reasoning(request, model)
        if request.options is not None:
            head |= _options(request.options)
        items = b",".join(one.data for one in self._outgoing.sent(request.messages))
        return b"".join([to_bytes(head)[:-1], self._preamble_of(request), b',"input":[', items, b"]}"])

    def decoder(self) -> ResponsesDecoder:
        """Reads one answer."""
        return ResponsesDecoder(auto_id=self._auto_id)

    def _reasoning(self, request: Request, model: str) -> dict[str, Any]:
        """What is asked about reasoning: of models that have none, nothing, since they refuse the question."""
        reasoning: dict[str, Any] = {}
        effort = self._effort(request, takes_effort(model))
        if effort is not None:
            reasoning["effort"] = effort
        may = self._thinks and (self._told_to_think or not has_no_reasoning(model))
        if (
            self.summarises
            and may
            and (self._told_to_think or request.thinking_budget is not None or takes_effort(model))
        ):
            reasoning["summary"] = "auto"
        found: dict[str, Any] = {"reasoning": reasoning} if reasoning else {}
        return found | {"include": [ENCRYPTED]} if may else found

    def _preamble(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        written = b',"instructions":' + to_bytes(system) if system.strip() else b""
        described = self._described(tools)
        return written + (b',"tools":[' + b",".join(described) + b"]" if described else b"")

    def _message(self, message: Message) -> bytes:
        """A message as it is sent: its items, separated by commas."""
        written = self._assistant(message) if message.role == "assistant" else self._user(message)
        return to_bytes(written)[1:-1]

    def _user(self, message: Message) -> list[dict[str, Any]]:
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        written: list[dict[str, Any]] = [
            {"type": "function_call_output", "call_id": result.id, "output": self._stripped(result.text)}
            for result in results
        ]
        # Not every server takes more than text as a result; the pictures come as if the user showed them.
        pictures = [picture for result in results for picture in result.images]
        shown: list[Block] = [Text(TOOL_PICTURES), *pictures] if pictures else []
        parts = [part for block in (*shown, *message.content) if (part := self._part(block)) is not None]
        if parts or not written:
            content = parts or [{"type": "input_text", "text": FILLER}]
            written.append({"type": "message", "role": "user", "content": content})
        return written

    def _part(self, block: Block) -> dict[str, Any] | None:
        match block:
            case Text(text):
                text = self._stripped(text)
                return {"type": "input_text", "text": text} if text.strip() else None
            case Image() if self._images:
                return {"type": "input_image", "image_url": data_url(block.media_type, block.data)}
            case Image():
                return {"type": "input_text", "text": f"[A picture ({block.media_type}), which this model cannot see.]"}
            case Document() if self._official and block.media_type == "application/pdf" and block.data:
                file = data_url(block.media_type, block.data)
                return {"type": "input_file", "filename": block.name, "file_data": file}
            case Document():
                return {"type": "input_text", "text": f"{block.name}:\n{block.text}"}
        return None

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        items = [item for block in message.content if (item := self._item(block)) is not None]
        # Reasoning that leads to nothing is refused.
        while items and items[-1]["type"] == REASONING:
            items.pop()
        return items

    def _item(self, block: Block) -> dict[str, Any] | None:
        match block:
            case ThinkingBlock(extra=extra):
                return dict(extra) if extra is not None and extra.get("type") == REASONING else None
            case Text(text):
                text = self._stripped(text)
                return {"type": "message", "role": "assistant", "content": text} if text.strip() else None
            case ToolUse():
                name = identifier(block.name, "unknown")
                arguments = to_bytes(block.input or {}).decode("utf-8")
                return {"type": "function_call", "call_id": block.id, "name": name, "arguments": arguments}
        return None


class ResponsesModel(KeyedModel):
    """A model at OpenAI, or at whoever offers the same interface."""

    def __init__(self, settings: ModelSettings) -> None:
        base = settings.base_url or DEFAULT_BASE_URL
        path = Compat(settings.compat).text("api_path")
        if path is not None and path.endswith(_CHAT_PATH):
            path = path.removesuffix(_CHAT_PATH) + PATH
        url = endpoint(base.removesuffix("/").removesuffix(_CHAT_PATH), PATH, api_path=path, deep=True)
        super().__init__(settings, url=url, headers=headers(settings.api_key), variable="OPENAI_API_KEY")
        self._place = host_of(url)
        self._format = ResponsesFormat(official=self._place == OFFICIAL_HOST, compat=settings.compat)

    @property
    def origin(self) -> str:
        """Who alone can read the reasoning that comes from here."""
        return f"{self.provider}/{self.name}@{self._place}"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Ask. An account that may not see what its models think is not refused because of that."""
        try:
            async with aclosing(super().stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        except ServiceError as error:
            if not self._format.summarises or _NO_SUMMARY not in str(error):
                raise
        self._format.summarises = False
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    def body(self, request: Request) -> bytes:
        """What is sent for a request."""
        return self._format.body(request, model=self.name, max_tokens=self.max_tokens)

    def decoder(self) -> ResponsesDecoder:
        """Reads one answer."""
        return self._format.decoder()


def _options(options: AnswerOptions) -> dict[str, Any]:
    """The format knows neither a seed nor words to stop at."""
    written: dict[str, Any] = {}
    for name in ("temperature", "top_p"):
        if (value := getattr(options, name)) is not None:
            written[name] = value
    if options.must_call:
        written["tool_choice"] = "required"
    if options.schema is not None:
        written["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": options.schema}}
    return written
