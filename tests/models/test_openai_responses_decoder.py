"""What comes in OpenAI's Responses format."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.provider_streams import Event
from tests.support.responses_streams import (
    ENCRYPTED,
    call_item,
    message_item,
    reasoning_item,
    response_of,
    responses_of,
    responses_text,
    responses_tool_calls,
)
from trunkline.core.faults import ProviderError, TooLong
from trunkline.core.usage import Usage
from trunkline.models.messages import Text, ThinkingBlock, ToolUse
from trunkline.models.model import Answer, Chunk, TextChunk, ThinkingChunk
from trunkline.models.openai_responses_decoder import ResponsesDecoder

CALLS = [("Read", {"path": "é"}), ("Bash", {"command": "ls"})]
USES = (ToolUse("call_0", "Read", {"path": "é"}), ToolUse("call_1", "Bash", {"command": "ls"}))
USED = Usage(10, 5, 4, reasoning_tokens=2)


def decode(events: list[Event], **more: Any) -> tuple[list[Chunk], Answer]:
    decoder = ResponsesDecoder(**more)
    found = [chunk for event in events for chunk in decoder.feed(event)]
    assert decoder.done == decoder.complete
    return found, decoder.finish()


def test_text_is_streamed_and_joined() -> None:
    chunks, answer = decode(responses_text("to be"))
    assert chunks == [TextChunk("to"), TextChunk(" be")]
    assert answer == Answer((Text("to be"),), "end", USED)


def test_reasoning_is_thinking_and_is_kept_as_it_came() -> None:
    chunks, answer = decode(responses_of(reasoning_item("one two", "three"), message_item("a")))
    assert chunks[:3] == [ThinkingChunk("one"), ThinkingChunk(" two"), ThinkingChunk("\n\nthree")]
    thought, text = answer.content
    assert text == Text("a")
    assert isinstance(thought, ThinkingBlock)
    assert thought.text == "one two\n\nthree"
    summary = [{"type": "summary_text", "text": text} for text in ("one two", "three")]
    assert thought.extra == {"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": ENCRYPTED}


def test_of_reasoning_that_is_encrypted_the_words_do_not_go_back() -> None:
    """The provider refuses both together."""
    item = {**reasoning_item("Think."), "content": [{"type": "reasoning_text", "text": "Word by word."}]}
    block, _ = decode(responses_of(item, message_item("Yes.")))[1].content
    assert isinstance(block, ThinkingBlock)
    assert block.extra is not None
    assert "encrypted_content" in block.extra
    assert "content" not in block.extra


def test_reasoning_that_nobody_could_read_again_is_only_shown() -> None:
    (thought,) = decode(responses_of(reasoning_item("hm", encrypted=None)))[1].content
    assert thought == ThinkingBlock("hm")
    assert decode(responses_of(reasoning_item(encrypted=None)))[1].content == ()


def test_calls_are_put_together_and_stand_where_they_were_made() -> None:
    _, answer = decode(responses_tool_calls(CALLS, text="I look.", reasoning="hm"))
    assert [type(block) for block in answer.content] == [ThinkingBlock, Text, ToolUse, ToolUse]
    assert answer.content[2:] == USES
    assert answer.stop == "tool_use"


def test_pieces_are_enough_where_a_server_tells_nothing_whole() -> None:
    events = [event for event in responses_tool_calls(CALLS, text="I look.") if ".done" not in event["type"]]
    events[-1]["response"]["output"] = []
    chunks, answer = decode(events)
    assert answer.content == (Text("I look."), *USES)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "I look."


@pytest.mark.parametrize("streamed", [True, False])
def test_the_whole_is_enough_where_a_server_tells_nothing_in_pieces(streamed: bool) -> None:
    items = [reasoning_item("hm"), message_item("a"), call_item("Read", {"path": "é"}, "call_0")]
    whole = response_of("completed", items)
    chunks, answer = decode([{"type": "response.completed", "response": whole} if streamed else whole])
    assert chunks == [ThinkingChunk("hm"), TextChunk("a")]
    assert answer.content[1:] == (Text("a"), USES[0])
    assert answer.usage == USED


def test_a_call_without_an_id_of_its_own_gets_one() -> None:
    for call_id in ("", "same"):
        items = [{**call_item("Read", {}, call_id), "id": ""} for _ in range(2)]
        first, second = decode(responses_of(*items))[1].content
        assert isinstance(first, ToolUse)
        assert isinstance(second, ToolUse)
        assert first.id
        assert second.id
        assert first.id != second.id


def test_arguments_that_are_no_object_are_kept_as_they_were_written() -> None:
    (call,) = decode(responses_of({**call_item("Read", {}, "1"), "arguments": "{broken"}))[1].content
    assert call == ToolUse("1", "Read", None, "{broken")


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("else", "max_tokens")]
)
def test_why_it_is_incomplete(reason: str, stop: str) -> None:
    events = responses_of(message_item("a"), status="incomplete", incomplete_details={"reason": reason})
    assert decode(events)[1].stop == stop


def test_a_refusal_is_said_and_is_the_reason() -> None:
    refused = {**message_item(""), "content": [{"type": "refusal", "refusal": "No."}]}
    streamed = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "No."}
    for events in (
        [{"type": "response.output_item.done", "output_index": 0, "item": refused}],
        [streamed],
    ):
        whole = {"type": "response.completed", "response": response_of("completed")}
        chunks, answer = decode([*events, whole])
        assert chunks == [TextChunk("No.")]
        assert (answer.content, answer.stop) == ((Text("No."),), "refusal")


@pytest.mark.parametrize(
    ("event", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "Sorry.", "param": None}, True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Sorry."}}, False),
        ({"error": {"type": "invalid_request_error", "message": "Sorry."}}, False),
        (responses_of(status="failed", error={"code": "rate_limit_exceeded", "message": "Sorry."})[-1], True),
        (responses_of(status="failed", error={"code": "invalid_prompt", "message": "Sorry."})[-1], False),
        (response_of("failed", error={"code": "server_error", "message": "Sorry."}), True),
        (response_of("cancelled", error={"code": "server_error", "message": "Sorry."}), True),
    ],
)
def test_an_error_ends_it_and_says_whether_it_may_pass(event: Event, retryable: bool) -> None:
    with pytest.raises(ProviderError, match="Sorry") as caught:
        ResponsesDecoder().feed(event)
    assert caught.value.retryable is retryable


def test_a_conversation_that_is_too_long_is_known_as_that() -> None:
    failed = responses_of(status="failed", error={"code": "context_length_exceeded", "message": "too many tokens"})
    with pytest.raises(TooLong):
        decode(failed)


def test_an_answer_without_its_end_is_an_error_that_may_pass() -> None:
    decoder = ResponsesDecoder()
    for event in responses_text("to be")[:-1]:
        decoder.feed(event)
    assert not decoder.complete
    decoder.end()
    with pytest.raises(ProviderError) as caught:
        decoder.finish()
    assert caught.value.retryable
