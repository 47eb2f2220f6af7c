"""The one reader of documents: places, limits, and what it says of what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base import document, document_yaml
from trunkline.base.document import DocumentError, Part


def parsed(text: str, name: str = "a.yaml", *, as_written: bool = False) -> Part:
    return document.parse(text.encode(), name, "the file", as_written=as_written)


def complaint(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        parsed(text)
    return str(caught.value)


TEXT = "name: a\nlist:\n  - one\n  - {inner: 2, other: [x]}\n"
PLACES = {
    (): (1, 1),
    ("name",): (1, 1),
    ("list",): (2, 1),
    ("list", 0): (3, 5),
    ("list", 1): (4, 5),
    ("list", 1, "inner"): (4, 6),
    ("list", 1, "other", 0): (4, 24),
}


@pytest.mark.parametrize(("path", "place"), PLACES.items(), ids=map(str, PLACES))
def test_every_value_knows_where_it_stands(path: tuple[str | int, ...], place: tuple[int, int]) -> None:
    error = parsed(TEXT).at(*path).wrong("is wrong.")
    assert (error.line, error.column, error.path) == (*place, path)
    assert str(error).startswith(f"a.yaml:{place[0]}:{place[1]}: ")


def test_json_says_where_too_and_is_read_as_json() -> None:
    root = parsed('{"n": 1e3,\n "m": {"k": [true]}}', "a.json")
    assert root.value == {"n": 1000.0, "m": {"k": [True]}}
    assert str(root.at("m", "k", 0).wrong("is wrong.")) == "a.json:2:14: `m.k[0]` is wrong."


def test_json_whose_places_cannot_be_found_still_says_which_key() -> None:
    assert str(parsed('{\n\t"a":\t{\t"b": 1}}', "a.json").at("a", "b").wrong("is wrong.")).endswith("`a.b` is wrong.")


def test_an_unknown_key_is_told_with_what_was_probably_meant() -> None:
    (error,) = parsed("list: {inr: 2}").at("list").wrong_keys(("inner", "outer"))
    assert str(error) == "a.yaml:1:8: unknown key `inr` in `list`. Did you mean `inner`?"
    assert error.hint == "Did you mean `inner`?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2", "a.yaml:2:1: the file has the key `a` twice. It is in line 1 already."),
        ("b: {<<: {}}", "a.yaml:1:5: `b` merges another mapping"),
        ("a: [" * 300, f"is nested deeper than {document_yaml.MAX_DEPTH} levels."),
        ("a: .nan", "a.yaml:1:4: `a` must be a finite number."),
        ("a: !!int x", "a.yaml:1:4: `a` has a value or a tag that is not known here"),
        ("a: *b", "a.yaml:1:4: `a` is the alias `*b`, which is not known here."),
        ("- &a x\n" + "- *a\n" * document_yaml.MAX_VALUES, "the file holds more than 100000 values"),
        ("#" * (document.MAX_BYTES + 1), "a.yaml: the file is larger than"),
    ],
)
def test_what_grows_without_end_or_can_be_read_two_ways_is_refused(text: str, problem: str) -> None:
    assert problem in complaint(text)


def test_what_is_taken_as_written_need_not_be_json() -> None:
    root = parsed("a: .nan\nb: 0x10\nc: !own x", as_written=True)
    assert [root.at(key).as_text for key in "abc"] == [".nan", "0x10", "x"]
    assert root.at("b").written("") == "0x10"
    with pytest.raises(DocumentError, match=r"a\.yaml:3:1: `c` must be a string, not a tagged value\."):
        root.at("c").written("")


@given(st.text("ab:-[]{}#&*!|>'\"%@` \n\t,?<", max_size=60))
def test_whatever_the_text_it_is_read_or_refused_with_its_file(text: str) -> None:
    try:
        list(parsed(text).walk())
    except DocumentError as error:
        told = str(error)
    else:
        told = "a.yaml"
    assert told.startswith("a.yaml")
