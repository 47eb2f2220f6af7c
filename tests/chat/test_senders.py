"""Who is let in, and how often."""

from __future__ import annotations

from trunkline.chat.senders import (
    MOST_REMEMBERED,
    REFUSAL_SECONDS,
    REFUSALS_A_MINUTE,
    SLOW_DOWN_SECONDS,
    TOLD_SECONDS,
    URGENT_A_MINUTE,
    Senders,
    SenderVerdict,
)

ME = "telegram:1"
STRANGER = "telegram:2"


def test_an_empty_list_lets_nobody_in() -> None:
    senders = Senders(())
    assert not senders.allowed(ME)
    assert senders.judge(ME, 0.0) is SenderVerdict.REFUSE


def test_those_who_are_named_are_let_in_on_their_platform_only() -> None:
    senders = Senders((ME,))
    assert senders.judge(ME, 0.0) is SenderVerdict.TAKE
    assert senders.judge("matrix:1", 0.0) is SenderVerdict.REFUSE


def test_a_star_lets_everybody_in() -> None:
    assert Senders(("*",)).judge(STRANGER, 0.0) is SenderVerdict.TAKE


def test_a_stranger_is_refused_once_in_an_hour() -> None:
    senders = Senders((ME,))
    assert senders.judge(STRANGER, 0.0) is SenderVerdict.REFUSE
    assert senders.judge(STRANGER, REFUSAL_SECONDS - 1) is SenderVerdict.IGNORE
    assert senders.judge(STRANGER, REFUSAL_SECONDS + 1) is SenderVerdict.REFUSE


def test_a_crowd_of_strangers_is_refused_a_few_times_a_minute() -> None:
    senders = Senders((ME,))
    verdicts = [senders.judge(f"telegram:{number}", 0.0) for number in range(100, 1100)]
    assert verdicts.count(SenderVerdict.REFUSE) == REFUSALS_A_MINUTE
    assert senders.judge("telegram:9999", 60.0) is SenderVerdict.REFUSE


def test_the_memory_does_not_grow_with_the_number_of_people() -> None:
    senders = Senders(("*",))
    for number in range(3 * MOST_REMEMBERED):
        senders.judge(f"telegram:{number}", float(number))
    assert len(senders._buckets) == MOST_REMEMBERED


def test_who_is_too_fast_is_told_once_and_may_go_on_after_a_while() -> None:
    senders = Senders((ME,), rate=3)
    assert [senders.judge(ME, 0.0) for _ in range(5)] == [
        SenderVerdict.TAKE,
        SenderVerdict.TAKE,
        SenderVerdict.TAKE,
        SenderVerdict.SLOW_DOWN,
        SenderVerdict.IGNORE,
    ]
    assert senders.judge(ME, 21.0) is SenderVerdict.TAKE
    assert senders.judge(ME, 21.0) is SenderVerdict.IGNORE
    assert SLOW_DOWN_SECONDS > 21.0


def test_one_who_is_too_fast_does_not_slow_down_others() -> None:
    senders = Senders(("*",), rate=1)
    assert senders.judge(ME, 0.0) is SenderVerdict.TAKE
    assert senders.judge(ME, 0.0) is SenderVerdict.SLOW_DOWN
    assert senders.judge(STRANGER, 0.0) is SenderVerdict.TAKE


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    senders = Senders((ME,), rate=1)
    assert senders.judge(ME, 100.0) is SenderVerdict.TAKE
    assert senders.judge(ME, 0.0) is SenderVerdict.SLOW_DOWN


def test_all_who_are_let_in_may_approve_unless_some_are_named() -> None:
    assert Senders((ME,)).may_approve(ME)
    assert not Senders((ME,)).may_approve(STRANGER)
    named = Senders((ME, STRANGER), approvers=(STRANGER,))
    assert named.may_approve(STRANGER)
    assert not named.may_approve(ME)


def test_an_approver_who_is_not_let_in_may_not_approve() -> None:
    assert not Senders((ME,), approvers=("*",)).may_approve(STRANGER)


def test_what_is_urgent_is_taken_from_somebody_who_is_too_fast_and_has_a_bound_of_its_own() -> None:
    senders = Senders((ME,), rate=1)
    assert senders.judge(ME, 0.0) is SenderVerdict.TAKE
    assert senders.judge(ME, 0.0) is SenderVerdict.SLOW_DOWN
    verdicts = [senders.judge(ME, 0.0, urgent=True) for _ in range(URGENT_A_MINUTE + 5)]
    assert verdicts == [SenderVerdict.TAKE] * URGENT_A_MINUTE + [SenderVerdict.IGNORE] * 5
    assert senders.judge(STRANGER, 0.0, urgent=True) is SenderVerdict.REFUSE


def test_whoever_started_the_bridge_has_no_limit_and_nobody_else_has_none() -> None:
    senders = Senders((ME, STRANGER), rate=1, unlimited=(ME,))
    assert {senders.judge(ME, 0.0) for _ in range(1000)} == {SenderVerdict.TAKE}
    assert senders.unlimited(ME)
    assert not senders.unlimited(STRANGER)
    assert not Senders((), unlimited=(ME,)).unlimited(ME)
    assert Senders((), unlimited=(ME,)).judge(ME, 0.0) is SenderVerdict.REFUSE


def test_somebody_who_presses_in_vain_is_told_once_in_a_while() -> None:
    senders = Senders((ME, STRANGER))
    assert [senders.may_be_told(ME, 0.0) for _ in range(3)] == [True, False, False]
    assert senders.may_be_told(STRANGER, 0.0)
    assert senders.may_be_told(ME, TOLD_SECONDS)
