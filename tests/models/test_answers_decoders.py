"""The decoders, fed with anything that is JSON: it gives chunks, an answer or a `ProviderError`, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.core.faults import ProviderError
from trunkline.models.answers import Decoder
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.model import Answer, Chunk
from trunkline.models.openai_decoder import OpenAIDecoder
from trunkline.models.openai_responses_decoder import ResponsesDecoder

#: The words of the formats: an input made of them gets further than one made of chance.
KINDS = (
    "message", "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta",
    "content_block_stop", "error", "text", "thinking", "redacted_thinking", "tool_use", "text_delta", "thinking_delta",
    "input_json_delta", "signature_delta", "end_turn", "stop", "length", "tool_calls", "function",
    "reasoning", "function_call", "completed", "incomplete", "response",
)  # fmt: skip
MEMBERS = (
    "type", "index", "delta", "content_block", "message", "usage", "error", "stop_reason", "content", "text",
    "thinking", "signature", "partial_json", "id", "name", "input", "data", "choices", "finish_reason", "tool_calls",
    "function", "arguments", "reasoning", "reasoning_content", "refusal", "extra_content", "code", "input_tokens",
    "prompt_tokens", "prompt_tokens_details", "cached_tokens", "completion_tokens_details", "reasoning_tokens",
    "item", "output", "output_index", "summary", "encrypted_content", "call_id", "incomplete_details", "status",
)  # fmt: skip

characters = st.characters(codec=None, categories=None)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False),
    st.sampled_from(KINDS),
    st.text(characters),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5),
    max_leaves=15,
)


#: An object with any of the words as members, so that every path of a decoder is met with every kind of value.
objects = st.dictionaries(st.sampled_from(MEMBERS), values, max_size=6)


def shaped(*kinds: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with all of these members, each as it should be or not; `kinds` are the types they may have."""
    right = {name: member | values for name, member in members.items()}
    return st.fixed_dictionaries({"type": st.sampled_from(kinds), **right} if kinds else right)


blocks = (
    shaped("text", "thinking", text=values, signature=values)
    | shaped("thinking", thinking=values)
    | shaped("tool_use", "redacted_thinking", id=values, name=values, input=values, data=values)
    | objects
)
anthropic_events = st.one_of(
    shaped("content_block_start", index=values, content_block=blocks),
    shaped("content_block_delta", index=values, delta=blocks),
    shaped("message_delta", delta=shaped(stop_reason=values), usage=objects),
    shaped("message", content=st.lists(blocks, max_size=3), stop_reason=values, usage=objects),
    shaped("message_start", "message_stop", message=objects),
    objects,
)
calls = shaped(index=values, id=values, function=shaped(name=values, arguments=values), extra_content=values)
choices = st.one_of(
    shaped(delta=shaped(content=st.lists(blocks, min_size=1, max_size=3), reasoning=values), finish_reason=values),
    shaped(delta=shaped(tool_calls=st.lists(calls, max_size=3), refusal=values), finish_reason=values),
    shaped(message=objects, error=values),
)
openai_events = st.one_of(
    shaped(choices=st.lists(choices, min_size=1, max_size=2)), shaped(usage=objects, error=values), objects
)


items = shaped(
    "reasoning", "message", "function_call",
    id=values, call_id=values, name=values, arguments=values, content=st.lists(values, max_size=2), summary=values,
)  # fmt: skip
responses = shaped(status=values, output=st.lists(items, max_size=3), usage=objects, incomplete_details=values)
responses_events = st.one_of(
    shaped("response.completed", "response.incomplete", "response.failed", response=responses),
    shaped("response.output_item.added", "response.output_item.done", output_index=values, item=items),
    shaped(
        "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta", "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        output_index=values, delta=values, summary_index=values, content_index=values, arguments=values,
    ),
    responses,
    objects,
)  # fmt: skip


def feed(decoder: Decoder, events: list[dict[str, Any]]) -> None:
    for event in events:
        with suppress(ProviderError):
            assert all(isinstance(chunk, Chunk) for chunk in decoder.feed(event))
    complete = decoder.complete
    with suppress(ProviderError):
        assert isinstance(decoder.finish(), Answer)
        assert complete


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(anthropic_events, max_size=6))
def test_anthropic_s_decoder_takes_anything(events: list[dict[str, Any]]) -> None:
    feed(AnthropicDecoder(), events)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(openai_events, max_size=6))
def test_openai_s_decoder_takes_anything(events: list[dict[str, Any]]) -> None:
    feed(OpenAIDecoder(), events)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(responses_events, max_size=6))
def test_the_decoder_of_responses_takes_anything(events: list[dict[str, Any]]) -> None:
    feed(ResponsesDecoder(), events)


@pytest.mark.parametrize("reason", [["end_turn"], {"a": 1}, 5, True, ""])
def test_a_reason_for_the_end_that_is_no_text_is_none(reason: Any) -> None:
    for event in ({"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_delta"}):
        decoder = AnthropicDecoder()
        assert decoder.feed(event) == []
        assert not decoder.complete
        with pytest.raises(ProviderError, match="without a terminal event"):
            decoder.finish()


@pytest.mark.parametrize("inner", [5, True, {"a": 1}, [5, {"x": 1}]])
def test_thoughts_of_the_wrong_shape_are_skipped(inner: Any) -> None:
    decoder = OpenAIDecoder()
    delta = {"content": [{"type": "thinking", "thinking": inner}]}
    assert decoder.feed({"choices": [{"delta": delta, "finish_reason": "stop"}]}) == []
    assert decoder.finish() == Answer((), "end")
