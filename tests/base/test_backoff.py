"""How long to wait before the next try."""

from __future__ import annotations

from trunkline.base.backoff import delay


def test_each_failure_doubles_the_wait_up_to_the_longest() -> None:
    assert [delay(failures, 0.25, 3.0) for failures in range(7)] == [0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 3.0]
    assert delay(10**9, 0.25, 3.0) == 3.0
