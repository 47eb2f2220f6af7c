"""What somebody probably meant."""

from __future__ import annotations

from pathlib import Path

import trunkline
from trunkline.base.nearest import LONGEST_NAME, VERY_ALIKE, near, nearest, suggestion


def test_the_name_that_is_most_alike_is_suggested_and_a_strange_one_is_not() -> None:
    assert nearest("categry", ["name", "category"]) == "category"
    assert suggestion("categry", ["name", "category"]) == " Did you mean `category`?"
    assert suggestion("zzz", ["name", "category"]) == ""
    assert nearest("modus", ["mode"], VERY_ALIKE) is None


def test_of_two_that_are_equally_alike_it_is_always_the_same_one() -> None:
    assert nearest("ab", ["abx", "aby"]) == nearest("ab", ["aby", "abx"])


def test_whoever_stops_typing_means_what_begins_like_that() -> None:
    assert near("rep", ["report.md", "reply.md", "repo"], beginnings=True) == ["report.md", "reply.md", "repo"]
    assert list(near("repotr", ["report"], beginnings=True)) == ["report"]


def test_names_that_nobody_types_are_not_compared() -> None:
    long = "x" * (LONGEST_NAME + 1)
    assert near(long, [long[1:]]) == ()
    assert list(near(long[2:], [long])) == []


def test_there_is_no_second_way_to_guess_a_name() -> None:
    house = Path(trunkline.__file__).parent
    guessing = {path.relative_to(house).as_posix() for path in house.rglob("*.py") if "get_close_" in path.read_text()}
    assert guessing == {"base/nearest.py"}
