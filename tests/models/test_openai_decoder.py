from __future__ import annotations

from typing import Any

import pytest

from tests.support.provider_streams import Event, openai_chunk, openai_text, openai_tool_calls, openai_usage
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.messages import Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, TextChunk, ThinkingChunk
from trunkline.models.openai_decoder import OpenAIDecoder

CALLS = [("Read", {"path": "é"}), ("Bash", {"command": "ls"})]
USES = (ToolUse("call_0", "Read", {"path": "é"}), ToolUse("call_1", "Bash", {"command": "ls"}))


def decode(chunks: list[Event], *, done: bool = True, auto_id: bool = True) -> tuple[list[Chunk], Answer]:
    decoder = OpenAIDecoder(auto_id=auto_id)
    found = [chunk for event in chunks for chunk in decoder.feed(event)]
    if done:
        decoder.end()
    return found, decoder.finish()


def calls(*deltas: dict[str, Any], finish: str = "tool_calls") -> tuple[ToolUse, ...]:
    """The calls in an answer of these pieces, one chunk each."""
    events = [*(openai_chunk({"tool_calls": [delta]}) for delta in deltas), openai_chunk(finish=finish)]
    answer = decode(events)[1]
    assert answer.stop == "tool_use"
    return tuple(block for block in answer.content if isinstance(block, ToolUse))


def test_text_is_streamed_and_joined() -> None:
    chunks, answer = decode(openai_text("to be"))
    assert chunks == [TextChunk("to"), TextChunk(" be")]
    assert answer == Answer((Text("to be"),), "end", Usage(10, 5, 0))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_whatever_the_field_is_called(field: str) -> None:
    chunks, answer = decode(openai_text("a", reasoning="hm hm", reasoning_field=field))
    assert chunks == [ThinkingChunk("hm"), ThinkingChunk(" hm"), TextChunk("a")]
    assert answer.content == (ThinkingBlock("hm hm"), Text("a"))


def test_of_two_reasoning_fields_the_first_that_says_something_counts() -> None:
    chunks, _ = decode([openai_chunk({"reasoning_content": "", "reasoning": "b"}), openai_chunk(finish="stop")])
    assert chunks == [ThinkingChunk("b")]
    chunks, _ = decode([openai_chunk({"reasoning_content": "a", "reasoning": "b"}), openai_chunk(finish="stop")])
    assert chunks == [ThinkingChunk("a")]


def test_an_answer_may_be_reasoning_alone() -> None:
    chunks = [openai_chunk({"reasoning_content": "hm"}), openai_chunk(finish="stop")]
    assert decode(chunks)[1] == Answer((ThinkingBlock("hm"),), "end")


def test_content_may_come_in_typed_parts() -> None:
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chunks, answer = decode(
        [openai_chunk({"content": [thoughts, {"type": "text", "text": "a"}]}), openai_chunk(finish="stop")]
    )
    assert chunks == [ThinkingChunk("hm"), TextChunk("a")]
    assert answer.content == (ThinkingBlock("hm"), Text("a"))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_calls_are_put_together_by_their_index(interleaved: bool, finish: str) -> None:
    _, answer = decode(openai_tool_calls(CALLS, interleaved=interleaved, finish=finish))
    assert (answer.content, answer.stop) == (USES, "tool_use")


def test_an_empty_name_does_not_erase_the_first_and_a_repeated_one_does_not_double_it() -> None:
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{"}},
        {"index": 0, "id": "", "function": {"name": "", "arguments": ""}},
        {"index": 0, "id": None, "function": {"name": None, "arguments": "}"}},
        {"index": 0, "id": "a", "function": {"name": "Read"}},
    ]
    assert calls(*pieces) == (ToolUse("a", "Read", {}),)


def test_a_name_may_come_in_pieces() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": name}} for name in ("Re", "ad")]
    assert calls(*pieces) == (ToolUse("a", "Read", {}),)


def test_calls_of_one_index_or_none_are_told_apart_by_their_ids() -> None:
    for index in ({"index": 0}, {}):
        found = calls(
            {**index, "id": "a", "function": {"name": "Read", "arguments": "{}"}},
            {**index, "id": "b", "function": {"name": "Bash", "arguments": '{"x":'}},
            {**index, "function": {"arguments": "1}"}},
        )
        assert found == (ToolUse("a", "Read", {}), ToolUse("b", "Bash", {"x": 1}))


def test_a_call_without_an_id_gets_one_and_none_twice() -> None:
    pieces = [{"index": number, "id": "", "function": {"name": "Read", "arguments": "{}"}} for number in range(2)]
    first, second = calls(*pieces)
    assert first.id.startswith("call_")
    assert first.id != second.id
    same = [{"index": number, "id": "x", "function": {"name": "Read", "arguments": "{}"}} for number in range(2)]
    assert [call.id == "x" for call in calls(*same)] == [True, False]


def test_a_profile_can_leave_ids_alone() -> None:
    event = openai_chunk({"tool_calls": [{"index": 0, "function": {"name": "Read"}}]})
    answer = decode([event, openai_chunk(finish="stop")], auto_id=False)[1]
    assert answer.content == (ToolUse("", "Read", {}),)


@pytest.mark.parametrize("written", ['{"a": ', "[1]", '"x"', "nonsense"])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(written: str) -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "Read", "arguments": written}}
    assert calls(piece) == (ToolUse("a", "Read", None, raw=written),)


@pytest.mark.parametrize("written", ["", " ", "null", "{}", {}])
def test_no_arguments_are_an_empty_object(written: Any) -> None:
    assert calls({"index": 0, "id": "a", "function": {"name": "Read", "arguments": written}}) == (
        ToolUse("a", "Read", {}),
    )


def test_arguments_may_come_as_an_object() -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "Read", "arguments": {"a": 1}}}
    assert calls(piece) == (ToolUse("a", "Read", {"a": 1}),)


def test_what_a_provider_wants_back_with_a_call_is_kept() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    piece = {"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{}"}, "extra_content": extra}
    assert calls(piece) == (ToolUse("a", "Read", {}, extra=extra),)


def test_usage_comes_after_the_finish_reason() -> None:
    chunks = openai_text("a")[:-1]
    assert decode(chunks)[1].usage is None
    assert decode([*chunks, openai_usage(20, 7, cached=15)])[1].usage == Usage(20, 7, 15)


def test_of_many_usages_the_last_counts_and_null_is_none() -> None:
    chunks = [openai_chunk({"content": "a"}, usage={"prompt_tokens": 1, "completion_tokens": 1}), openai_usage(9, 9)]
    assert decode([*chunks, openai_chunk(finish="stop", usage=None)])[1].usage == Usage(9, 9, 0)


def test_another_way_to_count_cached_tokens_is_understood() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
    assert decode([openai_chunk(finish="stop", usage=usage)])[1].usage == Usage(9, 1, 8)


def test_tokens_of_reasoning_are_told_apart() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "completion_tokens_details": {"reasoning_tokens": 7}}
    assert decode([openai_chunk(finish="stop", usage=usage)])[1].usage == Usage(9, 8, reasoning_tokens=7)
    for odd in (None, 5, {}, {"reasoning_tokens": "many"}):
        found = decode([openai_chunk(finish="stop", usage={**usage, "completion_tokens_details": odd})])[1].usage
        assert found == Usage(9, 8)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end"), ("length", "max_tokens"), ("content_filter", "refusal"), ("tool_calls", "end"), ("odd", "end")],
)
def test_why_it_stopped(finish: str, stop: str) -> None:
    assert decode([openai_chunk({"content": "a"}), openai_chunk(finish=finish)])[1].stop == stop


def test_a_refusal_is_said_and_is_the_reason() -> None:
    chunks, answer = decode([openai_chunk({"refusal": "I won't"}), openai_chunk(finish="stop")])
    assert chunks == [TextChunk("I won't")]
    assert answer.stop == "refusal"


def test_a_call_that_was_cut_off_says_so() -> None:
    events = openai_tool_calls(CALLS[:1], finish="length")
    assert decode(events)[1].stop == "max_tokens"


def test_a_finish_reason_without_the_mark_of_the_end_is_success() -> None:
    assert decode(openai_text("a"), done=False)[1].content == (Text("a"),)


def test_the_mark_of_the_end_without_a_finish_reason_is_success() -> None:
    assert decode([openai_chunk({"content": "a"})])[1] == Answer((Text("a"),), "end")


def test_a_whole_completion_needs_neither() -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
    assert decode([whole], done=False)[1] == Answer((Text("a"),), "end")


def test_neither_is_an_error_that_may_pass() -> None:
    with pytest.raises(ProviderError, match="without a terminal event") as caught:
        decode([openai_chunk({"content": "a"})], done=False)
    assert caught.value.retryable is True


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "boom", "code": 502}},
        {"error": "boom"},
        {"choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]},
    ],
)
def test_an_error_in_the_stream_ends_it(event: Event) -> None:
    with pytest.raises(ProviderError, match="API error: boom") as caught:
        OpenAIDecoder().feed(event)
    assert caught.value.retryable is True


def test_a_finish_that_says_error_is_one() -> None:
    with pytest.raises(ProviderError):
        decode([openai_chunk(finish="error")])


def test_no_error_is_no_error() -> None:
    assert decode([openai_chunk({"content": "a"}, error=None), openai_chunk(finish="stop")])[1].content == (Text("a"),)


def test_a_whole_completion_is_understood_as_well() -> None:
    function = {"name": "Read", "arguments": '{"path":"é"}'}
    message = {
        "role": "assistant",
        "content": "a",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    chunks, answer = decode([{"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}])
    assert chunks == [TextChunk("a")]
    assert answer == Answer((Text("a"), USES[0]), "tool_use", Usage(1, 2))


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"choices": None},
        {"choices": "x"},
        {"choices": [None]},
        {"choices": [{"delta": None, "finish_reason": None}]},
        {"choices": [{"delta": {"content": 5, "reasoning": [], "tool_calls": "x"}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"index": "x", "function": None}]}}]},
        {"usage": "none", "choices": []},
    ],
)
def test_chunks_of_the_wrong_shape_do_no_harm(event: Event) -> None:
    chunks, answer = decode([event])
    assert chunks == []
    assert answer == Answer((), "end")
