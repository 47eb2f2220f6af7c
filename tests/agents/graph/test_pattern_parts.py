"""How large a pattern becomes, told before it does."""

from __future__ import annotations

import random
from sys import getsizeof

import pytest
import regex

from trunkline.agents.graph.pattern_parts import count_parts, unfit
from trunkline.agents.graph.patterns import MAX_PARTS, PatternBook, PatternError

#: Bytes that the engine says it takes for one part, at the most, and for a pattern without any.
PART, NONE = 200, 1000

ATOMS = (
    "a",
    "ab",
    ".",
    r"\w",
    "[a-z]",
    "[]a(]",
    r"\)",
    "(?#c)",
    r"(?#\)",
    r"(?#\)([)])",
    "(?i)",
    "[[:alpha:])]",
    "é",
    r"\X",
    r"\R",
    "|",
    "^",
)
GROUPS = ("(?:", "(", "(?>", "(?=", "(?i:", "(?|", "(?x:# )\n", "(?x)(?:", "(?i-x:")
REPEATS = (
    "",
    "",
    "",
    "+",
    "*",
    "?",
    "{2}",
    "{3,}",
    "{,3}",
    "{1,2}",
    "+?",
    "{2}+",
    "{12}",
    "(?#)+",
    "(?s){3}",
    "{ 2 }",
    "{ 12 }",
)


def drawn(chance: random.Random, depth: int) -> str:
    """A pattern, or something like one."""
    parts = []
    for _ in range(chance.randint(1, 3)):
        inner = depth and chance.random() < 0.7
        one = f"{chance.choice(GROUPS)}{drawn(chance, depth - 1)})" if inner else chance.choice(ATOMS)
        parts.append(one + chance.choice(REPEATS))
    return "".join(parts)


def test_no_pattern_becomes_larger_than_was_told() -> None:
    chance = random.Random(7)  # the same patterns each time
    compiled = 0
    for _ in range(4000):
        line = drawn(chance, chance.randint(0, 5))
        parts = count_parts(line)
        if unfit(line) or parts > MAX_PARTS:
            continue
        try:
            pattern = regex.compile(line, regex.IGNORECASE | regex.VERSION0, cache_pattern=False)
        except regex.error:
            continue
        compiled += 1
        assert getsizeof(pattern) <= NONE + PART * parts, line
    assert compiled > 500


@pytest.mark.parametrize(
    "line",
    [
        "(?:" * 26 + "a" + ")+" * 26,
        "(?:" * 10 + "a" + "){2}" * 10,
        "(?:(a|b){50}){50}",
        "(?:a{200})(?i){200}",
        r"\X{9999}",
        "a{10000}",
        "a{999999999999999999999}",
    ],
)
def test_a_short_pattern_that_becomes_gigabytes_is_refused(line: str) -> None:
    # Not to be tried on a machine that is needed.
    assert count_parts(line) > MAX_PARTS
    with pytest.raises(PatternError, match="too many repetitions"):
        PatternBook().compile([line])


@pytest.mark.parametrize(
    "line",
    [
        "|".join(f"(word{number})+" for number in range(100)),
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
        "[[:alpha:]]+ [[:digit:]]+ " * 10,
        r"(?:[a-z0-9]+(?:\.[a-z0-9]+)*@(?:[a-z]+\.)+[a-z]{2,})+",
        r"\[(?:\+|\)|\{2\})+" * 20,
        r"f\(?x\)? \(?# \(?R [?#x]",
        r"(?P<x>a)(?P=x)(?i-m:b)(?<!x)",
    ],
)
def test_what_people_write_is_fine(line: str) -> None:
    assert PatternBook().compile([line])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        # Each of the first three would become gigabytes, and looks as if it did not.
        ("(?x)(?:(?:(?:[ab]{ 400 }){ 400 }){ 40 })", "flag `x`"),
        (r"(?:(?:a{60}(?#\)([)]){60}(?#\)(?#\)([)]){60}(?#\))", "remarks"),
        ("(?:a{200})(?#remark){200}", "remarks"),
        ("(?i-x:a)", "flag `x`"),
        ("a(?V1ix)b", "flag `x`"),
        (r"\\(?x:a)", "flag `x`"),
        *((f"(?P<a>b{call}?)", "within themselves") for call in ("(?R)", "(?1)", "(?-1)", "(?+1)")),
        *((f"(?P<a>b{call}?)", "within themselves") for call in ("(?&a)", "(?P>a)", "(?P&a)")),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_sentence(line: str, problem: str) -> None:
    with pytest.raises(PatternError, match=problem):
        PatternBook().compile([line])
    # Nor does it slip through where more is to be looked at than the loop looks at.
    with pytest.raises(PatternError, match=problem):
        PatternBook().compile(["a" * 1025, line])


def test_a_pattern_for_which_there_is_no_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(regex, "compile", full)
    with pytest.raises(PatternError, match="MemoryError"):
        PatternBook().compile(["a"])
