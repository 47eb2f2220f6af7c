"""A session as a script: what was recorded is what is played."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.agents import script
from trunkline.agents.script import Script
from trunkline.cli.record import as_file
from trunkline.cli.replay import played
from trunkline.core import events
from trunkline.core.events import Envelope, Event, Gap, UserMessage
from trunkline.core.faults import ConfigError
from trunkline.core.usage import Usage
from trunkline.exchange import recording
from trunkline.exchange.recording import WAS_CUT_OFF, WAS_DENIED, recorded


def envelopes(*found: Event) -> list[Envelope | Gap]:
    return [Envelope("s", number, 1, 0.0, event) for number, event in enumerate(found, 1)]


def turn(*found: Event, outcome: events.Outcome = "success", usage: Usage | None = None) -> list[Event]:
    return [events.TurnStarted(UserMessage("Go")), *found, events.TurnEnded(outcome, usage)]


def loaded(*found: Event) -> Script:
    return script.parse(as_file(dict(recorded(envelopes(*found), "x").script)), "x.yaml")


async def again(*found: Event) -> list[Event]:
    return [envelope.event for turn in [turn async for turn in played(loaded(*found))] for envelope in turn]


def requested(call_id: str, **args: Any) -> events.ToolRequested:
    return events.ToolRequested(call_id, "Write", "edit", args, "Write {{it}}")


def finished(call_id: str, output: str = "done") -> events.ToolFinished:
    return events.ToolFinished(call_id, "Write", "success", output, "diff", {"file_path": "a"})


async def test_everything_that_a_script_can_say_is_played_as_it_was() -> None:
    was: list[Event] = [
        *turn(
            events.ThinkingDelta("Hm {{x}}"), events.TextDelta("One "), events.TextDelta("{{input}}"),
            requested("c1", file_path="{{output}}"), events.ToolAnswered("c1", True), events.ToolStarted("c1", "Write"),
            finished("c1"), events.Notice("Look {{here}}"),
            events.Plan((events.PlanEntry("Look {{there}}", "high", "completed"), events.PlanEntry("Write"))),
            events.Extension("demo", {"any": ["{{thing}}"]}),
            usage=Usage(12, 3),
        ),
        *turn(events.TextDelta("Two"), events.Failed("provider", "No {{reason}}", True), outcome="error"),
    ]  # fmt: skip
    assert await again(*was) == was


async def test_what_was_denied_is_denied_again_and_gives_an_error_to_who_approves_it() -> None:
    was = turn(requested("c1"), events.ToolAnswered("c1", False), events.ToolCancelled("c1", "Not {{today}}."))
    assert await again(*was) == was
    (step,) = recorded(envelopes(*was), "x").script["turns"][0]["steps"]
    assert (step["tools"][0]["status"], step["tools"][0]["output"]) == ("error", WAS_DENIED)


async def test_calls_that_were_open_together_are_asked_for_together() -> None:
    found = loaded(*turn(requested("a"), requested("b"), finished("b"), finished("a"), requested("c"), finished("c")))
    groups = [[call.id for call in step.calls] for step in found.turns[0].steps if isinstance(step, script.UseTools)]
    assert groups == [["a", "b"], ["c"]]


async def test_calls_that_the_policy_answered_or_nobody_was_asked_about_are_part_of_it() -> None:
    judged = events.ToolJudged("a", "Read", "info", {"file_path": "x"}, "Read x", "allow")
    found = loaded(*turn(judged, events.ToolStarted("a", "Read"), finished("a"),
                         events.ToolStarted("b", "Own"), events.ToolFinished("b", "Own", "success", "o")))  # fmt: skip
    names = [(call.name, call.category, call.output) for step in found.turns[0].steps for call in step.calls]  # type: ignore[attr-defined]
    assert names == [("Read", "info", "done"), ("Own", "info", "o")]


def test_a_call_that_was_cut_off_says_so() -> None:
    (step,) = recorded(envelopes(*turn(requested("a"), outcome="unknown")), "x").script["turns"][0]["steps"]
    assert step["tools"][0]["output"] == WAS_CUT_OFF


def test_what_a_script_cannot_say_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = turn(events.Audio(b"\0\0", 16000), events.TextDelta("x"), events.Progress("..."))
    made = recorded([*envelopes(*found), Gap(10, 12)], "x")
    assert made.left_out == {"damaged": 3}
    monkeypatch.setattr(recording, "MOST_SOUND", 3)
    made = recorded(envelopes(*found), "x")
    assert (made.left_out, made.script["turns"][0]["steps"]) == ({"sound": 1}, [{"text": ["x"]}])


async def test_sound_and_what_came_in_the_middle_of_a_turn_are_played_in_their_places() -> None:
    was = turn(events.TextDelta("a"), events.Steered(UserMessage("And {{x}}")), events.Audio(b"\1\0\2\0", 16000, 2),
               requested("c"), finished("c"), events.TextDelta("b"))  # fmt: skip
    assert [event for event in await again(*was) if isinstance(event, events.Audio | events.Steered)] == [
        was[2],
        was[3],
    ]


def test_a_turn_in_progress_is_not_part_of_it() -> None:
    found = [*turn(events.TextDelta("One")), events.TurnStarted(UserMessage("More")), events.TextDelta("Tw")]
    assert len(loaded(*found).turns) == 1
    with pytest.raises(ConfigError, match="nothing to record yet"):
        recorded(envelopes(*found[3:]), "x")


def test_a_fault_of_a_kind_that_nobody_knows_can_still_be_played() -> None:
    loaded(*turn(events.Failed("of the future", "x"), outcome="error"))


def test_more_pieces_than_a_reader_takes_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_PIECES", 3)
    (step,) = recorded(envelopes(*turn(*map(events.TextDelta, "abcd"))), "x").script["turns"][0]["steps"]
    assert step == {"text": ["abcd"]}


def test_a_session_that_is_too_long_for_a_script_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 300)
    with pytest.raises(ConfigError, match="sessions fork SESSION --at N"):
        recorded(envelopes(*turn(events.TextDelta("x" * 300))), "x")
