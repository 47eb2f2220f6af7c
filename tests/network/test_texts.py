"""Texts as JavaScript measures and trims them."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.base.asgi_answers import Refused
from trunkline.network.texts import cut16, iso, limited, text, utf16_length


def test_what_is_not_a_text_becomes_one_as_in_javascript() -> None:
    nothing: tuple[Any, ...] = (None, False, 0, 0.0, "", [], {})
    assert {text(value) for value in nothing} == {""}
    assert [text(value) for value in (True, 1.0, 1e21, -0.5, 12)] == ["true", "1", "1e+21", "-0.5", "12"]
    for value in ([1], {"a": 1}):
        with pytest.raises(Refused, match="A text was expected"):
            text(value)


def test_white_space_is_what_javascript_trims_and_no_more() -> None:
    assert text("\ufeff\u2003 a b \u2028\n") == "a b"
    assert text("\x1ca\x85") == "\x1ca\x85"


def test_texts_that_cannot_be_kept_are_refused() -> None:
    for value in ("a\0b", "a\ud800b", "\udc00"):
        with pytest.raises(Refused) as refused:
            text(value)
        assert refused.value.status == 400


def test_lengths_count_utf16_units_and_a_cut_leaves_no_half_character() -> None:
    assert utf16_length("a🎉é") == 4
    limited("title", "🎉🎉", 4)
    with pytest.raises(Refused, match=r"^title must be 3 characters or fewer$"):
        limited("title", "🎉🎉", 3)
    assert cut16("a🎉b", 2) == "a"
    assert cut16("a🎉b", 3) == "a🎉"
    assert cut16("ab", 2) == "ab"


def test_moments_have_milliseconds() -> None:
    assert iso(1_771_400_000_007) == "2026-02-18T07:33:20.007Z"
