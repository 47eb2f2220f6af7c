"""Markdown as rows of a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.chat.delivery.splitting import closed
from trunkline.chat.terminal.text import INDENT, LONGEST_MARKED, GrowingText, cells, changes, clean

STYLES = re.compile("\x1b\\[[0-9;]*m")


def rows(text: str, width: int = 40) -> list[str]:
    return GrowingText().grow(text, width)[1]


def plain(text: str, width: int = 40) -> list[str]:
    return [STYLES.sub("", row).removeprefix(INDENT) for row in rows(text, width)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**Error**: no", "  \x1b[1mError\x1b[0m: no"),
        ("say `a**b**`", "  say \x1b[36ma**b**\x1b[0m"),
        ("_Used: `shell` x2_", "  \x1b[3mUsed: \x1b[0m\x1b[3;36mshell\x1b[0m\x1b[3m x2\x1b[0m"),
        ("## Title", "  \x1b[1mTitle\x1b[0m"),
        ("2 * 3 ** 4, a_b_c, __init__, `open", "  2 * 3 ** 4, a_b_c, __init__, `open"),
        ("", ""),
    ],
)
def test_marks_are_styles_and_what_is_no_mark_stays(text: str, shown: str) -> None:
    assert rows(text) == [shown]


def test_lines_are_broken_between_words_and_items_hang_below_themselves() -> None:
    assert plain("one two three four five", 20) == ["one two three four", "five"]
    assert plain("- one two three four five", 20) == ["- one two three", "  four five"]
    assert plain("x" * 50, 30) == ["x" * 28, "x" * 22]
    assert plain("你好" * 10, 22) == ["你好" * 5, "你好" * 5]


def test_code_keeps_its_spaces_and_its_marks_and_loses_its_fence() -> None:
    assert plain("```py\n  a  **b**\n```\nend") == ["    a  **b**", "end"]
    assert plain("```\n" + "x " * 20 + "\n```", 24)[0] == "  " + "x " * 9 + "x"


def test_nothing_that_a_terminal_obeys_is_left() -> None:
    assert clean("a\x1b]0;title\x07b\x1b[31mc\x9b2Jd\re\x00") == "abc2Jde"
    assert clean("a\u202eb\u2067c\u200f\u05e9") == "abc\u05e9"
    assert plain("a\tb\x1b[2Jc") == ["a   bc"]


def test_thousands_of_marks_do_not_keep_us_busy() -> None:
    text = "`**" * LONGEST_MARKED
    assert "".join(plain(text)) == text


@given(st.text(), st.integers(20, 60))
def test_no_row_is_wider_than_the_terminal_or_does_anything_but_style(text: str, width: int) -> None:
    for row in plain(text, width):
        assert sum(map(cells, row)) <= width - len(INDENT)
        assert row == clean(row)


pieces = st.lists(
    st.sampled_from(["a ", "word", " ", "\n", "\n\n", "```", "\n```\n", "**", "`", "- ", "_", "# ", "ü你"])
)


@given(pieces)
def test_a_text_that_grows_looks_in_the_end_as_if_it_had_come_at_once(pieces: list[str]) -> None:
    page, screen, text = GrowingText(), list[str](), ""
    for piece in pieces:
        text += piece
        shown = closed(text)
        if not page.goes_on(shown):
            # Three backticks that became four, say: that is a changed text.
            return
        gone, new = page.grow(shown, 30)
        screen = [*screen[: len(screen) - gone], *new]
    assert screen == (rows(closed(text), 30) if pieces else [])


def test_only_what_changes_is_written_again() -> None:
    page = GrowingText()
    page.grow("one\ntwo three", 20)
    assert page.grow("one\ntwo three four five", 20) == (1, ["  two three four", "  five"])
    assert page.grow("one\ntwo three four five\n\nsix", 20) == (0, ["", "  six"])


def test_a_code_block_that_is_shown_as_closed_goes_on() -> None:
    page = GrowingText()
    page.grow("```py\nprin\n```", 40)
    assert page.goes_on("```py\nprint(1)\n```")
    assert page.grow("```py\nprint(1)\n```", 40) == (1, ["    \x1b[36mprint(1)\x1b[0m"])


def test_a_text_begins_where_its_words_do() -> None:
    assert plain("\n\n  - one") == ["  - one"]


def test_what_comes_after_something_else_was_put_below_stands_by_itself() -> None:
    page = GrowingText()
    page.grow("```\none\n```", 40)
    page.part()
    assert page.grow("```\none\ntwo\n```\nend", 40) == (0, ["    \x1b[36mtwo\x1b[0m", "  end"])


def test_the_changes_of_a_text_are_its_new_lines() -> None:
    assert changes("**Approval 7**: asks\nls\n/approve", "**Approval 7**\nls\nDenied.") == "**Approval 7**\nDenied."
