"""Reads the chunks of OpenAI's Chat Completions format, as the many who offer it really send them. Sans-IO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.core.usage import Usage
from trunkline.models.answers import joined, new_call_id, no_end, tool_input
from trunkline.models.encoding import to_bytes
from trunkline.models.http_errors import stream_fault
from trunkline.models.messages import Block, Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, Stop, TextChunk, ThinkingChunk

_STOPS: dict[str, Stop] = {"length": "max_tokens", "max_tokens": "max_tokens", "content_filter": "refusal"}


class _Call:
    """A tool call on its way."""

    __slots__ = ("arguments", "extra", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Mapping[str, Any] | None = None


class OpenAIDecoder:
    """Reads one answer. `auto_id`: a call that comes without an id gets one."""

    def __init__(self, *, auto_id: bool = True) -> None:
        self._auto_id = auto_id
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._usage: Mapping[str, Any] | None = None
        self._reason: str | None = None
        self._refused = False
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the mark of the end has come. Not at the finish reason: the usage comes after it."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether the answer is whole: it has a reason for its end, if not the mark of it."""
        return self._done or self._reason is not None

    @property
    def spent(self) -> Usage | None:
        usage = self._usage
        if usage is None:
            return None
        details = usage.get("prompt_tokens_details")
        cached = count(details, "cached_tokens") if isinstance(details, dict) else None
        if cached is None:
            cached = count(usage, "prompt_cache_hit_tokens")
        details = usage.get("completion_tokens_details")
        thought = count(details, "reasoning_tokens") if isinstance(details, dict) else None
        counts = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
        found = Usage(*counts, cached, reasoning_tokens=thought)
        return found if found.known else None

    def feed(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Take a chunk, or a whole completion, and give what can be shown.

        Raises:
            ProviderError: it is an error.
        """
        if event.get("error"):
            raise stream_fault(event["error"])
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        choices = event.get("choices")
        if not choices or not isinstance(choices, list) or not isinstance(choices[0], dict):
            return []
        choice = choices[0]
        if choice.get("error"):
            raise stream_fault(choice["error"])
        delta = choice.get("delta") or choice.get("message")
        chunks = self._delta(delta) if isinstance(delta, dict) else []
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason
        elif isinstance(choice.get("message"), dict) and self._reason is None:
            # A whole completion needs no reason for its end, and small servers leave it out.
            self._reason = "stop"
        return chunks

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
        if self._reason == "error":
            raise stream_fault({"message": "the provider says that it failed, and not why"})
        content: list[Block] = []
        if self._thoughts:
            content.append(ThinkingBlock(joined(self._thoughts)))
        if self._text:
            content.append(Text(joined(self._text)))
        calls = self._finished_calls()
        stop = _STOPS.get(self._reason or "")
        if stop is None:
            # Some say `stop` although they call tools, or the reverse: the calls themselves tell.
            stop = "tool_use" if calls else "refusal" if self._refused else "end"
        return Answer((*content, *calls), stop, self.spent)

    def _delta(self, delta: Mapping[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            self._thoughts.append(thought)
            chunks.append(ThinkingChunk(thought))
        text = delta.get("content")
        if isinstance(text, list):
            text = self._parts(text, chunks)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            text = refusal
        if text and isinstance(text, str):
            self._text.append(text)
            chunks.append(TextChunk(text))
        calls = delta.get("tool_calls")
        if calls and isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    self._call(call)
        return chunks

    def _parts(self, parts: list[Any], chunks: list[Chunk]) -> str:
        """The text of content that comes in typed parts; its thoughts are taken on the way."""
        text = ""
        for part in parts:
            if isinstance(part, str):
                text += part
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                thought = self._parts(inner, chunks) if isinstance(inner, list) else inner
                if thought and isinstance(thought, str):
                    self._thoughts.append(thought)
                    chunks.append(ThinkingChunk(thought))
            elif isinstance(part.get("text"), str):
                text += part["text"]
        return text

    def _call(self, delta: Mapping[str, Any]) -> None:
        """A piece of a call: which one says its index; its name comes once, or empty ever after."""
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        name, identity = string(function, "name"), string(delta, "id")
        call = self._current(delta.get("index"), name, identity)
        call.id = call.id or identity
        if name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif isinstance(arguments, dict):
            call.arguments.append(to_bytes(arguments).decode("utf-8"))
        if isinstance(extra := delta.get("extra_content"), dict):
            call.extra = extra

    def _current(self, index: Any, name: str, identity: str) -> _Call:
        """The call that a piece belongs to.

        Servers that give every call the same index, or none, begin a call with a name and an id of its own.
        """
        known = self._by_index.get(index) if isinstance(index, int) else self._calls[-1] if self._calls else None
        if known is not None and not (name and identity and known.id and identity != known.id):
            return known
        call = _Call()
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _finished_calls(self) -> list[ToolUse]:
        found: list[ToolUse] = []
        for call in self._calls:
            arguments = joined(call.arguments)
            if not call.name and not arguments:
                continue
            given, raw = tool_input(arguments)
            taken = not call.id or any(call.id == other.id for other in found)
            identity = new_call_id() if taken and self._auto_id else call.id
            found.append(ToolUse(identity, call.name, given, raw, call.extra))
        return found


def string(data: Mapping[str, Any], name: str) -> str:
    """A member that is a text; empty if it is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def count(data: Mapping[str, Any], name: str) -> int | None:
    """A member that is a number; None if it is none."""
    value = data.get(name)
    return value if isinstance(value, int) else None
