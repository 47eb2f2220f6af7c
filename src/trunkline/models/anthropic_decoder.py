"""Reads the events of Anthropic's Messages format. Sans-IO: parsed events go in, chunks come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.core.usage import Usage
from trunkline.models.answers import joined, new_call_id, no_end, tool_input
from trunkline.models.http_errors import stream_fault
from trunkline.models.messages import Block, Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, Stop, TextChunk, ThinkingChunk

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}

#: What is read, written to the cache and read from it: the provider counts them apart.
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Growing:
    """A content block on its way."""

    __slots__ = ("block", "parts", "signature")

    def __init__(self, block: Mapping[str, Any]) -> None:
        self.block = block
        self.parts: list[str] = []
        self.signature = str(block.get("signature") or "")


class AnthropicDecoder:
    """Reads one answer."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Growing] = {}
        self._usage: dict[str, int] = {}
        self._stop: str | None = None
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the last event has come."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether the answer is whole: it has a reason for its end, if not the mark of it."""
        return self._done or self._stop is not None

    @property
    def spent(self) -> Usage | None:
        """What the provider has counted up to now; of the answer that may be no more than its first word."""
        found = self._usage
        if not found:
            return None
        read = [found[name] for name in _INPUTS if name in found]
        return Usage(
            input_tokens=sum(read) if read else None,
            output_tokens=found.get("output_tokens"),
            cache_read_tokens=found.get("cache_read_input_tokens"),
            cache_write_tokens=found.get("cache_creation_input_tokens"),
        )

    def feed(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Take an event, or a whole message, and give what can be shown.

        Raises:
            ProviderError: it is an error.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event)
        if event.get("error"):
            raise stream_fault(event["error"])
        if kind == "content_block_start":
            return self._start(_index(event), _mapping(event, "content_block"))
        if kind == "message_start":
            self._count(_mapping(event, "message"))
        elif kind == "message_delta":
            self._count(event)
            self._stop = _reason(_mapping(event, "delta")) or self._stop
        elif kind == "message_stop":
            self._done = True
        elif kind == "message":
            return self._whole(event)
        return []

    def end(self) -> None:
        """The stream's own mark of its end has come."""
        self._done = True

    def finish(self) -> Answer:
        """The answer, when there is no more.

        Raises:
            ProviderError: it is not complete.
        """
        if not self.complete:
            raise no_end()
        content = tuple(block for index in sorted(self._blocks) if (block := _grown(self._blocks[index])) is not None)
        stop = _STOPS.get(self._stop or "", "end")
        if any(isinstance(block, ToolUse) for block in content) and stop == "end":
            stop = "tool_use"
        return Answer(content, stop, self.spent)

    def _start(self, index: int, block: Mapping[str, Any]) -> list[Chunk]:
        growing = self._blocks[index] = _Growing(block)
        kind = block.get("type")
        if kind == "text":
            return self._say(growing, block.get("text"), TextChunk)
        if kind == "thinking":
            return self._say(growing, block.get("thinking"), ThinkingChunk)
        return []

    def _delta(self, event: Mapping[str, Any]) -> list[Chunk]:
        growing = self._blocks.get(_index(event))
        delta = _mapping(event, "delta")
        kind = delta.get("type")
        if growing is None:
            # Some servers leave the start out.
            block = {"text_delta": "text", "thinking_delta": "thinking"}.get(str(kind), "")
            growing = self._blocks[_index(event)] = _Growing({"type": block})
        if kind == "text_delta":
            return self._say(growing, delta.get("text"), TextChunk)
        if kind == "thinking_delta":
            return self._say(growing, delta.get("thinking"), ThinkingChunk)
        if kind == "input_json_delta":
            growing.parts.append(str(delta.get("partial_json") or ""))
        elif kind == "signature_delta":
            growing.signature += str(delta.get("signature") or "")
        return []

    @staticmethod
    def _say(growing: _Growing, text: Any, kind: type[TextChunk | ThinkingChunk]) -> list[Chunk]:
        if not isinstance(text, str) or not text:
            return []
        growing.parts.append(text)
        return [kind(text)]

    def _whole(self, message: Mapping[str, Any]) -> list[Chunk]:
        self._count(message)
        self._stop = _reason(message)
        self._done = True
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        return [
            chunk
            for index, block in enumerate(blocks)
            if isinstance(block, dict)
            for chunk in self._start(index, block)
        ]

    def _count(self, event: Mapping[str, Any]) -> None:
        for name, number in _mapping(event, "usage").items():
            # The counts only grow; servers that know one at the end only send a zero at the start, or the reverse.
            if isinstance(number, int):
                self._usage[name] = max(number, self._usage.get(name, 0))


def _grown(growing: _Growing) -> Block | None:
    """The finished block; None if it is empty, or of a kind that we have no use for."""
    block, text = growing.block, joined(growing.parts)
    match block.get("type"):
        case "text":
            return Text(text) if text else None
        case "thinking":
            return ThinkingBlock(text, growing.signature or None) if text or growing.signature else None
        case "redacted_thinking":
            return ThinkingBlock("", redacted=str(block.get("data") or ""))
        case "tool_use":
            whole = block.get("input")
            given, raw = (whole, None) if not text and isinstance(whole, dict) else tool_input(text)
            return ToolUse(str(block.get("id") or new_call_id()), str(block.get("name") or ""), given, raw)
    return None


def _reason(event: Mapping[str, Any]) -> str | None:
    reason = event.get("stop_reason")
    return reason if isinstance(reason, str) and reason else None


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _mapping(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = event.get(name)
    return value if isinstance(value, dict) else {}
