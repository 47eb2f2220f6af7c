from __future__ import annotations

from trunkline.models.backoff import GIVE_UP_SECONDS, MAX_ASKED_SECONDS, MAX_TRIES, RequestBackoff


def waits(backoff: RequestBackoff, asked: float | None = None) -> list[float]:
    """All waits until it gives up, each try failing at once."""
    now, found = 0.0, []
    while (seconds := backoff.wait(now, asked)) is not None:
        found.append(seconds)
        now += seconds
    return found


def test_each_wait_is_longer_than_the_one_before_until_the_longest() -> None:
    assert waits(RequestBackoff(0.0, chance=lambda: 1.0)) == [0.5, 1, 2, 4, 8, 8]


def test_half_of_a_wait_is_left_to_chance() -> None:
    assert RequestBackoff(0.0, chance=lambda: 0.0).wait(0.0) == 0.25
    assert 0.25 <= (RequestBackoff(0.0).wait(0.0) or 0) <= 0.5


def test_it_gives_up_within_half_a_minute() -> None:
    assert sum(waits(RequestBackoff(0.0, chance=lambda: 1.0))) < GIVE_UP_SECONDS
    assert RequestBackoff(0.0).wait(GIVE_UP_SECONDS) is None


def test_what_the_provider_asks_for_is_waited_for_exactly() -> None:
    assert RequestBackoff(0.0).wait(0.0, 42.5) == 42.5


def test_waiting_as_asked_does_not_use_up_the_patience() -> None:
    backoff = RequestBackoff(0.0, chance=lambda: 1.0)
    assert backoff.wait(0.0, 60.0) == 60.0
    assert backoff.wait(61.0) == 1.0


def test_a_provider_cannot_make_us_wait_longer_than_the_limit_neither_at_once_nor_in_sum() -> None:
    assert RequestBackoff(0.0).wait(0.0, MAX_ASKED_SECONDS + 1) is None
    assert sum(waits(RequestBackoff(0.0), asked=100.0)) <= MAX_ASKED_SECONDS


def test_a_provider_that_always_says_soon_is_not_asked_forever() -> None:
    assert len(waits(RequestBackoff(0.0), asked=0.01)) == MAX_TRIES - 1


def test_where_one_try_is_enough_there_is_no_other_whatever_is_asked_for() -> None:
    assert RequestBackoff(0.0, tries=1).wait(0.0) is None
    assert RequestBackoff(0.0, tries=1).wait(0.0, 1.0) is None
