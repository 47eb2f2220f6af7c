"""Figures as text."""

from __future__ import annotations

from trunkline.base.prometheus import Histogram, histogram, metric


def test_a_label_that_holds_anything_stays_one_line() -> None:
    told = metric("things", "gauge", "Of a kind.", [({"name": 'a"b\\c\nd'}, 1.5), ({}, 2)])
    assert told.splitlines() == [
        "# HELP trunkline_things Of a kind.",
        "# TYPE trunkline_things gauge",
        'trunkline_things{name="a\\"b\\\\c\\nd"} 1.5',
        "trunkline_things 2",
    ]


def test_a_value_counts_in_each_bucket_whose_bound_it_does_not_exceed() -> None:
    found = Histogram((0.5, 1))
    for value in (0.5, 0.6, 7):
        found.add(value)
    assert histogram("took", "Seconds.", [({"model": "m"}, found)]).splitlines()[2:] == [
        'trunkline_took_bucket{model="m",le="0.5"} 1',
        'trunkline_took_bucket{model="m",le="1"} 2',
        'trunkline_took_bucket{model="m",le="+Inf"} 3',
        'trunkline_took_sum{model="m"} 8.1',
        'trunkline_took_count{model="m"} 3',
    ]
