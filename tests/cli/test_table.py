"""Tables for people: aligned, one line for each row, no wider than the terminal."""

from __future__ import annotations

import pytest

from trunkline.cli.table import cells, cut, lines

HEAD = ("NAME", "WHAT")


def test_columns_are_aligned_and_the_last_one_is_cut_to_the_width() -> None:
    rows = [("a", "short"), ("longer", "x" * 100)]
    assert lines(HEAD, rows, 30) == ["NAME    WHAT", "a       short", "longer  " + "x" * 19 + "..."]
    assert lines(HEAD, rows, None)[-1] == "longer  " + "x" * 100


def test_letters_that_take_two_columns_count_twice() -> None:
    made = lines(HEAD, [("\u4f60\u597d", "x"), ("abcd", "\u4f60" * 40)], 40)
    assert made[1] == "\u4f60\u597d  x"
    assert cells(made[2]) <= 40


@pytest.mark.parametrize(
    ("text", "shown"), [("12345678", "12345678"), ("123456789", "12345..."), ("12 456789", "12 45...")]
)
def test_what_fits_stays_whole(text: str, shown: str) -> None:
    assert cut(text, 8) == shown
