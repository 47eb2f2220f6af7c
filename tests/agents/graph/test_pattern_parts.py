"""How large a pattern becomes, told before it does."""

from __future__ import annotations

import random
from sys import getsizeof

import pytest
import regex

from trunkline.agents.graph.pattern_parts import count_parts
from trunkline.agents.graph.patterns import MAX_PARTS, PatternBook, PatternError

#: Bytes that the engine says it takes for one part, at the most, and for a pattern without any.
PART, NONE = 200, 700

ATOMS = ("a", "ab", ".", r"\w", "[a-z]", "[]a(]", r"\)", "(?#c)", "(?i)", "[[:alpha:])]", "é", r"\X", r"\R", "|", "^")
GROUPS = ("(?:", "(", "(?>", "(?=", "(?i:", "(?|", "(?x:# )\n")
REPEATS = ("", "", "", "+", "*", "?", "{2}", "{3,}", "{,3}", "{1,2}", "+?", "{2}+", "{12}", "(?#)+", "(?s){3}")


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
    for _ in range(3000):
        line = drawn(chance, chance.randint(0, 5))
        parts = count_parts(line)
        if parts > MAX_PARTS:
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
        "(?:a{200})(?#remark){200}",
        "(?:a{200})(?i){200}",
        "(?x)(?: (?:ab # )\n ){200} ){200}",
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
        "(?x) a+ b+ # some\n c+ d+",
        r"\[(?:\+|\)|\{2\})+" * 20,
    ],
)
def test_what_people_write_is_fine(line: str) -> None:
    assert PatternBook().compile([line])
