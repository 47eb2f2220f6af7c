"""A session explained: the cause of every end."""

from __future__ import annotations

import pytest

from trunkline.core import events
from trunkline.core.events import Envelope, Event, Gap, UserMessage
from trunkline.exchange import explaining
from trunkline.exchange.acts import Act
from trunkline.exchange.explaining import LONGEST_TEXT, Explanation, explained
from trunkline.exchange.turn_causes import OUTCOME_WORDS

ABOUT = {"id": "s", "agent": "helper", "by": "ana"}


def story(*found: Event, acts: tuple[Act, ...] = ()) -> Explanation:
    envelopes = [Envelope("s", number, 1, number / 10, event) for number, event in enumerate(found, 1)]
    return explained(ABOUT, envelopes, (), acts)


STARTED = events.TurnStarted(UserMessage("Go", sender="bob"))


@pytest.mark.parametrize(
    ("between", "outcome", "cause"),
    [
        ([], "success", "The agent had finished its answer."),
        ([events.Failed("provider", "Too busy.")], "error", "Too busy. (provider)"),
        ([], "error", "The agent said that it failed, and not why."),
        ([events.Failed("budget", "Spent.")], "error", "Spent. (budget)"),
        ([events.StopAsked("cleo")], "cancelled", "cleo stopped it."),
        ([], "cancelled", "It was stopped."),
        ([events.ToolCancelled("c", "Session closed")], "cancelled", "Session closed."),
        ([], "unknown", "The process ended before the call did: its outcome is unknown."),
        ([events.Failed("crashed", "Exit code 1.")], "unknown", "Exit code 1. (crashed)"),
    ],
)
def test_every_end_has_its_cause(between: list[Event], outcome: events.Outcome, cause: str) -> None:
    found = story(STARTED, *between, events.TurnEnded(outcome))
    assert [(turn.by, turn.outcome, turn.cause) for turn in found.turns] == [("bob", outcome, cause)]
    assert found.timeline[-1].text == f"{OUTCOME_WORDS[outcome]}: {cause}"


def test_the_fault_of_one_turn_is_not_the_cause_of_the_next_ones_end() -> None:
    failed = [STARTED, events.Failed("provider", "No."), events.StopAsked("cleo"), events.TurnEnded("error")]
    found = story(*failed, STARTED, events.TurnEnded("cancelled"))
    assert found.turns[-1].cause == "It was stopped."


def test_who_withdraws_a_message_that_waits_has_not_stopped_the_turn_in_progress() -> None:
    whole = [(1, STARTED), (0, events.StopAsked("cleo", ("m2",))), (1, events.TurnEnded("cancelled"))]
    envelopes = [Envelope("s", number, turn, number / 10, event) for number, (turn, event) in enumerate(whole, 1)]
    found = explained(ABOUT, envelopes, (), ())
    assert found.turns[-1].cause == "It was stopped."
    assert [(each.who, each.text) for each in found.timeline if each.kind == "stopped"] == [
        ("cleo", "withdrew 1 of the waiting messages")
    ]


def test_a_turn_in_progress_is_told_as_such() -> None:
    (turn,) = story(STARTED, events.TextDelta("So ")).turns
    assert (turn.outcome, turn.ended_at, turn.cause) == ("running", None, "Turn 1 is in progress.")


def test_acts_stand_where_they_happened() -> None:
    acts = (Act(100, 0, "joined", "dan", "jsonstream"), Act(900, 2, "left", "dan", "jsonstream"))
    found = story(STARTED, events.TextDelta("a"), events.TextDelta("b"), events.TurnEnded("success"), acts=acts)
    assert [entry.kind for entry in found.timeline] == ["act", "message", "answer", "act", "end"]
    assert set(found.people) == {"ana", "bob", "dan"}


def test_private_records_of_the_agent_are_not_told() -> None:
    found = story(STARTED, events.Journaled({"secret": 1}), events.TurnEnded("success"))
    assert [entry.kind for entry in found.timeline] == ["message", "end"]


def test_what_the_agent_means_to_do_is_told() -> None:
    found = story(STARTED, events.Plan((events.PlanEntry("Look", status="in_progress"),)), events.TurnEnded("success"))
    assert [(entry.kind, entry.text) for entry in found.timeline][1] == ("plan", "Plan:\n[>] Look")


def test_long_texts_are_cut_and_of_a_long_session_the_newest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "MOST_ENTRIES", 3)
    long = events.TextDelta("x" * LONGEST_TEXT)
    found = story(STARTED, long, long, events.Notice("n"), events.TurnEnded("success"))
    assert [entry.kind for entry in found.timeline] == ["answer", "notice", "end"]
    assert found.left_out == 1
    assert len(found.timeline[0].text) < LONGEST_TEXT + 50


def test_damage_is_told() -> None:
    found = explained(ABOUT, [Gap(1, 4)], (), ())
    assert found.timeline[0].text == "Records 1 to 4 are damaged or missing."
