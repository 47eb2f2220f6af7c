"""Frozen records."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import values
from trunkline.base.values import Value


class Point(Value):
    x: int
    y: int = 0


class Named(Point):
    limit: ClassVar[int] = 7

    name: str = "origin"


class Empty(Value):
    """Has no fields."""


class Child(Named):
    """Adds none."""


class Other(Value):
    x: int
    y: int = 0


def test_fields_are_given_by_position_or_name_and_have_defaults() -> None:
    assert (Point(1).x, Point(1).y) == (1, 0)
    assert Point(1, 2) == Point(y=2, x=1)
    assert Named(1, name="n").name == "n"
    assert Child(1, 2, "c").name == "c"
    Empty()


@pytest.mark.parametrize(
    ("arguments", "members", "problem"),
    [((), {}, "missing"), ((1, 2, 3), {}, "positional"), ((1,), {"x": 1}, "multiple"), ((1,), {"z": 1}, "unexpected")],
)
def test_wrong_arguments_are_refused(arguments: tuple[int, ...], members: dict[str, int], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Point(*arguments, **members)


def test_inherited_fields_come_first_and_class_variables_are_no_fields() -> None:
    assert Named.__fields__ == ("x", "y", "name")
    assert Child.__fields__ == Named.__fields__
    assert Named.limit == 7
    assert Named.__defaults__ == {"y": 0, "name": "origin"}


def test_values_are_equal_by_type_and_fields() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Other(1, 2)
    assert Point(1) != Named(1)
    assert Point(1) != (1, 0)
    assert Empty() == Empty()


def test_equal_values_have_one_hash() -> None:
    assert {Point(1, 2): "a"}[Point(1, 2)] == "a"
    assert len({Point(1), Named(1), Other(1), Point(1)}) == 3


def test_a_value_cannot_be_changed() -> None:
    point: Any = Point(1)
    with pytest.raises(AttributeError, match=r"`Point\.x` is frozen; use `replace\(\)`"):
        point.x = 2
    with pytest.raises(AttributeError, match="frozen"):
        point.other = 2
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert point == Point(1)
    assert not hasattr(point, "__dict__")


class Hot(Value, hot=True):
    x: int
    y: int = 0


def test_a_hot_value_is_like_any_other_but_only_the_type_checker_guards_it() -> None:
    hot: Any = Hot(1)
    assert (hot, hash(hot), repr(hot)) == (Hot(1, 0), hash(Hot(1, 0)), "Hot(x=1, y=0)")
    assert hot.replace(y=2) == Hot(1, 2)
    assert not hasattr(hot, "__dict__")
    with pytest.raises(AttributeError):
        hot.other = 2


def test_a_copy_may_differ_in_some_fields() -> None:
    point = Named(1, 2, "n")
    assert point.replace(y=3) == Named(1, 3, "n")
    assert point == Named(1, 2, "n")
    with pytest.raises(TypeError, match="unexpected"):
        point.replace(z=1)


def test_a_value_shows_its_fields() -> None:
    assert repr(Named(1)) == "Named(x=1, y=0, name='origin')"
    assert repr(Empty()) == "Empty()"


def test_values_are_matched_by_position_and_name() -> None:
    match Named(1, 2, "n"):
        case Named(x, y, name=name):
            assert (x, y, name) == (1, 2, "n")
        case _:
            pytest.fail("not matched")


def test_values_can_be_copied_and_pickled() -> None:
    value = Named(1, 2, "n")
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_defining_values_imports_no_dataclasses() -> None:
    code = (
        "import sys; before = set(sys.modules); import trunkline.base.values;"
        "print(bool({'dataclasses', 'inspect'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert done.stdout.strip() == "False"


def test_an_init_is_compiled_when_it_is_first_used_and_not_when_its_class_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    make = values._make_init

    def counting(cls: type, *how: Any) -> Any:
        compiled.append(cls.__name__)
        return make(cls, *how)

    monkeypatch.setattr(values, "_make_init", counting)

    class Fresh(Value):
        x: int
        y: int = 2

    class Heir(Fresh):
        """Has what the other has."""

    assert compiled == []
    with pytest.raises(TypeError, match="'x'"):
        Heir()  # type: ignore[call-arg]
    assert (Heir(1).y, Fresh(x=3).x, Heir(1, y=5).y) == (2, 3, 5)
    assert compiled == ["Fresh"]
