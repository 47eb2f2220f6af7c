"""What OpenAI's Responses interface really sends, event by event.

responses_text("Hello", reasoning="Greet.")     # a list of events
responses_sse(events)                           # the bytes of their stream
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.provider_streams import Calls, Event, anthropic_sse, pieces_of

#: Reasoning as it comes: opaque text.
ENCRYPTED = "gAAAAABo-opaque-reasoning=="


def responses_sse(events: Iterable[Event]) -> bytes:
    """The stream of some events: each has its type in its name as well, and a number."""
    return anthropic_sse({**event, "sequence_number": number} for number, event in enumerate(events))


def response_of(status: str, output: Sequence[Event] = (), **more: Any) -> Event:
    """The response itself."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "stub", "status": status}
    ends = {"error": None, "incomplete_details": None, "usage": None if status == "in_progress" else usage}
    return {**head, "output": list(output), "store": False, **ends, **more}


def reasoning_item(*summary: str, encrypted: str | None = ENCRYPTED, number: int = 0) -> Event:
    """Reasoning, whole."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    item: Event = {"id": f"rs_{number}", "type": "reasoning", "summary": parts, "status": None}
    return item if encrypted is None else {**item, "encrypted_content": encrypted}


def message_item(text: str) -> Event:
    """A message, whole."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def call_item(name: str, args: Any, call_id: str) -> Event:
    """A call, whole."""
    call = {"id": f"fc_{call_id}", "type": "function_call", "status": "completed", "call_id": call_id}
    return {**call, "name": name, "arguments": json.dumps(args)}


def responses_of(*items: Event, status: str = "completed", **more: Any) -> list[Event]:
    """An answer of these items, each announced, told in pieces and told whole."""
    events: list[Event] = [
        {"type": "response.created", "response": response_of("in_progress")},
        {"type": "response.in_progress", "response": response_of("in_progress")},
    ]
    for index, item in enumerate(items):
        empty: dict[str, Event] = {
            "reasoning": {"summary": []},
            "message": {"content": []},
            "function_call": {"arguments": ""},
        }
        at = {"output_index": index, "item_id": item["id"]}
        events.append(_about_item("added", index, {**item, "status": "in_progress", **empty[item["type"]]}))
        events += [{**piece, **at} for piece in _pieces(item)]
        events.append(_about_item("done", index, item))
    return [*events, {"type": f"response.{status}", "response": response_of(status, items, **more)}]


def responses_text(text: str, *, reasoning: str | None = None) -> list[Event]:
    """An answer in words, after some reasoning if there is any."""
    thought = [] if reasoning is None else [reasoning_item(reasoning)]
    return responses_of(*thought, message_item(text))


def responses_tool_calls(calls: Calls, *, text: str = "", reasoning: str | None = None) -> list[Event]:
    """An answer that calls tools, with words before the calls if there are any."""
    items = [] if reasoning is None else [reasoning_item(reasoning)]
    items += [message_item(text)] if text else []
    return responses_of(*items, *(call_item(name, args, f"call_{number}") for number, (name, args) in enumerate(calls)))


def _about_item(what: str, index: int, item: Event) -> Event:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def _pieces(item: Event) -> list[Event]:
    match item["type"]:
        case "reasoning":
            return [
                {"type": "response.reasoning_summary_text.delta", "summary_index": number, "delta": piece}
                for number, part in enumerate(item["summary"])
                for piece in pieces_of(part["text"])
            ]
        case "message":
            (part,) = item["content"]
            return [
                {"type": "response.content_part.added", "content_index": 0, "part": {**part, "text": ""}},
                *(
                    {"type": "response.output_text.delta", "content_index": 0, "delta": piece}
                    for piece in pieces_of(part["text"])
                ),
                {"type": "response.output_text.done", "content_index": 0, "text": part["text"]},
                {"type": "response.content_part.done", "content_index": 0, "part": part},
            ]
    written = item["arguments"]
    half = len(written) // 2
    return [
        *(
            {"type": "response.function_call_arguments.delta", "delta": piece}
            for piece in (written[:half], written[half:])
        ),
        {"type": "response.function_call_arguments.done", "arguments": written},
    ]
