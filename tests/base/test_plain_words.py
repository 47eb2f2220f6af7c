"""Texts become plain words, and what was looked for is found in them again."""

from __future__ import annotations

import pytest

from trunkline.base.plain_words import MAX_QUERY, MAX_TERMS, phrases, places_of, plain_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World_2!", ["hello", "world", "2"]),
        ("Crème brûlée", ["creme", "brulee"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("東京へ", ["東", "京", "へ"]),
        ("\0*\"'()^", []),
        ("😀", []),
    ],
)
def test_words_have_no_accents_case_or_signs(text: str, words: list[str]) -> None:
    assert plain_words(text) == words


def test_a_query_is_cut_to_what_can_be_looked_for() -> None:
    assert phrases('NEAR("a.b", *) ^') == [["near", "a", "b"]]
    assert phrases("--- !!") == []
    assert len(phrases("a " * 1000)) == MAX_TERMS
    assert phrases("x" * 10_000) == [["x" * MAX_QUERY]]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("rep", "All REPLICAS; no trep, rep_", ["REP", "rep"]),
        ("creme", "une crème", ["crème"]),
        ("京", "東京へ", ["京"]),
        ("a.b", "b then a", ["b", "a"]),
        ("nothing", "of that", []),
        ("!", "of! that", []),
        (".*", "of that", []),
    ],
)
def test_what_was_looked_for_is_found_in_the_text_as_it_was_written(query: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in places_of(phrases(query), text, 10)] == found


def test_no_more_places_are_given_than_are_wanted() -> None:
    assert places_of(phrases("a"), "a a a", 2) == [(0, 1), (2, 3)]
