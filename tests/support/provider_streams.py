"""What the providers really send, event by event: Anthropic Messages and OpenAI Chat Completions.

Builders give lists of events, so that a test can take one out, add one or change one; `anthropic_sse` and `openai_sse`
turn them into the bytes of a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Event = dict[str, Any]
Calls = Sequence[tuple[str, Mapping[str, Any]]]

#: A signature as it comes: opaque text.
SIGNATURE = "EqQBCgIYAhIkYXNpZ25hdHVyZQ=="


def pieces_of(text: str) -> list[str]:
    """A text as a model streams it: word by word, joined the same text."""
    words = text.split(" ")
    return [word if number == 0 else " " + word for number, word in enumerate(words)]


def anthropic_sse(events: Iterable[Event]) -> bytes:
    """The stream of some Anthropic events."""
    return b"".join(b"event: " + str(e["type"]).encode() + b"\ndata: " + _json(e) + b"\n\n" for e in events)


def openai_sse(chunks: Iterable[Event], *, done: bool = True) -> bytes:
    """The stream of some OpenAI chunks; `done`: with the line that ends it."""
    return b"".join(b"data: " + _json(c) + b"\n\n" for c in chunks) + (b"data: [DONE]\n\n" if done else b"")


def anthropic_start(*, input_tokens: int = 10, cache_read: int = 0, cache_write: int = 0) -> Event:
    """The first event of an answer."""
    usage = {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": 1,
    }
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "stub", "content": []}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}


def anthropic_block(index: int, block: Event, deltas: Iterable[Event]) -> list[Event]:
    """One content block from its start to its stop."""
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic_end(stop_reason: str = "end_turn", *, output_tokens: int = 5) -> list[Event]:
    """The last events of an answer."""
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}},
        {"type": "message_stop"},
    ]


def anthropic_text(text: str, *, thinking: str | None = None, signature: str = SIGNATURE, **usage: int) -> list[Event]:
    """An answer in words, after some thinking if there is any."""
    events = [anthropic_start(**usage), {"type": "ping"}]
    index = 0
    if thinking is not None:
        deltas: list[Event] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces_of(thinking)]
        deltas.append({"type": "signature_delta", "signature": signature})
        events += anthropic_block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        index += 1
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(text)]
    events += anthropic_block(index, {"type": "text", "text": ""}, deltas)
    return events + anthropic_end()


def anthropic_tool_calls(calls: Calls, *, text: str = "", ids: Sequence[str] | None = None) -> list[Event]:
    """An answer that calls tools, with words before the calls if there are any."""
    events = [anthropic_start()]
    if text:
        events += anthropic_block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}])
    for number, (name, args) in enumerate(calls):
        block = {"type": "tool_use", "id": ids[number] if ids else f"toolu_{number}", "name": name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_halves(json.dumps(args)))]
        events += anthropic_block(number + bool(text), block, deltas)
    return events + anthropic_end("tool_use")


def anthropic_error(kind: str = "overloaded_error", message: str = "Overloaded") -> Event:
    """The event that ends a stream badly."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def openai_chunk(delta: Event | None = None, finish: str | None = None, **more: Any) -> Event:
    """One chunk with one choice; without delta and finish reason one that has no choice."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "stub"}
    return {**head, "choices": choices, **more}


def openai_usage(prompt: int = 10, completion: int = 5, cached: int = 0) -> Event:
    """The chunk that comes after the finish reason."""
    details = {"cached_tokens": cached}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return openai_chunk(usage={**usage, "prompt_tokens_details": details})


def openai_text(text: str, *, reasoning: str | None = None, reasoning_field: str = "reasoning_content") -> list[Event]:
    """An answer in words, after some reasoning if there is any."""
    chunks = [openai_chunk({"role": "assistant", "content": ""})]
    if reasoning is not None:
        chunks += [openai_chunk({reasoning_field: piece}) for piece in pieces_of(reasoning)]
    chunks += [openai_chunk({"content": piece}) for piece in pieces_of(text)]
    return [*chunks, openai_chunk(finish="stop"), openai_usage()]


def openai_tool_calls(
    calls: Calls,
    *,
    interleaved: bool = False,
    text: str = "",
    finish: str = "tool_calls",
    ids: Sequence[str] | None = None,
) -> list[Event]:
    """An answer that calls tools; `interleaved`: the pieces of all calls' arguments come in turns."""
    chunks = [openai_chunk({"role": "assistant", "content": text or None})]
    opened = [
        _call_delta(number, {"name": name, "arguments": ""}, id=ids[number] if ids else f"call_{number}")
        for number, (name, _) in enumerate(calls)
    ]
    rest = [
        [_call_delta(number, {"name": "", "arguments": piece}) for piece in _halves(json.dumps(args))]
        for number, (_, args) in enumerate(calls)
    ]
    if interleaved:
        chunks += opened + [delta for round_ in zip(*rest, strict=True) for delta in round_]
    else:
        chunks += [delta for first, more in zip(opened, rest, strict=True) for delta in (first, *more)]
    return [*chunks, openai_chunk(finish=finish), openai_usage()]


def _call_delta(index: int, function: Event, **more: Any) -> Event:
    call = {"index": index, **more, "function": function}
    return openai_chunk({"tool_calls": [{**call, "type": "function"} if "id" in more else call]})


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
