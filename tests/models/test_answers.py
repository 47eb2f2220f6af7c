from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.provider_streams import (
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_chunk,
    openai_sse,
    openai_text,
    openai_tool_calls,
)
from trunkline.core.faults import ProviderError
from trunkline.models.answers import AnswerReader, Decoder, joined, tool_input
from trunkline.models.anthropic_decoder import AnthropicDecoder
from trunkline.models.messages import Text
from trunkline.models.model import Answer, Chunk, TextChunk
from trunkline.models.openai_decoder import OpenAIDecoder

TEXT = "Grüße, 世界 👋 and more"


def read(data: bytes, *, cuts: tuple[int, ...] = (), decoder: Decoder | None = None) -> list[Chunk]:
    reader = AnswerReader(decoder or OpenAIDecoder())
    places = [0, *sorted(cuts), len(data)]
    chunks: list[Chunk] = []
    for start, end in pairwise(places):
        chunks += reader.feed(data[start:end])
    return [*chunks, *reader.finish()]


STREAMS: list[tuple[bytes, Any]] = [
    (openai_sse(openai_text(TEXT, reasoning=TEXT)), OpenAIDecoder),
    (
        openai_sse(openai_tool_calls([("Read", {"path": TEXT}), ("Bash", {})], interleaved=True), done=False),
        OpenAIDecoder,
    ),
    (openai_sse(openai_text(TEXT)).replace(b"\n", b"\r\n"), OpenAIDecoder),
    (anthropic_sse(anthropic_text(TEXT, thinking=TEXT)), AnthropicDecoder),
    (anthropic_sse(anthropic_tool_calls([("Read", {"path": TEXT})], text=TEXT)), AnthropicDecoder),
]


@given(st.integers(0, len(STREAMS) - 1), st.lists(st.integers(0, 10_000)))
def test_where_the_network_cuts_an_answer_does_not_matter(number: int, cuts: list[int]) -> None:
    data, decoder = STREAMS[number]
    whole = read(data, decoder=decoder())
    assert read(data, cuts=tuple(cut % len(data) for cut in cuts), decoder=decoder()) == whole


def test_what_can_be_shown_is_shown_at_once() -> None:
    reader = AnswerReader(OpenAIDecoder())
    data = openai_sse(openai_text("a b"), done=False)
    end = data.index(b"\n\n", data.index(b'"a"')) + 2
    assert list(reader.feed(data[:end])) == [TextChunk("a")]


def test_keep_alives_are_skipped() -> None:
    data = b": waiting\n\n" + openai_sse(openai_text("a")).replace(b"data:", b": ping\n\ndata:")
    assert read(data)[0] == TextChunk("a")


def test_after_the_mark_of_the_end_nothing_counts() -> None:
    reader = AnswerReader(OpenAIDecoder())
    assert list(reader.feed(openai_sse(openai_text("a")) + b"data: {broken\n\n")) == [TextChunk("a")]
    assert reader.done
    assert isinstance(reader.finish()[-1], Answer)


def test_an_error_instead_of_a_stream_is_that_error() -> None:
    with pytest.raises(ProviderError, match="API error: no such model") as caught:
        read(b'  \n{"error": {"message": "no such model", "type": "invalid_request_error"}}')
    assert caught.value.retryable is False


def test_a_whole_completion_instead_of_a_stream_is_the_answer() -> None:
    body = {"error": None, "choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
    assert [type(chunk) for chunk in read(json.dumps(body, indent=1).encode(), cuts=(3, 9))] == [TextChunk, Answer]


def test_a_web_page_is_no_answer_and_says_what_to_check() -> None:
    with pytest.raises(ProviderError, match="base URL") as caught:
        read(b"<!doctype html><html>")
    assert caught.value.retryable is False


@pytest.mark.parametrize("body", [b"", b"\n\n", b": nothing\n\n", b'{"choices": [', b"{}"])
def test_an_answer_that_breaks_off_before_it_begins_may_be_asked_for_again(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read(body)
    assert caught.value.retryable is True


def test_a_last_event_that_is_cut_in_the_middle_is_a_break_and_not_nonsense() -> None:
    data = openai_sse(openai_text("a b"), done=False)
    with pytest.raises(ProviderError, match="broke off") as caught:
        read(data[: data.index(b'" b"')])
    assert caught.value.retryable is True


def test_nonsense_in_the_middle_is_an_error() -> None:
    with pytest.raises(ProviderError, match="cannot be read: no JSON"):
        read(b"data: nonsense\n\n" + openai_sse(openai_text("a")))


def test_half_a_character_from_a_small_server_does_not_end_the_answer() -> None:
    assert read(openai_sse(openai_text("X")).replace(b'"X"', b'"a\xe2\x82"'))[0] == TextChunk("a\ufffd")


def test_json_that_is_no_event_is_skipped() -> None:
    assert read(b'data: "ping"\n\ndata: null\n\n' + openai_sse(openai_text("a")))[0] == TextChunk("a")


def test_a_character_that_was_cut_in_two_is_whole_again() -> None:
    halves = [openai_chunk({"content": half}) for half in ("\ud83d", "\ude00")]
    data = b"".join(
        b"data: " + json.dumps(event).encode() + b"\n\n" for event in [*halves, openai_chunk(finish="stop")]
    )
    assert read(data)[-1] == Answer((Text("\U0001f600"),), "end")
    assert joined(["\ud83d", "\ude00", "\ud83d"]) == "\U0001f600\ud83d"


def test_half_characters_in_arguments_do_not_spoil_them() -> None:
    assert tool_input('{"a": "\\ud800"}') == ({"a": "\ud800"}, None)
    assert tool_input('{"a": "\ud800"}') == ({"a": "?"}, None)
