"""Bytes into lines: only line feeds count, cuts change nothing, and nothing beyond the limit is held."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.lines import LineSplitter, OverlongLine

LIMIT = 8

# Mostly line feeds and bytes that other splitters stumble over.
_bytes = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\0", "é".encode(), "\u2028".encode()]), max_size=40)
streams = _bytes.map(b"".join) | st.binary(max_size=60)


def split(limit: int, *chunks: bytes) -> list[bytes | OverlongLine]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


def expected(limit: int, stream: bytes) -> list[bytes | OverlongLine]:
    """The contract, as plainly as it can be said."""
    *complete, rest = stream.split(b"\n")
    lines = complete + ([rest] if rest else [])
    return [line if len(line) <= limit else OverlongLine(len(line)) for line in lines]


def held(splitter: LineSplitter) -> int:
    """All bytes that a splitter keeps, wherever it keeps them."""
    return sum(
        sum(map(len, value)) if isinstance(value, list) else len(value)
        for value in vars(splitter).values()
        if isinstance(value, list | bytes | bytearray)
    )


@given(streams, st.integers(1, 12))
def test_a_stream_is_cut_at_its_line_feeds(stream: bytes, limit: int) -> None:
    assert split(limit, stream) == expected(limit, stream)


@given(streams, st.data())
def test_how_the_bytes_arrive_changes_nothing(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert split(LIMIT, *chunks) == expected(LIMIT, stream)


@given(streams)
def test_one_byte_at_a_time_changes_nothing_either(stream: bytes) -> None:
    assert split(LIMIT, *(stream[at : at + 1] for at in range(len(stream)))) == expected(LIMIT, stream)


@given(st.lists(streams, max_size=10))
def test_no_more_than_the_limit_is_ever_held(chunks: list[bytes]) -> None:
    splitter = LineSplitter(LIMIT)
    for chunk in chunks:
        splitter.feed(chunk)
        assert held(splitter) <= LIMIT
    splitter.finish()
    assert held(splitter) == 0


def test_what_is_held_is_seen_by_the_test_above() -> None:
    splitter = LineSplitter(LIMIT)
    splitter.feed(b"abc")
    assert held(splitter) == len(b"abc")


@pytest.mark.parametrize("end", [b"\n", b""], ids=["line feed", "end of stream"])
@pytest.mark.parametrize(
    ("size", "passes"), [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)], ids=["below", "at", "above"]
)
def test_the_limit_is_the_longest_line_without_its_line_feed(size: int, passes: bool, end: bytes) -> None:
    line = b"x" * size
    assert split(LIMIT, line + end) == [line if passes else OverlongLine(size)]


@pytest.mark.parametrize("size", [LIMIT + 1, 10 * LIMIT])
def test_after_a_line_over_the_limit_the_next_one_is_whole(size: int) -> None:
    assert split(LIMIT, b"x" * size, b"\nnext\n") == [OverlongLine(size), b"next"]


def test_a_line_over_the_limit_is_reported_once_with_its_whole_size_however_it_came() -> None:
    assert split(LIMIT, *[b"x" * LIMIT] * 5, b"\n") == [OverlongLine(5 * LIMIT)]


def test_an_empty_line_is_a_line_and_an_empty_end_is_not() -> None:
    assert split(LIMIT, b"\n\na\n") == [b"", b"", b"a"]


def test_a_character_split_over_two_reads_stays_whole() -> None:
    assert split(LIMIT, b"\xc3", b"\xa9\n") == ["é".encode()]


def test_after_the_end_a_splitter_starts_again() -> None:
    splitter = LineSplitter(LIMIT)
    splitter.feed(b"rest")
    assert splitter.finish() == [b"rest"]
    assert splitter.finish() == []
    assert splitter.feed(b"new\n") == [b"new"]


@pytest.mark.slow
def test_a_line_that_comes_in_tiny_pieces_takes_no_more_room_than_it_is_long() -> None:
    splitter = LineSplitter(1024 * 1024)
    tracemalloc.start()
    try:
        for _ in range(256 * 1024):
            splitter.feed(b"ab")
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert splitter.feed(b"\n") == [b"ab" * 256 * 1024]


@pytest.mark.parametrize(
    "pieces", [(b"abcdefghijkl\n",), (b"a", b"bcde", b"fghijkl\n"), (b"ab", b"cdefghijklmnop", b"q\n")]
)
def test_how_a_line_over_the_limit_begins_is_kept_if_that_is_wanted(pieces: tuple[bytes, ...]) -> None:
    splitter = LineSplitter(5, head=3)
    found = [line for piece in pieces for line in splitter.feed(piece)]
    assert found == [OverlongLine(len(b"".join(pieces)) - 1, b"abc")]
