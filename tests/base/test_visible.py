"""Nothing in a text about which somebody decides is unseen."""

from __future__ import annotations

from time import process_time

import pytest

from trunkline.base.visible import LONGEST_BLANK, drawn, unseen, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("touch pwned; : \rls -la", "touch pwned; : <U+000D>ls -la"),
        ("a\x1b]0;title\x07b", "a<U+001B>]0;title<U+0007>b"),
        ("a\x00\x7f\x9b2Jb", "a<U+0000><U+007F><U+009B>2Jb"),
        ("ls \u202egnp.exe\u2066", "ls <U+202E>gnp.exe<U+2066>"),
        ("a\u200b\u200d\u2060\ufeffb", "a<U+200B><U+200D><U+2060><U+FEFF>b"),
        ("a\u2028b\u2029c\x85d\x0be", "a<U+2028>b<U+2029>c<U+0085>d<U+000B>e"),
        ("rm\u00a0-rf\u2003/", "rm<U+00A0>-rf<U+2003>/"),
        ("a\u3164b\u115fc\u2800d\u034fe", "a<U+3164>b<U+115F>c<U+2800>d<U+034F>e"),
        ("a\U000e0041\U000e0100\ufe00", "a<U+E0041><U+E0100><U+FE00>"),
        ("rm\u0336 \u0338x \u0489 e\u20dd", "rm<U+0336> <U+0338>x <U+0489> e<U+20DD>"),
        ("a\U0001d159b\U00016fe4c\ufffcd", "a<U+1D159>b<U+16FE4>c<U+FFFC>d"),
        ("half \ud800", "half <U+D800>"),
        ("private \ue000 \U0010ffff", "private <U+E000> <U+10FFFF>"),
    ],
)
def test_what_would_not_be_seen_is_shown_by_its_number(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert unseen(text) == shown.count("<U+")


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines\tand a tab",
        "größer 会话 שלום مرحبا",
        "全角\u3000空白",
        "⚠\ufe0f ❤\ufe0f",
        "<U+000D>",
        "e\u0301 ж\u0306",
    ],
)
def test_what_is_seen_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert unseen(text) == 0


def test_in_one_line_the_line_feed_is_shown_too() -> None:
    assert visible("a\nb\tc", keep="") == "a<U+000A>b<U+0009>c"


def test_nothing_is_pushed_out_of_sight_by_blanks() -> None:
    assert visible("ls" + " " * 300 + "; rm -rf ~") == "ls<U+0020 x 300>; rm -rf ~"
    assert visible("ls" + "\n" * 300 + "rm -rf ~") == "ls<U+000A x 300>rm -rf ~"
    assert visible("ls" + " \t" * 700 + "; rm -rf ~") == "ls<blanks x 1400>; rm -rf ~"
    assert visible("ls" + "\u3000" * 1400 + "; rm -rf ~") == "ls<U+3000 x 1400>; rm -rf ~"
    assert visible("ls" + " \n\t\n" * 300 + "rm -rf ~") == "ls<blanks x 1200>rm -rf ~"
    indented = " " * LONGEST_BLANK + "deep"
    assert visible(indented) == indented


def test_blanks_that_are_just_not_too_many_take_no_longer_than_other_text() -> None:
    lines = (" " * (LONGEST_BLANK - 1) + "\n") * LONGEST_BLANK + "x"
    text = lines * 150
    began = process_time()
    assert visible(text) == text
    # It took two seconds when each character was a place to begin at, and 20 ms since.
    assert process_time() - began < 1.0


def test_what_is_drawn_is_left_of_a_text() -> None:
    assert drawn("a\u200bb\ufe0f\x00c\u00a0d\u3164e\n") == "abc d e "
    assert drawn("plain text") == "plain text"
