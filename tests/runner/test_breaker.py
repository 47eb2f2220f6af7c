"""How long an agent that fails is left alone."""

from __future__ import annotations

import pytest

from trunkline.runner.breaker import Breaker, BreakerSettings

PATIENCE = BreakerSettings(longest=100.0, failures=3, open_for=50.0, refused_for=500.0, spread=0.0)


def test_while_all_is_well_the_interval_counts() -> None:
    breaker = Breaker(10, PATIENCE)
    breaker.trying()
    breaker.succeeded()
    assert (breaker.pause(), breaker.state) == (10, "closed")


def test_each_failure_doubles_the_pause_up_to_a_limit() -> None:
    breaker = Breaker(10, PATIENCE.replace(failures=99))
    pauses = []
    for _ in range(5):
        breaker.failed()
        pauses.append(breaker.pause())
    assert pauses == [20, 40, 80, 100, 100]
    for _ in range(2000):
        breaker.failed()
    assert breaker.pause() == 100


def test_an_interval_beyond_the_limit_is_never_made_shorter() -> None:
    breaker = Breaker(1000, PATIENCE)
    breaker.failed()
    assert breaker.pause() == 1000


def test_failures_in_a_row_open_it_one_try_half_opens_it_and_a_success_closes_it() -> None:
    breaker = Breaker(1, PATIENCE)
    for expected in ("closed", "closed", "open"):
        breaker.trying()
        breaker.failed()
        assert breaker.state == expected
    assert breaker.pause() == 50
    states: list[str] = []
    breaker.trying()
    states.append(breaker.state)
    breaker.failed()
    states.append(breaker.state)
    assert states == ["half-open", "open"]
    breaker.trying()
    breaker.succeeded()
    assert (breaker.state, breaker.failures, breaker.pause()) == ("closed", 0, 1)


def test_refused_credentials_open_it_at_once_and_for_longer() -> None:
    breaker = Breaker(1, PATIENCE)
    breaker.failed(refused=True)
    assert (breaker.state, breaker.pause()) == ("open", 500)
    breaker.trying()
    breaker.failed()
    assert breaker.pause() == 50


def test_pauses_after_failures_vary_a_little_either_way() -> None:
    patience = PATIENCE.replace(spread=0.1)
    shortest, longest = Breaker(100, patience, lambda: 0.0), Breaker(100, patience, lambda: 1.0)
    shortest.failed()
    longest.failed()
    assert (shortest.pause(), longest.pause()) == pytest.approx((90, 110))
