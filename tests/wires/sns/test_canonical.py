"""The text that is hashed. The expectations were made by JavaScript itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.wires.sns import codec
from trunkline.wires.sns.canonical import number, stable

JAVASCRIPT = json.loads(Path(__file__).with_name("javascript.json").read_text())


@pytest.mark.parametrize("case", JAVASCRIPT, ids=[case["json"][:30] for case in JAVASCRIPT])
def test_a_value_has_the_text_that_javascript_gives_it(case: dict[str, str]) -> None:
    data = case["json"].encode("utf-8", "surrogatepass")
    assert stable(codec.parse_body(data)) == case["stable"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_double(value: float) -> None:
    assert float(number(value)) == value


@given(st.integers())
def test_an_integer_of_any_size_is_the_nearest_double(value: int) -> None:
    text = number(value)
    assert text == "null" if abs(value) > 10**309 else float(text) == float(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_order_in_transit_does_not_matter(value: object) -> None:
    shuffled = json.dumps(value, sort_keys=True, indent=1).encode()
    assert stable(codec.parse_body(shuffled)) == stable(value)


def test_what_is_not_json_is_not_hashed() -> None:
    with pytest.raises(TypeError, match="not JSON: bytes"):
        stable({"a": b""})
