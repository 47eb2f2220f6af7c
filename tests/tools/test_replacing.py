"""Finding and replacing text, whatever the line endings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.tools.replacing import NoReplacement, find_replacements, replaced

# (file, old, new, what becomes of it)
ONCE = [
    ("a b c", "b", "x", "a x c"),
    ("one\ntwo\n", "one\ntwo", "1\n2", "1\n2\n"),
    ("one\r\ntwo\r\n", "one\ntwo", "1\n2", "1\r\n2\r\n"),
    ("one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", "1\r\n2\r\n"),
    ("one\ntwo\n", "one\r\ntwo", "1\r\n2", "1\n2\n"),
    ("one\r\ntwo\r\n", "one", "1\n1b", "1\r\n1b\r\ntwo\r\n"),
    ("one\r\ntwo", "two", "2\n3", "one\r\n2\r\n3"),
    ("only", "only", "a\r\nb", "a\r\nb"),
    ("x\ny\r\nz", "y", "1\n2", "x\n1\r\n2\r\nz"),
    ("x\ny\nz\r\n", "y", "1\n2", "x\n1\n2\nz\r\n"),
    ("a\r\nb\nc\r\n", "a\nb\nc", "1\n2", "1\r\n2\r\n"),
    ("a.b\naxb\n", "a.b\n", "1\n", "1\naxb\n"),
    ("a\n\nb\n", "a\n\nb", "a\nb", "a\nb\n"),
    ("a", "a", "", ""),
    ("caf\udce9 one", "one", "two", "caf\udce9 two"),
]


@pytest.mark.parametrize(("text", "old", "new", "expected"), ONCE)
def test_one_place_is_replaced_and_the_lines_keep_their_endings(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, find_replacements(text, old, new, every=False)) == expected


def test_every_place_is_replaced_each_with_its_own_ending() -> None:
    text = "a\nb\n-\na\r\nb\r\n"
    changes = find_replacements(text, "a\nb", "1\n2", every=True)
    assert len(changes) == 2
    assert replaced(text, changes) == "1\n2\n-\n1\r\n2\r\n"


def test_places_do_not_overlap() -> None:
    assert replaced("aaaaa", find_replacements("aaaaa", "aa", "b", every=True)) == "bba"


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        ("abc", "x", "y", "old_string not found in file"),
        ("a a a", "a", "b", r"Multiple matches found \(3\)\. Use replace_all or provide more context\."),
        ("a\nb\n-\na\r\nb\r\n", "a\nb", "x", "Ambiguous line-ending match: "),
        ("a", "a", "a", "the same"),
        ("a\nb", "a\nb", "a\r\nb", "the same"),
        ("caf\udce9", "café", "x", "not UTF-8"),
    ],
)
def test_what_cannot_be_replaced_is_explained(text: str, old: str, new: str, problem: str) -> None:
    with pytest.raises(NoReplacement, match=problem):
        find_replacements(text, old, new, every=False)


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("xy\n", max_size=3))
def test_without_carriage_returns_it_is_what_everybody_expects(text: str, old: str, new: str) -> None:
    if old in text and old != new:
        assert replaced(text, find_replacements(text, old, new, every=True)) == text.replace(old, new)
