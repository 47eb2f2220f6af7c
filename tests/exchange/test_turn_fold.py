"""The events of a session become one row for each turn that has ended."""

from __future__ import annotations

from itertools import count

import pytest

from trunkline.core.events import (
    Envelope,
    Event,
    Failed,
    Outcome,
    Steered,
    StopAsked,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.exchange.acts import Act
from trunkline.exchange.turn_fold import MOST_OF_ANSWER, MOST_OF_MESSAGE, TurnFold
from trunkline.exchange.turn_rows import TurnRow

AT = 1_771_400_000.25


def folded(*happened: Event, fold: TurnFold | None = None, turn: int = 1) -> list[TurnRow]:
    fold, seqs = fold or TurnFold("s1", "helper"), count(1)
    records = (Envelope("s1", seq, turn, AT + seq, event) for seq, event in zip(seqs, happened, strict=False))
    return [row for record in records if (row := fold.take(record)) is not None]


def test_a_row_has_what_was_asked_and_answered_and_when() -> None:
    start = TurnStarted(UserMessage("Hello", sender="ana"))
    happened = (start, ThinkingDelta("hm"), TextDelta("Good "), Steered(UserMessage("Now!")), TextDelta("day"))
    (row,) = folded(*happened, TurnEnded("success"))
    assert (row.session, row.turn, row.seq, row.agent, row.by_person) == ("s1", 1, 1, "helper", "ana")
    assert (row.message, row.answer, row.outcome) == ("Hello\nNow!", "Good day", "success")
    assert (row.began_at, row.ended_at) == (1_771_400_001_250, 1_771_400_006_250)
    assert row.number == 1_771_400_001_250_000


def test_long_texts_are_cut_and_what_no_database_holds_is_replaced() -> None:
    start = TurnStarted(UserMessage("m" * 9999, sender="a\0b"))
    (row,) = folded(start, *[TextDelta("\ud800\0" * 500) for _ in range(20)], TurnEnded("success"))
    assert (len(row.message), len(row.answer)) == (MOST_OF_MESSAGE, MOST_OF_ANSWER)
    assert row.by_person == "a\ufffdb"
    assert set(row.answer) == {"?", "\ufffd"}


@pytest.mark.parametrize(
    ("happened", "outcome", "cause"),
    [
        ([], "success", "The agent had finished its answer."),
        ([Failed("crashed", "It fell.")], "error", "It fell. (crashed)"),
        ([], "error", "The agent said that it failed, and not why."),
        ([], "unknown", "The process ended before the call did: its outcome is unknown."),
        ([StopAsked("ben")], "cancelled", "ben stopped it."),
        ([ToolCancelled("t", "The budget is spent")], "cancelled", "The budget is spent."),
        ([], "cancelled", "It was stopped."),
    ],
)
def test_the_cause_is_that_of_the_explanation(happened: list[Event], outcome: Outcome, cause: str) -> None:
    (row,) = folded(TurnStarted(UserMessage("x")), *happened, TurnEnded(outcome))
    assert row.cause == cause


def test_who_stopped_a_turn_is_known_also_without_the_event_and_before_its_beginning_is_heard() -> None:
    fold = TurnFold("s1", "helper")
    fold.stopped(1, "ben")
    (row,) = folded(TurnStarted(UserMessage("x")), TurnEnded("cancelled"), fold=fold)
    assert row.cause == "ben stopped it."
    (row,) = folded(TurnStarted(UserMessage("x")), TurnEnded("cancelled"), fold=fold, turn=2)
    assert row.cause == "It was stopped."


def test_a_turn_that_a_fork_has_ended_says_so() -> None:
    fold = TurnFold("s2", "helper", Act(0, 1, "forked_from", "ana", "s1"))
    (row,) = folded(TurnStarted(UserMessage("x")), TurnEnded("cancelled"), fold=fold)
    assert row.cause == "ana forked the session here."


def test_a_turn_whose_beginning_was_not_heard_has_no_row() -> None:
    assert folded(TextDelta("x"), TurnEnded("success")) == []
    fold = TurnFold("s1", "helper")
    assert folded(TurnStarted(UserMessage("x")), fold=fold) == []
    assert folded(TurnEnded("success"), fold=fold, turn=2) == []
