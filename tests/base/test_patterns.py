"""Patterns for names and paths."""

from __future__ import annotations

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.patterns import BadPattern, expand_braces, match_beginnings, match_path, name_regex, segments


def matches(pattern: str, name: str) -> bool:
    return re.fullmatch(name_regex(pattern), name) is not None


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py", "a\nb.py"], ["a.pyc", "py"]),
        ("a*b*c", ["abc", "axxbyyc", "abcbc"], ["ab", "acb", "abcd"]),
        ("?", ["a", "ä", "\n"], ["", "ab"]),
        ("[abc]", ["a", "c"], ["d", "ab", ""]),
        ("[a-c]x", ["ax", "bx"], ["dx"]),
        ("[!a-c]", ["d", "-"], ["a", "b"]),
        ("[^a]", ["b"], ["a"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[!]a]", ["b"], ["]", "a"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[z-a]", [], ["a", "z", "-"]),
        ("[[:digit:]x]", ["5", "x"], ["a"]),
        ("[![:space:]]", ["a"], [" ", "\t"]),
        ("[a&&b]", ["a", "&", "b"], ["c"]),
        (r"[\]]", ["]"], ["\\"]),
        (r"\*", ["*"], ["a", "\\*"]),
        (r"\[a\]", ["[a]"], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("**", ["", "abc"], []),
        ("a**b", ["ab", "axb"], ["a"]),
        ("", [""], ["a"]),
    ],
)
def test_a_name_matches_as_in_a_shell(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [name for name in yes if not matches(pattern, name)] == []
    assert [name for name in no if matches(pattern, name)] == []


@pytest.mark.parametrize("pattern", ["[a", "[", "[!", "[]", "a\\", "[a\\"])
def test_what_is_not_complete_has_no_meaning(pattern: str) -> None:
    with pytest.raises(BadPattern):
        name_regex(pattern)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_stars_and_question_marks_are_those_of_the_standard_library(pattern: str, name: str) -> None:
    assert matches(pattern, name) == fnmatch.fnmatchcase(name, pattern)


def test_no_pattern_takes_long() -> None:
    started = time.process_time()
    assert not matches("*a" * 60 + "b", "a" * 255)
    assert not match_path(segments("**/a/" * 30 + "b"), ["a"] * 300)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a/b", ["a/b"], ["a", "a/b/c", "x/a/b"]),
        ("**/b", ["b", "a/b", "a/a/b"], ["b/a", "ab"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a", "ab", "a/b/c"]),
        ("**/a/**/b", ["a/b", "x/a/y/a/b"], ["b", "b/a"]),
        ("a/**/**/b", ["a/b", "a/x/b"], []),
        ("**", ["a", "a/b"], []),
        ("*/b", ["a/b"], ["b", "a/a/b"]),
        ("**/*", ["a", "a/b"], []),
    ],
)
def test_a_path_matches_name_by_name(pattern: str, yes: list[str], no: list[str]) -> None:
    parts = segments(pattern)
    assert [path for path in yes if not match_path(parts, path.split("/"))] == []
    assert [path for path in no if match_path(parts, path.split("/"))] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", ["a"]),
        ("a.{b,c}", ["a.b", "a.c"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("x{a,b{1,2}}y", ["xay", "xb1y", "xb2y"]),
        ("{a}", ["{a}"]),
        ("{a,", ["{a,"]),
        ("a,b}", ["a,b}"]),
        (r"\{a,b\}", [r"\{a,b\}"]),
        ("{,x}a", ["a", "xa"]),
        ("{a{b,c}}", ["{ab}", "{ac}"]),
    ],
)
def test_braces_stand_for_each_of_their_parts(pattern: str, expected: list[str]) -> None:
    assert expand_braces(pattern) == expected


def test_braces_that_stand_for_too_much_are_refused_at_once() -> None:
    with pytest.raises(BadPattern, match="fewer braces"):
        expand_braces("{a,b}" * 60)
    for pattern in ("{a,b}" * 10_000, "{a,b}" * 8 + "c" * 1_000, "{" * 70_000):
        with pytest.raises(BadPattern, match="fewer braces"):
            expand_braces(pattern)
    assert expand_braces("{a," * 5_000) == ["{a," * 5_000]


@pytest.mark.parametrize("pattern", ["a", "**", "**/a", "a/**", "a/**/b", "*/*", "**/a/**", "**/a/*/b"])
@given(names=st.lists(st.sampled_from("abc"), max_size=6))
def test_the_beginnings_of_a_path_that_match_are_found_in_one_pass(pattern: str, names: list[str]) -> None:
    read = segments(pattern)
    each = [count for count in range(len(names) + 1) if match_path(read, names[:count])]
    assert list(match_beginnings(read, names)) == each
