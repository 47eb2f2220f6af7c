"""Where the bars of a chart are, and how its parts are told apart."""

from __future__ import annotations

from datetime import date

import pytest

from trunkline.exchange.console.chart import OTHERS, day_chart, nice_above

FIRST, LAST = date(2026, 2, 1), date(2026, 2, 4)


def told(value: float) -> str:
    return f"{value:g}"


def test_bars_stand_on_each_other_and_on_the_day_that_they_are_of() -> None:
    amounts = {("2026-02-01", "a"): 60.0, ("2026-02-01", "b"): 20.0, ("2026-02-03", "a"): 40.0}
    chart = day_chart(amounts, FIRST, LAST, told, told)
    assert [(part.name, part.number, part.total) for part in chart.parts] == [("a", 1, 100.0), ("b", 2, 20.0)]
    first, second, third = chart.bars
    assert (first.y, first.height) == ("25%", "75%")
    assert (second.x, second.y, second.height) == (first.x, "0%", "25%")
    assert (third.x, third.height) == ("53.25%", "50%")
    assert third.title == "2026-02-03, a: 40"
    assert [line.text for line in chart.scale] == ["0", "20", "40", "60", "80"]


def test_what_is_outside_of_the_days_is_not_drawn() -> None:
    chart = day_chart({("2026-01-31", "a"): 1.0, ("2026-02-05", "a"): 1.0}, FIRST, LAST, told, told)
    assert chart.bars == ()


def test_many_parts_become_others() -> None:
    amounts = {("2026-02-01", f"n{number}"): 10.0 - number for number in range(8)}
    chart = day_chart(amounts, FIRST, LAST, told, told)
    assert [part.name for part in chart.parts] == ["n0", "n1", "n2", "n3", "n4", OTHERS]
    assert chart.parts[-1].total == 5.0 + 4.0 + 3.0
    assert [bar.part for bar in chart.bars] == [1, 2, 3, 4, 5, 6]


def test_one_that_is_left_over_alone_is_itself() -> None:
    amounts = {("2026-02-01", f"n{number}"): 10.0 - number for number in range(6)}
    assert [part.name for part in day_chart(amounts, FIRST, LAST, told, told).parts][-1] == "n5"


def test_a_year_has_a_bar_for_each_week_and_few_names_below() -> None:
    amounts = {("2026-01-01", "a"): 1.0, ("2026-01-07", "a"): 2.0, ("2026-01-08", "a"): 3.0}
    chart = day_chart(amounts, date(2026, 1, 1), date(2026, 12, 31), told, told)
    assert [bar.title for bar in chart.bars] == ["Week from 2026-01-01, a: 3", "Week from 2026-01-08, a: 3"]
    assert 2 <= len(chart.days) <= 6
    assert chart.days[0].text == "01-01"


@pytest.mark.parametrize(
    ("most", "end"), [(0, 4), (0.0003, 0.0003), (0.7, 0.8), (1, 1), (7, 8), (99, 100), (1001, 1200), (151_000, 160_000)]
)
def test_a_scale_ends_at_a_round_number(most: float, end: float) -> None:
    assert nice_above(most) == pytest.approx(end)
    assert nice_above(most) >= most
