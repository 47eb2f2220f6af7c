"""Long texts lose their middle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.redact import Masked
from trunkline.tools.truncation import Clip, one_line, truncate

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\ud83d\ude00\udc80\n"), max_size=60)


def test_the_mark_says_how_much_is_missing() -> None:
    assert truncate(Masked("a" * 10 + "b" * 10), 10) == "aaaaa\n\n... [truncated 10 chars] ...\n\nbbbbb"


def test_a_text_of_exactly_the_limit_is_left_alone() -> None:
    assert truncate(Masked("x" * 10), 10) == "x" * 10
    assert "truncated 1 chars" in truncate(Masked("x" * 11), 10)


def test_an_odd_limit_gives_two_equal_halves() -> None:
    assert truncate(Masked("abcdefghijkl"), 5) == "ab\n\n... [truncated 7 chars] ...\n\nkl"


def test_the_number_counts_bytes_and_the_halves_count_characters() -> None:
    assert truncate(Masked("ä" * 12), 10) == "äääää\n\n... [truncated 14 chars] ...\n\näääää"


def test_a_pair_of_surrogates_is_not_parted() -> None:
    pair = "\ud83d\ude00"
    cut = truncate(Masked("a" + pair + "b" * 20 + pair + "c"), 4)
    assert (cut[:2], cut[-2:]) == ("a\n", "\nc")


@given(TEXTS, st.integers(2, 20))
def test_truncating_again_changes_nothing(text: str, limit: int) -> None:
    once = truncate(Masked(text), limit)
    assert truncate(Masked(once), limit) == once


@given(st.lists(TEXTS, max_size=8), st.integers(2, 20))
def test_a_text_in_pieces_is_cut_like_the_whole(pieces: list[str], limit: int) -> None:
    clip = Clip(limit)
    for piece in pieces:
        clip.feed(Masked(piece))
    assert clip.text() == (
        truncate(Masked("".join(pieces)), limit) if len("".join(pieces)) > limit else "".join(pieces)
    )


def test_a_clip_holds_no_more_than_a_few_times_its_limit() -> None:
    clip = Clip(100)
    for _ in range(1000):
        clip.feed(Masked("x" * 1000))
    assert len(clip._head) + len(clip._tail) <= 600
    assert "truncated 999900 chars" in clip.text()


def test_one_line_is_one_line() -> None:
    assert one_line("a\nb\r\nc") == "a\\nb\\r\\nc"
    assert one_line("x" * 20, 5) == "xxxxx..."
