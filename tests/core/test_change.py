"""What changes from one text to another."""

from __future__ import annotations

import time
from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.change import MOST_PAIRS, NO_NEWLINE, change


def shown(old: str, new: str) -> list[str]:
    return [f"{row.number or ''}{row.sign}{row.text}" for row in change(old, new)]


def test_lines_that_differ_are_shown_with_their_numbers_and_a_few_around_them() -> None:
    old = "".join(f"{n}\n" for n in range(1, 21))
    new = old.replace("5\n", "five\n5b\n", 1).replace("20\n", "twenty\n")
    assert shown(old, new) == [
        "@⋮ 1 line unchanged", "2 2", "3 3", "4 4", "5-5", "5+five", "6+5b", "7 6", "8 7", "9 8",
        "@⋮ 8 lines unchanged", "18 17", "19 18", "20 19", "20-20", "21+twenty",
    ]  # fmt: skip


def test_the_same_text_has_no_change() -> None:
    assert change("a\nb", "a\nb") == []


def test_only_a_line_feed_ends_a_line() -> None:
    assert shown("a\n", "a\x0bb\u2028c\n") == ["1-a", "1+a\x0bb\u2028c"]


def test_a_line_feed_that_is_gone_is_told() -> None:
    assert shown("a\n", "a") == ["1-a", f"1+a{NO_NEWLINE}"]
    assert shown("a", "b") == ["1-a", "1+b"]


def test_line_endings_are_told_only_where_they_change() -> None:
    assert shown("a\r\nb\r\n", "a\r\nc\r\n") == ["1 a", "2-b", "2+c"]
    assert shown("a\nb\n", "a\nb\r\n") == ["1 a", "2-b", "2+b\r"]


def test_texts_that_are_hard_to_compare_take_no_longer_than_others() -> None:
    began = time.process_time()
    rows = change("".join(f"{n % 63}\n" for n in range(60_000)), "".join(f"{n % 61}\n" for n in range(60_000)))
    assert time.process_time() - began < 5
    assert sum(row.sign == "+" for row in rows) > 50_000


@pytest.mark.parametrize(("side", "compared"), [(isqrt(MOST_PAIRS), True), (isqrt(MOST_PAIRS) + 1, False)])
def test_lines_are_compared_up_to_the_limit(side: int, compared: bool) -> None:
    old, new = ([f"{who} {n}" for n in range(side - 1)] for who in ("old", "new"))
    for each in (old, new):
        each.insert(side // 2, "the same")
    rows = change("\n".join(old), "\n".join(new))
    assert [row.sign for row in rows if row.text == "the same"] == ([" "] if compared else ["-", "+"])


def test_what_is_hardest_to_compare_takes_a_moment() -> None:
    half = isqrt(MOST_PAIRS) // 2
    old = "".join(f"x\nold {n}\n" for n in range(half))
    new = "".join(f"new {n}\nx\n" for n in range(half))
    began = time.process_time()
    assert any(row.sign == " " for row in change(old, new))
    assert time.process_time() - began < 2


lines = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map(
    lambda each: "".join(f"{line}\n" for line in each)
)


@given(lines, lines)
def test_what_is_shown_is_what_changes(old: str, new: str) -> None:
    rows = change(old, new)
    before, after = old.split("\n")[:-1], new.split("\n")[:-1]
    for row in rows:
        if row.number is not None:
            assert (before if row.sign == "-" else after)[row.number - 1] == row.text
    kept = [line for at, line in enumerate(before, 1) if at not in {row.number for row in rows if row.sign == "-"}]
    also = [line for at, line in enumerate(after, 1) if at not in {row.number for row in rows if row.sign == "+"}]
    assert kept == also
