"""Why a turn ended as it did, in a sentence."""

from __future__ import annotations

from typing import get_args

import pytest

from trunkline.core.events import (
    Envelope,
    Event,
    Failed,
    Outcome,
    StopAsked,
    ToolCancelled,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.turns import STOPPED
from trunkline.exchange.acts import Act
from trunkline.exchange.turn_causes import FINISHED, OUTCOME_WORDS, TurnCauses

STARTED = TurnStarted(UserMessage("Hello"))
NO_REASON = "The agent said that it failed, and not why."


def cause(outcome: Outcome, *events: Event, forked: Act | None = None, turn: int = 1) -> str:
    """Of a turn in which these happened."""
    causes = TurnCauses(forked)
    records = [Envelope("s", seq, turn, 0.0, event) for seq, event in enumerate((*events, TurnEnded(outcome)), 1)]
    for record in records:
        causes.take(record)
    return causes.of(records[-1], outcome)


@pytest.mark.parametrize(
    ("outcome", "events", "told"),
    [
        ("success", (STARTED,), FINISHED),
        ("success", (STARTED, Failed("provider", "Overloaded.")), FINISHED),
        ("error", (STARTED, Failed("provider", "Overloaded.")), "Overloaded. (provider)"),
        ("error", (STARTED,), NO_REASON),
        ("unknown", (STARTED,), "The process ended before the call did: its outcome is unknown."),
        ("unknown", (STARTED, Failed("crash", "It died.")), "It died. (crash)"),
        ("cancelled", (STARTED, StopAsked("ana", ())), "ana stopped it."),
        ("cancelled", (STARTED, Failed("budget", "Spent.")), "Spent. (budget)"),
        ("cancelled", (STARTED, ToolCancelled("t", "The host went away")), "The host went away."),
        ("cancelled", (STARTED, ToolCancelled("t", STOPPED)), "It was stopped."),
        ("cancelled", (STARTED,), "It was stopped."),
    ],
)
def test_each_end_has_its_cause(outcome: Outcome, events: tuple[Event, ...], told: str) -> None:
    assert cause(outcome, *events) == told


def test_what_was_wrong_with_an_earlier_turn_is_no_cause_of_a_later_one() -> None:
    assert cause("error", STARTED, Failed("provider", "Overloaded."), TurnEnded("error"), STARTED) == NO_REASON


def test_who_withdrew_messages_has_not_stopped_the_turn_in_progress() -> None:
    causes = TurnCauses()
    for seq, (turn, event) in enumerate(((1, STARTED), (0, StopAsked("ana", ("m2",)))), 1):
        causes.take(Envelope("s", seq, turn, 0.0, event))
    assert causes.of(Envelope("s", 3, 1, 0.0, TurnEnded("cancelled")), "cancelled") == "It was stopped."


@pytest.mark.parametrize(("seq", "told"), [(1, "ana forked the session here."), (2, "It was stopped.")])
def test_a_fork_ends_the_turn_that_it_was_made_in_and_no_other(seq: int, told: str) -> None:
    assert cause("cancelled", STARTED, forked=Act(0, seq, "forked_from", "ana", "other")) == told


def test_every_end_has_a_word_for_people() -> None:
    assert set(OUTCOME_WORDS) == set(get_args(Outcome))
