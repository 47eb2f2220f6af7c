"""Reads the typed events of OpenAI's Responses format. Sans-IO.

An answer is a list of items: reasoning, messages, calls. Each is announced, told in pieces and then told whole; the
whole response comes last. What small servers leave out of that is taken from what they do send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.core.usage import Usage
from trunkline.models.answers import joined, new_call_id, no_end, tool_input
from trunkline.models.encoding import to_bytes
from trunkline.models.http_errors import stream_fault
from trunkline.models.messages import Block, Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, Stop, TextChunk, ThinkingChunk
from trunkline.models.openai_decoder import count, string

#: The type of an item that holds reasoning.
REASONING = "reasoning"

#: What of such an item goes back to the provider. (Its status does not: it is refused.)
_KEPT = ("type", "id", "summary", "content", "encrypted_content")

#: Between the parts of a summary, which are paragraphs with a heading each.
_PARAGRAPH = "\n\n"

#: Items of one answer: far more than any has, and no way to fill our memory with numbers.
MOST_ITEMS = 10_000

_STOPS: dict[str, Stop] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})


class _Item:
    """One item on its way: what was told of it, and the whole when it is there."""

    __slots__ = ("data", "part", "parts", "type")

    def __init__(self) -> None:
        self.type = ""
        self.data: Mapping[str, Any] = {}
        self.parts: list[str] = []
        """Pieces of its text, or of its arguments."""
        self.part: Any = None
        """Which part of it the latest piece belongs to."""


class ResponsesDecoder:
    """Reads one answer. `auto_id`: a call that comes without an id gets one."""

    def __init__(self, *, auto_id: bool = True) -> None:
        self._auto_id = auto_id
        self._items: dict[int, _Item] = {}
        self._usage: Mapping[str, Any] | None = None
        self._status = ""
        self._reason = ""
        self._refused = False
        self._over = False

    @property
    def done(self) -> bool:
        """Whether the mark of the end has come, or the response as a whole."""
        return self._over or self.complete

    @property
    def complete(self) -> bool:
        """Whether the answer is whole."""
        return bool(self._status)

    @property
    def spent(self) -> Usage | None:
        usage = self._usage
        if usage is None:
            return None
        read, thought = usage.get("input_tokens_details"), usage.get("output_tokens_details")
        cached = count(read, "cached_tokens") if isinstance(read, dict) else None
        thoughts = count(thought, "reasoning_tokens") if isinstance(thought, dict) else None
        found = Usage(count(usage, "input_tokens"), count(usage, "output_tokens"), cached, reasoning_tokens=thoughts)
        return found if found.known else None

    def feed(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Take an event, or a whole response, and give what can be shown.

        Raises:
            ProviderError: it is an error.
        """
        kind = string(event, "type")
        if kind == "error" or (not kind and event.get("error")):
            raise stream_fault(event.get("error") or event)
        response = event.get("response")
        if isinstance(response, dict):
            return self._response(response, kind.removeprefix("response."))
        if event.get("object") == "response":
            return self._response(event, string(event, "status") or "completed")
        index = event.get("output_index")
        index = index if isinstance(index, int) else max(self._items, default=0)
        match kind:
            case "response.output_text.delta":
                return self._piece(index, "message", event, "content_index")
            case "response.refusal.delta":
                self._refused = True
                return self._piece(index, "message", event, "content_index")
            case "response.reasoning_summary_text.delta":
                return self._piece(index, REASONING, event, "summary_index")
            case "response.reasoning_text.delta":
                return self._piece(index, REASONING, event, "content_index")
            case "response.function_call_arguments.delta":
                return self._piece(index, "function_call", event, "")
            case "response.function_call_arguments.done":
                return self._told(index, {"type": "function_call", "arguments": event.get("arguments")}, whole=False)
            case "response.output_item.added":
                return self._told(index, event.get("item"), whole=False)
            case "response.output_item.done":
                return self._told(index, event.get("item"), whole=True)
        return []

    def end(self) -> None:
        """The stream's own mark of its end has come."""
        self._over = True

    def finish(self) -> Answer:
        """The answer, when there is no more.

        Raises:
            ProviderError: it is not complete.
        """
        if not self.complete:
            raise no_end()
        content = self._content()
        if self._status == "incomplete":
            stop = _STOPS.get(self._reason, "max_tokens")
        elif any(isinstance(block, ToolUse) for block in content):
            stop = "tool_use"
        else:
            stop = "refusal" if self._refused else "end"
        return Answer(content, stop, self.spent)

    def _response(self, response: Mapping[str, Any], kind: str) -> list[Chunk]:
        """The response as far as it is there; `kind` says how far, or the response itself."""
        usage = response.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        status = string(response, "status")
        if kind not in _ENDS:
            return []
        status = status if status in _ENDS else kind
        if status in ("failed", "cancelled"):
            raise stream_fault(response.get("error") or {"message": "the provider says that it failed, and not why"})
        details = response.get("incomplete_details")
        self._reason = string(details, "reason") if isinstance(details, dict) else ""
        chunks: list[Chunk] = []
        output = response.get("output")
        for index, item in enumerate(output if isinstance(output, list) else ()):
            chunks += self._told(index, item, whole=True)
        self._status = status
        return chunks

    def _item(self, index: int, kind: str) -> _Item | None:
        """The item of a number, if it is of that kind."""
        found = self._items.get(index)
        if found is None:
            if len(self._items) >= MOST_ITEMS:
                return None
            found = self._items[index] = _Item()
        found.type = found.type or kind
        return found if found.type == kind else None

    def _piece(self, index: int, kind: str, event: Mapping[str, Any], part: str) -> list[Chunk]:
        item, text = self._item(index, kind), string(event, "delta")
        if item is None or not text:
            return []
        number = event.get(part) if part else None
        if kind == REASONING and item.parts and number != item.part:
            text = _PARAGRAPH + text
        item.part = number
        item.parts.append(text)
        if kind == REASONING:
            return [ThinkingChunk(text)]
        return [TextChunk(text)] if kind == "message" else []

    def _told(self, index: int, data: Any, *, whole: bool) -> list[Chunk]:
        """An item, announced or whole. What was not told in pieces is told now."""
        kind = string(data, "type") if isinstance(data, dict) else ""
        item = self._item(index, kind) if kind else None
        if item is None:
            return []
        item.data = {**item.data, **data}
        if not whole:
            return []
        if kind == "message":
            self._refused = self._refused or any(part.get("type") == "refusal" for part in _parts(data, "content"))
        if item.parts:
            return []
        text = _text(data)
        if not text or kind not in ("message", REASONING):
            return []
        item.parts.append(text)
        return [TextChunk(text) if kind == "message" else ThinkingChunk(text)]

    def _content(self) -> tuple[Block, ...]:
        found: list[Block] = []
        used: set[str] = set()
        for _, item in sorted(self._items.items()):
            if item.type == "message" and item.parts:
                found.append(Text(joined(item.parts)))
            elif item.type == REASONING:
                block = ThinkingBlock(joined(item.parts), extra=_kept(item.data))
                if block.text or block.extra is not None:
                    found.append(block)
            elif item.type == "function_call":
                call = self._call(item, used)
                if call is not None:
                    used.add(call.id)
                    found.append(call)
        return tuple(found)

    def _call(self, item: _Item, used: set[str]) -> ToolUse | None:
        name, told = string(item.data, "name"), item.data.get("arguments")
        if isinstance(told, dict):
            told = to_bytes(told).decode("utf-8")
        arguments = told if isinstance(told, str) and told else joined(item.parts)
        if not name and not arguments:
            return None
        call_id = string(item.data, "call_id") or string(item.data, "id")
        if (not call_id or call_id in used) and self._auto_id:
            call_id = new_call_id()
        return ToolUse(call_id, name, *tool_input(arguments))


def _kept(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """What goes back to the provider; None if it would not know it again: it keeps nothing itself."""
    if not string(item, "encrypted_content") and not _parts(item, "content"):
        return None
    kept = {name: item[name] for name in _KEPT if item.get(name)}
    if "encrypted_content" in kept:
        # It stands for the words, and both together are refused.
        kept.pop("content", None)
    return {**kept, "type": REASONING, "summary": _parts(item, "summary")}


def _text(item: Mapping[str, Any]) -> str:
    """The words of a whole item."""
    if item.get("type") == REASONING:
        parts = _parts(item, "summary") or _parts(item, "content")
        return _PARAGRAPH.join(string(part, "text") for part in parts)
    return "".join(string(part, "text") or string(part, "refusal") for part in _parts(item, "content"))


def _parts(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = item.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
