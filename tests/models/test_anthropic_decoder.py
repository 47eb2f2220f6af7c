from __future__ import annotations

import json

import pytest

from tests.support.provider_streams import (
    SIGNATURE,
    Event,
    anthropic_block,
    anthropic_end,
    anthropic_error,
    anthropic_start,
    anthropic_text,
    anthropic_tool_calls,
)
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.messages import Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, TextChunk, ThinkingChunk


def decode(events: list[Event]) -> tuple[list[Chunk], Answer]:
    decoder = AnthropicDecoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def test_text_and_thinking_are_streamed_and_joined() -> None:
    chunks, answer = decode(anthropic_text("to be", thinking="or not"))
    assert chunks == [ThinkingChunk("or"), ThinkingChunk(" not"), TextChunk("to"), TextChunk(" be")]
    assert answer.content == (ThinkingBlock("or not", SIGNATURE), Text("to be"))
    assert answer.stop == "end"


def test_what_was_read_from_and_written_to_the_cache_is_part_of_the_input() -> None:
    _, answer = decode(anthropic_text("a", input_tokens=10, cache_read=1000, cache_write=200))
    assert answer.usage == Usage(1210, 5, 1000, 200)


def test_servers_that_know_the_input_at_one_end_only_are_counted_too() -> None:
    events = anthropic_text("a", input_tokens=0)
    events[-2]["usage"] = {"input_tokens": 33, "output_tokens": 4}
    assert decode(events)[1].usage == Usage(33, 4, 0, 0)
    events = anthropic_text("a", input_tokens=33)
    events[-2]["usage"] = {"input_tokens": 0, "output_tokens": 4}
    assert decode(events)[1].usage == Usage(33, 4, 0, 0)


def test_nothing_counted_is_not_zero() -> None:
    events = anthropic_text("a")
    del events[0]["message"]["usage"]
    del events[-2]["usage"]
    assert decode(events)[1].usage is None


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    chunks, answer = decode(anthropic_tool_calls([("Read", {"a": "é"}), ("Bash", {})], text="look"))
    assert chunks == [TextChunk("look")]
    assert answer.content == (Text("look"), ToolUse("toolu_0", "Read", {"a": "é"}), ToolUse("toolu_1", "Bash", {}))
    assert answer.stop == "tool_use"


@pytest.mark.parametrize("written", ['{"a": ', "[1]", '"x"', "{'a': 1}"])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(written: str) -> None:
    block = {"type": "tool_use", "id": "1", "name": "Read", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": written}
    _, answer = decode([anthropic_start(), *anthropic_block(0, block, [delta]), *anthropic_end("tool_use")])
    assert answer.content == (ToolUse("1", "Read", None, raw=written),)


def test_arguments_may_come_with_the_start_of_the_block_and_an_id_not_at_all() -> None:
    block = {"type": "tool_use", "name": "Read", "input": {"a": 1}}
    _, answer = decode([anthropic_start(), *anthropic_block(0, block, []), *anthropic_end("end_turn")])
    (call,) = answer.content
    assert isinstance(call, ToolUse)
    assert (call.input, answer.stop) == ({"a": 1}, "tool_use")
    assert call.id.startswith("call_")


def test_encrypted_thinking_is_kept() -> None:
    block = {"type": "redacted_thinking", "data": "xyz"}
    _, answer = decode([anthropic_start(), *anthropic_block(0, block, []), *anthropic_end()])
    assert answer.content == (ThinkingBlock("", redacted="xyz"),)


def test_a_signature_without_a_thought_is_kept() -> None:
    deltas = [{"type": "signature_delta", "signature": "a"}, {"type": "signature_delta", "signature": "b"}]
    block = {"type": "thinking", "thinking": "", "signature": ""}
    assert decode([anthropic_start(), *anthropic_block(0, block, deltas), *anthropic_end()])[1].content == (
        ThinkingBlock("", "ab"),
    )


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "max_tokens"),
        ("something_new", "end"),
    ],
)
def test_why_it_stopped(reason: str, stop: str) -> None:
    assert decode([anthropic_start(), *anthropic_end(reason)])[1].stop == stop


def test_the_reason_alone_is_an_end() -> None:
    assert decode(anthropic_text("a")[:-1])[1].content == (Text("a"),)


def test_neither_a_reason_nor_an_end_is_an_error_that_may_pass() -> None:
    with pytest.raises(ProviderError, match="without a terminal event") as caught:
        decode(anthropic_text("a")[:-2])
    assert caught.value.retryable is True


def test_an_error_in_the_stream_ends_it() -> None:
    with pytest.raises(ProviderError, match="API error: Overloaded") as caught:
        decode([anthropic_start(), anthropic_error()])
    assert caught.value.retryable is True


def test_a_whole_message_is_understood_as_well() -> None:
    message = {
        "type": "message",
        "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1", "name": "Read", "input": {"x": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    chunks, answer = decode([message])
    assert chunks == [TextChunk("a")]
    assert answer == Answer((Text("a"), ToolUse("1", "Read", {"x": 1})), "tool_use", Usage(1, 2))


def test_events_of_kinds_that_nobody_knows_are_skipped() -> None:
    strange = [
        {"type": "news"},
        *anthropic_block(5, {"type": "server_tool_use", "id": "s"}, [{"type": "citations_delta", "citation": {}}]),
        {},
    ]
    start, *rest = anthropic_text("a")
    assert decode([start, *strange, *rest])[1].content == (Text("a"),)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta"},
        {"type": "content_block_delta", "index": "x", "delta": None},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}},
        {"type": "content_block_start"},
        {"type": "message_start", "message": None},
        {"type": "message_delta", "delta": [], "usage": "no"},
        {"type": "message", "content": "no"},
        json.loads('{"type": null, "error": null}'),
    ],
)
def test_events_of_the_wrong_shape_do_no_harm(event: Event) -> None:
    decoder = AnthropicDecoder()
    assert decoder.feed(event) == []
    decoder.end()
    assert decoder.finish().stop == "end"
