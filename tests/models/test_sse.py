from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.models.sse import SseDecoder

STREAM = (
    b"\xef\xbb\xbf: a comment\r\nevent: one\rdata: first\ndata:second\r\n\r\n"
    b"id: 7\nretry: 10\ndata: \xc3\xa9\xe2\x82\xac\n\n\n:\n\ndata\ndata: x\n\ndata: last\n\n"
)
EVENTS = [("one", b"first\nsecond"), ("", "é€".encode()), ("", b"\nx"), ("", b"last")]


def decode(*pieces: bytes) -> list[tuple[str, bytes]]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


def test_events_are_cut_at_empty_lines_whatever_ends_the_lines() -> None:
    assert decode(STREAM) == EVENTS


@given(st.lists(st.integers(0, len(STREAM))))
def test_where_the_network_cuts_a_stream_does_not_matter(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert decode(*(STREAM[start:end] for start, end in pairwise(places))) == EVENTS


def test_a_line_end_of_two_characters_may_be_split_over_two_reads() -> None:
    assert decode(b"data: a\r", b"\n\r", b"\ndata: b\r", b"\n") == [("", b"a"), ("", b"b")]
    assert decode(b"data: a\r", b"", b"\ndata: b\r\n\r\n") == [("", b"a\nb")]


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\nda") == [("", b"a")]


def test_the_last_event_may_lack_its_empty_line() -> None:
    assert decode(b"data: a\n\nevent: e\ndata: b") == [("", b"a"), ("e", b"b")]


def test_a_name_does_not_outlive_its_event() -> None:
    assert decode(b"event: lost\n\ndata: a\n\n") == [("", b"a")]


def test_an_event_without_data_is_none() -> None:
    assert decode(b"event: ping\ndata:\n\n") == []


def test_one_space_after_the_colon_is_not_part_of_the_data() -> None:
    assert decode(b"data:  a\n\n") == [("", b" a")]


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 100], [b"data: 12345\n"] * 20, [b"x" * 40] * 3])
def test_what_is_too_large_is_refused_before_it_is_held(pieces: list[bytes]) -> None:
    decoder = SseDecoder(limit=64)
    with pytest.raises(ValueError, match="larger than 64 bytes"):
        list(map(decoder.feed, pieces))


def test_many_small_events_are_not_one_large_one() -> None:
    decoder = SseDecoder(limit=64)
    assert len(decoder.feed(b"data: 12345\n\n" * 100)) == 100
