"""Session ids as names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.event_strategies import texts
from trunkline.core.faults import ConfigError
from trunkline.store import names


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("a-plain_id.7", "a-plain_id.7"),
        ("Ab/../é", "%41b%2f..%2f%c3%a9"),
        (".hidden", "%2ehidden"),
        ("..", "%2e."),
        ("nul\0", "nul%00"),
        ("%41", "%2541"),
        ("\ud800", "%ed%a0%80"),
    ],
)
def test_a_name_shows_as_much_of_the_id_as_is_safe(session: str, name: str) -> None:
    assert names.file_name(session) == name


@pytest.mark.parametrize("length", [199, 200, 201, 202, 10_000])
def test_long_ids_are_cut_and_hashed_and_stay_apart(length: int) -> None:
    first, second = names.file_name("x" * length), names.file_name("x" * (length - 1) + "y")
    assert first != second
    assert ("~" in first) == (length > names.LONGEST_NAME)
    assert len(first) <= names.LONGEST_NAME


def test_an_id_that_only_grows_long_by_encoding_is_cut_too() -> None:
    assert names.file_name("É" * 33).count("%") == 66
    assert "~" in names.file_name("É" * 34)


def test_an_id_that_looks_like_a_cut_name_has_another_name() -> None:
    cut = names.file_name("x" * 300)
    assert names.file_name(cut) != cut


@given(st.one_of(texts, st.text(), st.text("./\0A", max_size=300)).filter(bool))
def test_a_name_is_never_a_path_never_hidden_and_plain(session: str) -> None:
    name = names.file_name(session)
    assert 0 < len(name) <= names.LONGEST_NAME
    assert not name.startswith(".")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.%~")


def test_an_empty_id_has_no_name() -> None:
    with pytest.raises(ConfigError, match=r"must not be empty\. Leave it out"):
        names.file_name("")


def test_a_long_id_is_cut_in_error_texts() -> None:
    assert names.shown("short") == "short"
    assert names.shown("x" * 10_000) == "x" * 200 + "..."
