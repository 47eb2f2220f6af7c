"""Records become something to read."""

from __future__ import annotations

from itertools import count

import pytest

from trunkline.base.printable import printable
from trunkline.core import events, transcript
from trunkline.core.events import Envelope, Event, Gap
from trunkline.core.transcript import TranscriptBlock, as_markdown, as_text, blocks
from trunkline.core.usage import Usage


def told(*happened: Event | Gap) -> list[TranscriptBlock]:
    numbers = count(1)
    return list(blocks(e if isinstance(e, Gap) else Envelope("s", next(numbers), 1, 0.0, e) for e in happened))


def test_deltas_are_put_together_until_something_else_happens() -> None:
    happened = (
        events.ThinkingDelta("hm"),
        events.ThinkingDelta(" ..."),
        events.TextDelta("Hel"),
        events.TextDelta("lo"),
        events.Notice("now"),
        events.TextDelta("again"),
    )
    assert told(*happened) == [
        TranscriptBlock("thinking", "hm ..."),
        TranscriptBlock("agent", "Hello"),
        TranscriptBlock("note", "now"),
        TranscriptBlock("agent", "again"),
    ]


def test_what_agents_tell_programs_alone_is_not_seen() -> None:
    commands = events.Extension(events.COMMANDS, {"commands": [{"name": "help"}]})
    assert told(events.TextDelta("a"), commands, events.TextDelta("b")) == [TranscriptBlock("agent", "ab")]


def test_a_private_event_between_two_deltas_is_not_seen() -> None:
    assert told(events.TextDelta("a"), events.Journaled({"secret": 1}), events.TextDelta("b")) == [
        TranscriptBlock("agent", "ab")
    ]


def test_what_is_missing_is_said() -> None:
    assert told(Gap(3, 5)) == [TranscriptBlock("failure", "Records 3 to 5 are damaged or missing.")]


PRIVATE = [kind for kind in events.EVENTS if kind.private]
PUBLIC: list[tuple[Event, str]] = [
    (events.TurnStarted(events.UserMessage("hello", ("a.png",))), "attached: a.png"),
    (events.Steered(events.UserMessage("meanwhile")), "meanwhile"),
    (events.TextDelta("an answer"), "an answer"),
    (events.ThinkingDelta("a thought"), "a thought"),
    (events.ToolRequested("c", "Write", "edit", {"file_path": "a"}, "Write to a"), '{"file_path": "a"}'),
    (events.ToolAnswered("c", True, "ana"), "approved by ana"),
    (events.ToolStarted("c", "Write"), "runs Write"),
    (events.ToolFinished("c", "Write", "error", "no room"), "no room"),
    (events.ToolCancelled("c", "not now"), "cancelled: not now"),
    (events.Progress("working"), ""),
    (events.Notice("by the way"), "by the way"),
    (events.Plan((events.PlanEntry("look around", status="completed"),)), "[x] look around"),
    (events.Audio(b"\0\0" * 8000, 16_000), "0.5 s of sound"),
    (events.Extension("node", {"n": 1}), 'node: {"n": 1}'),
    (events.SessionIdentified("its own"), "the agent's own session: its own"),
    (events.Failed("provider", "overloaded", True), "provider: overloaded (worth another try)"),
    (events.TurnEnded("success", Usage(1, 2)), "success, tokens: 1 in, 2 out"),
    (events.ModeChanged("yolo"), "approval mode: yolo"),
    (events.Granted("edit"), "granted for the session: every `edit` tool"),
    (events.GrantRevoked("edit", outside=True), "taken back: every `edit` tool (`Edit`), outside"),
    (events.HistoryInjected("before"), "told what was said before: before"),
]


def test_every_public_event_is_one_that_these_tests_know() -> None:
    assert {type(event) for event, _ in PUBLIC} == set(events.EVENTS) - set(PRIVATE)


@pytest.mark.parametrize(("event", "words"), PUBLIC, ids=lambda value: type(value).__name__)
def test_every_public_event_can_be_read_in_both_forms(event: Event, words: str) -> None:
    found = told(event)
    assert words in "\n".join(as_text(block)[1] for block in found)
    assert words in "\n".join(as_markdown(block) for block in found)


def test_a_picture_is_told_of_and_not_printed() -> None:
    (block,) = told(events.ToolFinished("c", "Screenshot", "success", "aGVsbG8=" * 100, "image"))
    assert block.text == "(an image, 800 characters of base64)"


def test_a_diff_is_marked_as_one_in_markdown() -> None:
    (block,) = told(events.ToolFinished("c", "Edit", "success", "-a\n+b\n", "diff"))
    assert as_markdown(block) == "**Edit: success**\n\n```diff\n-a\n+b\n```\n"


def test_output_with_fences_in_it_cannot_close_its_own() -> None:
    (block,) = told(events.ToolFinished("c", "Read", "success", "````\n# not a heading"))
    text = as_markdown(block)
    assert text.count("`````") == 2
    assert text.rstrip().endswith("`````")


def test_several_lines_stand_beside_their_label() -> None:
    label, text = as_text(TranscriptBlock("agent", "one\ntwo\n"))
    first, second = f"{label}  {text}".split("\n")
    assert first.index("one") == second.index("two")


def test_control_characters_and_lone_surrogates_are_shown_and_not_obeyed() -> None:
    assert printable("a\x1b[2J\x07\x9b\ud800\r\n\tz") == "a\\x1b[2J\\x07\\x9b\\ud800\\x0d\n\tz"


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (None, "usage not known"),
        (Usage(), "usage not known"),
        (Usage(0, 0), "tokens: 0 in, 0 out"),
        (Usage(1, None, 2, 3), "tokens: 1 in, 2 read from the cache, 3 written to the cache"),
    ],
)
def test_usage_that_is_absent_is_not_told_as_zero(usage: Usage | None, words: str) -> None:
    assert transcript.tokens(usage) == words


def test_another_agent_is_told_what_was_said_and_of_a_long_talk_the_newest_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = [events.TurnStarted(events.UserMessage("first")), events.ThinkingDelta("hm"), events.TextDelta("one")]
    talk += [events.TurnStarted(events.UserMessage("second")), events.TextDelta("two")]
    whole = "User: first\n\nAssistant: one\n\nUser: second\n\nAssistant: two"
    said = sum(map(len, whole.split("\n\n")))
    monkeypatch.setattr(transcript, "MOST_DIALOGUE", said)
    assert transcript.dialogue(_records(talk)) == whole
    monkeypatch.setattr(transcript, "MOST_DIALOGUE", said - 1)
    cut = transcript.dialogue(_records(talk))
    assert (
        cut == "(Earlier parts of the conversation are not shown.)\n\nAssistant: one\n\nUser: second\n\nAssistant: two"
    )
    monkeypatch.setattr(transcript, "MOST_DIALOGUE", 5)
    assert transcript.dialogue(_records(talk[:1])) == "User: ..."


def _records(talk: list[events.Event]) -> list[Envelope]:
    return [Envelope("s", number, 1, 0.0, event) for number, event in enumerate(talk, 1)]


def test_of_a_graphs_turn_there_is_what_was_said_its_way_and_how_long_it_can_be_heard() -> None:
    way = {"nodes": [{"name": "guard", "exit": "not_triggered"}, {"name": "answer"}], "wall_ms": 12.0, "a": "b" * 999}
    said = told(
        events.Progress("model: 50 %"),
        events.Extension("node_event", {"node": "order", "type": "tool_call", "pairs": {"tool_name": "order"}}),
        events.TextDelta("On"),
        events.Audio(b"\0\0" * 8000, 16_000),
        events.TextDelta("ce."),
        events.Audio(b"\0\0" * 8000, 16_000),
        events.Extension("turn_diagnostics", way),
    )
    assert [(block.kind, block.text) for block in said] == [
        ("note", "[order: tool_call] tool_name=order"),
        ("agent", "Once."),
        ("note", "1.0 s of sound"),
        ("note", "(guard not_triggered > answer; 12 ms)"),
    ]
