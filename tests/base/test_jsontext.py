"""JSON text in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.event_strategies import json_values, paired, texts
from trunkline.base import jsontext
from trunkline.base.jsontext import MAX_DEPTH


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    data = jsontext.dumps(value)
    assert b"\n" not in data
    assert jsontext.loads(data) == value
    assert json.loads(data) == value


@given(st.lists(texts).map("".join).map(paired))
@example("\ud800")
@example("\\\ud800")
@example('"\udfff\0\n\u2028')
def test_a_text_in_ascii_alone_is_the_same_text(text: str) -> None:
    assert jsontext.loads(jsontext.quote_ascii(text).encode()) == text


def test_texts_stay_readable_unless_they_hold_lone_surrogates() -> None:
    assert jsontext.dumps({"a": "é\U0001f600"}) == '{"a":"é\U0001f600"}'.encode()
    assert jsontext.dumps(["é", "\ud800"]) == b'["\\u00e9","\\ud800"]'


def test_lone_surrogates_are_carried() -> None:
    assert jsontext.loads(b'"\\ud800x\\udc00"') == "\ud800x\udc00"


@pytest.mark.parametrize("text", [b"NaN", b"[Infinity]", b'{"a":-Infinity}'])
def test_constants_that_are_not_json_are_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="is not JSON"):
        jsontext.loads(text)


@pytest.mark.parametrize("text", [b"1e400", b"-1e400", b"[1.5e999999]"])
def test_numbers_beyond_double_range_are_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="too large"):
        jsontext.loads(text)


def test_a_number_with_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="digits"):
        jsontext.loads(b"1" * 5000)


def test_numbers_that_json_cannot_say_become_null() -> None:
    value = {"a": [float("nan"), 1.5, (float("inf"),)], "b": float("-inf")}
    assert jsontext.dumps(value) == b'{"a":[null,1.5,[null]],"b":null}'


@pytest.mark.parametrize("value", [object(), {1, 2}, {"a": b"bytes"}, {(1, 2): 3}])
def test_what_is_not_json_cannot_be_written(value: Any) -> None:
    with pytest.raises(TypeError):
        jsontext.dumps(value)


@pytest.mark.parametrize("text", [nested(MAX_DEPTH), b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH])
def test_a_text_may_be_as_deep_as_the_limit(text: bytes) -> None:
    jsontext.loads(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
@pytest.mark.parametrize("parts", [(b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")])
def test_a_deeper_text_is_refused_and_costs_no_stack(depth: int, parts: tuple[bytes, bytes]) -> None:
    inner = b"1" if parts[0].startswith(b"{") else b""
    with pytest.raises(ValueError, match=r"nested deeper than 200 levels|Expecting"):
        jsontext.loads(parts[0] * depth + inner + parts[1] * depth)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(jsontext.loads(b"[" + b",".join([b"[]"] * 1000) + b"]")) == 1000
    assert jsontext.loads(b'"' + b"[" * 1000 + b'"') == "[" * 1000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'"\xff"', "invalid UTF-8 at byte 1"),
        (b"", "Expecting"),
        (b"{", "Expecting"),
        (b"1 2", "Extra data"),
        (b"\0", "Expecting"),
    ],
)
def test_what_is_not_json_is_an_error_that_says_why(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        jsontext.loads(text)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert jsontext.loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        jsontext.loads(data)
    except ValueError:
        pass


@pytest.mark.parametrize("text", [b"[1,2,3]", b'{"a":1,"b":[]}', b"[[[]]]", b'["","",""]', b'{"a":{"b":{}}}'])
def test_a_text_of_more_values_than_allowed_is_refused(text: bytes) -> None:
    jsontext.loads(text, max_values=3)
    with pytest.raises(ValueError, match="more than 2 members and items"):
        jsontext.loads(text, max_values=2)


def test_two_members_of_one_name_are_refused_where_each_must_be_unique() -> None:
    assert jsontext.loads(b'{"a":1,"a":2}') == {"a": 2}
    assert jsontext.loads(b'{"a":{"a":1},"b":2}', unique=True) == {"a": {"a": 1}, "b": 2}
    with pytest.raises(ValueError, match="`a` is given twice"):
        jsontext.loads(b'[{"b":{"a":1,"a":2}}]', unique=True)


def test_a_number_of_thousands_of_digits_is_refused_without_advice_for_programmers() -> None:
    with pytest.raises(ValueError, match=r"^a number has too many digits$"):
        jsontext.loads(b"[" + b"1" * 5000 + b"]")


@given(st.text(alphabet='a\\",[{}]:\n', max_size=40))
def test_what_stands_in_strings_is_not_counted_as_values(text: str) -> None:
    assert jsontext.loads(jsontext.dumps([text, text]), max_values=2) == [text, text]


@given(json_values)
def test_the_count_of_values_never_falls_short_of_what_the_parser_makes(value: Any) -> None:
    def count(inner: Any) -> int:
        if isinstance(inner, dict):
            return 1 + sum(map(count, inner.values()))
        return 1 + sum(map(count, inner)) if isinstance(inner, list) else 1

    made = count(value)
    if made > 2:
        with pytest.raises(ValueError, match="members and items"):
            jsontext.loads(jsontext.dumps(value), max_values=(made - 1) // 2)
