"""Values from parsed JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.core.event_strategies import json_values, values_of
from trunkline.base import jsontext, shapes
from trunkline.base.shapes import ShapeError
from trunkline.base.values import Value


class Inner(Value):
    """A part."""

    count: int
    note: str | None = None


class Outer(Value):
    """All the types there are.

    And a second paragraph.
    """

    text: str
    number: float
    flag: bool
    kind: Literal["a", "b"]
    inner: Inner
    data: bytes = b""
    items: tuple[Inner, ...] = ()
    members: Mapping[str, int] | None = None
    anything: Any = None
    size: int = 3


class Recursive(Value):
    maybe: Inner | None = None


GOOD: dict[str, Any] = {"text": "t", "number": 1.5, "flag": True, "kind": "a", "inner": {"count": 1}}


def test_a_value_is_built_from_an_object() -> None:
    found = shapes.decode(Outer, GOOD | {"items": [{"count": 2, "note": "n"}], "members": {"a": 1}, "data": "AAE="})
    assert found == Outer("t", 1.5, True, "a", Inner(1), b"\0\1", (Inner(2, "n"),), {"a": 1})


@given(values_of(Outer))
def test_a_value_survives_the_way_to_json_and_back(value: Outer) -> None:
    assert shapes.decode(Outer, jsontext.loads(jsontext.dumps(shapes.encode(value)))) == value


def test_members_that_are_not_declared_are_ignored() -> None:
    assert shapes.decode(Inner, {"count": 1, "newer": {"x": 1}}) == Inner(1)


def test_null_counts_as_absent_where_there_is_a_default() -> None:
    assert shapes.decode(Outer, GOOD | {"size": None, "items": None, "data": None}) == shapes.decode(Outer, GOOD)


def test_integers_are_numbers_and_booleans_are_not() -> None:
    number = shapes.decode(Outer, GOOD | {"number": 2}).number
    assert (number, type(number)) == (2.0, float)
    for field in ("number", "size"):
        with pytest.raises(ShapeError, match=f"`{field}` must be .* not a boolean"):
            shapes.decode(Outer, GOOD | {field: True})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"text": None}, "`text` must be a string, not null"),
        ({"text": 1}, "`text` must be a string, not a number"),
        ({"number": "1"}, "`number` must be a number, not a string"),
        ({"flag": 1}, "`flag` must be true or false, not a number"),
        ({"kind": "c"}, '`kind` must be one of "a", "b", not "c"'),
        ({"kind": "x" * 99}, f'not "{"x" * 40}"'),
        ({"kind": ["a"]}, '`kind` must be one of "a", "b", not a list'),
        ({"inner": []}, "`inner` must be an object, not a list"),
        ({"inner": {}}, r"`inner\.count` is missing"),
        ({"inner": {"count": 1.5}}, r"`inner\.count` must be an integer, not a number"),
        ({"items": {}}, "`items` must be a list, not an object"),
        ({"items": [{"count": 1}, {"count": "x"}]}, r"`items\.1\.count` must be an integer"),
        ({"items": [1]}, r"`items\.0` must be an object"),
        ({"members": {"a": "x"}}, r"`members\.a` must be an integer"),
        ({"members": []}, "`members` must be an object"),
        ({"data": "***"}, "`data` must be base64 text"),
        ({"data": 1}, "`data` must be base64 text"),
        ({"size": "3"}, "`size` must be an integer"),
    ],
)
def test_a_wrong_shape_is_an_error_that_names_the_place(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ShapeError, match=problem):
        shapes.decode(Outer, GOOD | change)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ShapeError, match="`text` is missing") as caught:
        shapes.decode(Outer, {})
    assert (caught.value.path, caught.value.problem) == ("text", "is missing")


@pytest.mark.parametrize("data", [None, 1, "x", [], True])
def test_only_an_object_makes_a_value(data: Any) -> None:
    with pytest.raises(ShapeError, match=r"^must be an object, not "):
        shapes.decode(Inner, data)


@given(json_values)
def test_any_json_is_decoded_or_refused(data: Any) -> None:
    for kind in (Inner, Outer, Recursive):
        try:
            assert isinstance(shapes.decode(kind, data), kind)
        except ShapeError:
            pass


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(Outer.__fields__, json_values)))
def test_any_members_are_decoded_or_refused(data: dict[str, Any]) -> None:
    try:
        shapes.decode(Outer, data)
    except ShapeError:
        pass


def test_what_is_none_by_default_is_left_out_and_the_rest_is_written() -> None:
    assert shapes.encode(Inner(1)) == {"count": 1}
    assert shapes.encode(Inner(1, "n")) == {"count": 1, "note": "n"}
    written = shapes.encode(Outer("t", 1.0, False, "b", Inner(1), items=(Inner(2),)))
    assert written == {
        "text": "t", "number": 1.0, "flag": False, "kind": "b", "inner": {"count": 1}, "data": "",
        "items": [{"count": 2}], "size": 3,
    }  # fmt: skip


def test_a_union_of_several_types_is_not_understood() -> None:
    class Wrong(Value):
        either: int | str

    with pytest.raises(TypeError, match=r"only `X \| None` unions"):
        shapes.decode(Wrong, {"either": 1})


def test_the_schema_says_what_decoding_takes() -> None:
    schema = shapes.schema(Outer)
    assert schema["description"] == "All the types there are."
    assert schema["required"] == ["text", "number", "flag", "kind", "inner"]
    assert schema["properties"]["kind"] == {"enum": ["a", "b"]}
    assert schema["properties"]["inner"]["properties"]["count"] == {"type": "integer"}
    assert schema["properties"]["data"] == {"type": "string", "contentEncoding": "base64"}
    Draft202012Validator.check_schema(schema)


@given(values_of(Outer))
def test_every_encoded_value_fits_its_schema(value: Outer) -> None:
    Draft202012Validator(shapes.schema(Outer)).validate(shapes.encode(value))


class Named(shapes.CamelCased):
    session_id: str
    meta: Mapping[str, Any] | None = None


class Animal(shapes.Tagged):
    """A family."""


class Cat(Animal):
    tag: ClassVar[str | None] = "cat"

    lives_left: int


class Dog(Animal):
    tag: ClassVar[str | None] = "dog"


class Vehicle(shapes.Tagged):
    tag_member: ClassVar[str] = "kind"


class Car(Vehicle):
    tag: ClassVar[str | None] = "car"


class OtherVehicle(Vehicle):
    raw: Mapping[str, Any]


Vehicle.otherwise = OtherVehicle


def test_members_can_be_in_camel_case() -> None:
    value = Named("s", {"x": 1})
    assert shapes.encode(value) == {"sessionId": "s", "_meta": {"x": 1}}
    assert shapes.decode(Named, {"sessionId": "s", "_meta": {"x": 1}}) == value
    assert shapes.schema(Named)["required"] == ["sessionId"]
    with pytest.raises(ShapeError, match="`sessionId` is missing"):
        shapes.decode(Named, {"session_id": "s"})


def test_a_member_tells_which_of_a_family_an_object_is() -> None:
    assert shapes.decode(Animal, {"type": "cat", "livesLeft": 9}) == Cat(9)
    assert shapes.decode(Animal, {"type": "dog"}) == Dog()
    assert shapes.encode(Cat(9)) == {"type": "cat", "livesLeft": 9}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "`type` is missing"),
        ({"type": "cow"}, '`type` must be one of "cat", "dog", not "cow"'),
        ({"type": ["cat"]}, '`type` must be one of "cat", "dog", not a list'),
        ({"type": "cat"}, "`livesLeft` is missing"),
    ],
)
def test_an_object_of_no_known_child_is_an_error(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(ShapeError, match=problem):
        shapes.decode(Animal, data)


def test_a_family_may_have_a_child_for_all_that_is_not_known() -> None:
    assert shapes.decode(Vehicle, {"kind": "car"}) == Car()
    assert shapes.decode(Vehicle, {"kind": "boat", "sails": 2}) == OtherVehicle({"kind": "boat", "sails": 2})
