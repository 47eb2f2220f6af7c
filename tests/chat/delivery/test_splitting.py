"""Long texts in several messages."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trunkline.chat.delivery.splitting import LONGEST_FENCE, advance, closed, resumed, split

FENCE = re.compile(rf"^[ \t]*(`{{3,{LONGEST_FENCE}}}(?!`)|~{{3,{LONGEST_FENCE}}}(?!~))([^\n]*)$", re.MULTILINE)


def utf16(text: str) -> int:
    return sum(2 if char > "\uffff" else 1 for char in text)


def utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def rendered(text: str) -> int:
    """As a platform counts that takes the marks of Markdown away: shorter texts may count more."""
    return len(re.sub(r"\*\*|`", "", text))


MEASURES = st.sampled_from([len, utf16, utf8, rendered])

PIECES = st.sampled_from(
    [
        "word ", "another", "\n", "\n\n", "  ", "\t", "```", "```python\n", "\n```\n", "~~~\n", "    ```\n", "`",
        "def f():\n    return 1\n", "x" * 50, "\U0001f600", "e\u0301", "\ud800", "\udfff", "\x00", "\r\n",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467", "- item\n  - inner\n", "````md\n", "> quote\n",
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=80).map("".join)


def bare(text: str) -> str:
    """What must not be lost: everything but white space and the lines of fences."""
    return re.sub(r"\s", "", FENCE.sub("", text))


def open_fence(text: str) -> bool:
    mark = ""
    for line in FENCE.finditer(text):
        run, info = line[1], line[2].strip()
        if not mark:
            mark = "" if run[0] == "`" and "`" in info else run
        elif run[0] == mark[0] and len(run) >= len(mark) and not info:
            mark = ""
    return bool(mark)


def longest_fence_line(text: str) -> int:
    return max((len(line[0]) for line in FENCE.finditer(text)), default=0)


@given(TEXTS, st.integers(1, 200), MEASURES)
def test_no_part_is_blank_or_over_the_limit(text: str, limit: int, measure: Callable[[str], int]) -> None:
    for part in split(text, limit, measure):
        assert part.strip()
        assert measure(part) <= limit or len(part) == 1


RUNS = st.builds(
    lambda before, char, size, after: before + char * size + after,
    st.sampled_from(["", "> ", "x", "\n", " " * 70, "word ", "```py\n", "```py\nx", "~~~\n", "\U0001f600" * 300]),
    st.sampled_from("`~"),
    st.integers(1, 3000),
    st.sampled_from(["", "\n", "x", "\ncode\n```\n", "\n\nword word"]),
)


@given(st.lists(RUNS, min_size=1, max_size=4).map("".join), st.integers(400, 1200), st.sampled_from([len, utf16]))
def test_long_runs_of_backticks_and_tildes_are_cut_at_the_limit_like_anything_else(
    text: str, limit: int, measure: Callable[[str], int]
) -> None:
    parts = split(text, limit, measure)
    # As it is sent, whatever part it is.
    assert all(measure(closed(part)) <= limit for part in parts)
    # A cut may come early, at a fence's line, say; but never so early that a character stands alone.
    assert len(parts) <= 4 * measure(text) / limit + 4 * text.count("\n") + 4


@pytest.mark.parametrize("text", ["`" * 5000, "~" * 5000, "see " + "`" * 5000, "```py\nx" + "`" * 5000])
def test_a_run_that_is_longer_than_a_message_fills_one_and_goes_on_in_the_next(text: str) -> None:
    parts = split(text, 4096, utf16)
    assert len(parts) == 2
    assert utf16(parts[0]) == 4096


def test_a_fence_whose_line_is_longer_than_a_message_is_closed_in_each() -> None:
    for part in split("```" + "x" * 10_000 + "\ncode", 4096):
        assert part == closed(part)
        assert len(part) <= 4096


@given(TEXTS, st.integers(60, 200), st.sampled_from([len, utf16]))
def test_each_part_closes_the_fences_it_opens(text: str, limit: int, measure: Callable[[str], int]) -> None:
    # A line that opens a fence and leaves no room for code cannot be helped.
    assume(longest_fence_line(text) < limit / 3)
    for part in split(text, limit, measure):
        assert not open_fence(part)


@given(st.lists(st.sampled_from(["word ", "a longer one, ", "\n", "\n\n", "x" * 90, "\U0001f600"])).map("".join))
def test_of_plain_text_nothing_but_white_space_is_lost_and_the_order_is_kept(text: str) -> None:
    assert bare("".join(split(text, 40, utf16))) == bare(text)


@given(TEXTS, st.integers(60, 200), MEASURES)
def test_of_any_text_nothing_but_white_space_and_fences_is_lost(
    text: str, limit: int, measure: Callable[[str], int]
) -> None:
    # Backticks and tildes may stand in either, and more are added at cuts.
    kept = re.sub(r"[`~]", "", "".join(re.sub(r"\s", "", part) for part in split(text, limit, measure)))
    wanted = re.sub(r"[`~\s]", "", text)
    position = 0
    for char in wanted:
        position = kept.find(char, position) + 1
        assert position > 0


@given(TEXTS, st.integers(1, 6))
def test_tiny_limits_come_to_an_end(text: str, limit: int) -> None:
    for part in split(text, limit, utf16):
        assert utf16(part) <= max(limit, 2)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=60), st.integers(60, 120))
def test_a_text_that_comes_bit_by_bit_is_cut_as_well(pieces: list[str], limit: int) -> None:
    assume(longest_fence_line("".join(pieces)) < limit / 3)
    parts: list[str] = []
    rest = ""
    for piece in pieces:
        done, rest = advance(rest + piece, limit)
        parts += done
        assert len(closed(rest)) <= limit
    parts += split(rest, limit)
    for part in parts:
        assert part.strip()
        assert len(part) <= limit
        assert not open_fence(part)


@given(TEXTS)
def test_a_text_that_fits_is_left_alone_but_for_an_open_fence(text: str) -> None:
    expected = [text] if text.strip() else []
    if open_fence(text):
        assert split(text, 10_000) == [closed(text)]
    else:
        assert split(text, 10_000) == expected
    assert closed(closed(text)) == closed(text)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("", 10, []),
        (" \n \n", 10, []),
        ("abc", 3, ["abc"]),
        ("one two three", 8, ["one two", "three"]),
        ("one two three", 7, ["one two", "three"]),
        ("x" * 10, 4, ["xxxx", "xxxx", "xx"]),
        ("A first one.\n\nA second one.", 20, ["A first one.", "A second one."]),
        # A paragraph that ends too early is no place to cut.
        ("Hi.\n\nline one\nline two\nline three", 24, ["Hi.\n\nline one\nline two", "line three"]),
        # The indentation of what comes next is kept.
        ("- outer one\n  - inner one\n  - inner two", 26, ["- outer one\n  - inner one", "  - inner two"]),
        ("\n\n\n\n\n\nabc", 4, ["abc"]),
        ("\U0001f600\U0001f600", 1, ["\U0001f600", "\U0001f600"]),
        # An accent stays with its letter.
        ("aaae\u0301b", 4, ["aaa", "e\u0301b"]),
    ],
)
def test_cuts_are_made_where_a_reader_would_make_them(text: str, limit: int, parts: list[str]) -> None:
    assert split(text, limit) == parts


def test_a_code_fence_that_is_cut_is_closed_and_opened_again_with_its_language() -> None:
    text = "```python title=x\n    one = 1\n\n    two = 2\n    three = 3\n```\nThat is all."
    assert split(text, 42) == [
        "```python title=x\n    one = 1\n\n```",
        "```python\n    two = 2\n    three = 3\n```",
        "That is all.",
    ]


def test_a_cut_right_before_the_end_of_a_fence_leaves_no_empty_code_behind() -> None:
    assert split("```\n1234567890\n1234567890\n```\nafter", 29) == ["```\n1234567890\n1234567890\n```", "after"]
    assert split("```\n1234567890\n1234567890\n```\n\nafter", 30) == ["```\n1234567890\n1234567890\n```", "after"]


def test_code_goes_into_the_next_message_rather_than_being_cut_after_its_first_line() -> None:
    text = "Some words before the code, enough of them.\n```sh\nls -l\ncat x\n```"
    assert split(text, 52) == ["Some words before the code, enough of them.", "```sh\nls -l\ncat x\n```"]


def test_a_fence_in_a_list_keeps_its_indentation() -> None:
    parts = split("1. Do this:\n   ```sh\n   first command\n   second command\n   third command\n   ```\n2. Done.", 62)
    assert parts == [
        "1. Do this:\n   ```sh\n   first command\n   second command\n   ```",
        "   ```sh\n   third command\n   ```\n2. Done.",
    ]


def test_a_longer_fence_is_not_closed_by_a_shorter_one_within() -> None:
    text = "````md\n" + "```\ncode\n```\n" * 6 + "````"
    for part in split(text, 40):
        assert part.startswith("````md\n")
        assert part.endswith("\n````")


@pytest.mark.parametrize(
    ("text", "start", "rest"),
    [
        ("one two three", 7, "three"),
        ("one two three", 5, "wo three"),
        ("one\n  two", 3, "  two"),
        ("```py\na\n  b", 7, "```py\n  b"),
        ("```py\na\n  b\n```\nc", 11, "c"),
        ("see\n```py\na", 9, "```py\na"),
        ("all", 3, ""),
    ],
)
def test_a_text_goes_on_from_the_middle(text: str, start: int, rest: str) -> None:
    assert resumed(text, start) == rest


@pytest.mark.parametrize("opening", ["", "```\n"], ids=["text", "code"])
@pytest.mark.parametrize(
    "unit", ["word ", "x", "\n", " ", "```\n", "line\n", "```py\ncode\n```\n", "\U0001f600", "e\u0301"]
)
@pytest.mark.slow
@pytest.mark.no_cover  # it counts the work that it makes, which is a lot
def test_the_work_grows_with_the_text_and_not_with_its_square(unit: str, opening: str) -> None:
    def measured(size: int) -> int:
        """How many characters were measured on the way."""
        count = 0

        def measure(text: str) -> int:
            nonlocal count
            count += len(text)
            return utf16(text)

        split(opening + unit * (size // len(unit)), 4096, measure)
        return count

    # Sixteen times the text: a square would be 256 times the work.
    assert measured(800_000) <= 20 * measured(50_000)
