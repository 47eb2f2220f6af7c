"""How often in a minute."""

from __future__ import annotations

from trunkline.wires.tryll.serve.pace import TurnPace


def test_within_any_minute_it_is_at_most_so_often_and_what_was_refused_does_not_count() -> None:
    pace = TurnPace(2)
    assert [pace.wait(10), pace.wait(40)] == [0, 0]
    assert [pace.wait(50), pace.wait(69)] == [20, 1]
    assert pace.wait(70) == 0
    assert pace.wait(99) == 1
    assert pace.wait(100) == 0
