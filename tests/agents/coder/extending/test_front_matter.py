"""Front matter as people write it, and what is wrong with some of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.agents.coder.extending.front_matter import read


def matter(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "the text"])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("key: plain words", "plain words"),
        ("key: Use this: always, even here # not this", "Use this: always, even here"),
        ("key: no#comment", "no#comment"),
        ("key: 'it''s'", "it's"),
        (r'key: "a \"b\" \\ c"', r'a "b" \ c'),
        ("key:", ""),
        ("key: # nothing", ""),
        ("KEY: x", "x"),
        ("key: >-\n  folded\n  text", "folded text"),
        ("key: |\n  kept\n    as it is\n  here", "kept\n  as it is\nhere"),
        ("key:\n  begins\n  later", "begins later"),
        ("key: goes\n  on", "goes on"),
        ('key: "quoted\n  twice"', "quoted twice"),
        ("key: [a, 'b, c', d]", "a, b, c, d"),
        ("key:\n  - a\n  - b", "a, b"),
        ("key:\n- a\n- b", "a, b"),
        ("key:\n  nested: x\n  more: y", ""),
        ("key: {nested: x}", ""),
    ],
)
def test_a_value_is_read_as_it_is_meant(line: str, value: str) -> None:
    found = read(matter("first: 1", line, "last: 2"))
    assert not found.problem
    assert found.text("key") == value
    assert (found.text("first"), found.text("last"), found.body) == ("1", "2", "the text")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("key: Read, Grep", ("Read", "Grep")),
        ("key: Bash(git add:*) Bash(jq, -r) Read", ("Bash(git add:*)", "Bash(jq, -r)", "Read")),
        ("key: [Bash(git add:*, x), Read]", ("Bash(git add:*, x)", "Read")),
        ("key:\n  - Bash(git add:*)\n  - 'Read'", ("Bash(git add:*)", "Read")),
        ("key:", ()),
        ("other: x", ()),
    ],
)
def test_a_list_of_rules_may_be_written_in_any_way(line: str, words: tuple[str, ...]) -> None:
    assert read(matter(line)).words("key") == words


@pytest.mark.parametrize("written", ["when_to_use", "when-to-use", "When_To-Use"])
def test_a_key_is_the_same_with_underscores_and_with_hyphens(written: str) -> None:
    assert read(matter(f"{written}: always")).text("when-to-use") == "always"


@pytest.mark.parametrize(("value", "yes"), [("true", True), ("Yes", True), ("on", True), ("false", False), ("", False)])
def test_yes_is_said_as_in_yaml(value: str, yes: bool) -> None:
    assert read(matter(f"key: {value}")).yes("key") is yes


@pytest.mark.parametrize(
    "line",
    [
        "key: [a, b",
        'key: "open',
        "key: 'open",
        "key: {a: b",
        "no key at all",
        ": : :",
        "key: x\nkey: y",
        "- a\n- b",
        'key: "a" b',
    ],
)
def test_what_cannot_be_read_is_told_without_quoting_it(line: str) -> None:
    found = read(matter(line))
    assert found.problem
    assert not found.values
    assert "open" not in found.problem
    assert "no key at all" not in found.problem


def test_a_front_matter_without_an_end_is_a_problem_and_a_text_without_one_is_none() -> None:
    assert "no end" in read("---\nname: x\n").problem
    plain = read("# A text\n---\nname: x\n---\n")
    assert (plain.given, plain.problem, plain.body) == (False, "", "# A text\n---\nname: x\n---\n")


@pytest.mark.parametrize(
    "text", ['key: "' + "a\n" * 40_000, "key: [" + "a,\n" * 25_000, "key: " + "('" * 40_000, "key: " + "' a," * 20_000]
)
def test_no_file_takes_long(text: str) -> None:
    began = time.process_time()
    read(matter(text)).words("key")
    # A tenth of a second, and many minutes for one that looks at everything again with each line.
    assert time.process_time() - began < 10


@given(st.text(st.sampled_from("-:'\"[]{}|>#ab \n\t\\,()")))
def test_nothing_makes_it_fail(text: str) -> None:
    found = read(f"---\n{text}")
    assert isinstance(found.words("a"), tuple)
    assert isinstance(found.yes("b"), bool)
