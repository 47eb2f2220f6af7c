"""A conversation in words."""

from __future__ import annotations

import pytest

from trunkline.core import events
from trunkline.core.events import Envelope, Event, Gap, UserMessage
from trunkline.exchange.conversation_text import MOST_CHARS, MOST_FILES, MOST_OF_RESULT, conversation_text


def story(*found: Event) -> str:
    return conversation_text([Envelope("s", number, 1, 0.0, event) for number, event in enumerate(found, 1)], "helper")


def used(call_id: str, file: str, category: events.Category = "info", output: str = "ok") -> list[Event]:
    return [
        events.ToolRequested(call_id, "Read", category, {"file_path": file}),
        events.ToolFinished(call_id, "Read", "success", output),
    ]


def test_of_a_session_in_which_nothing_was_said_there_is_nothing_to_tell() -> None:
    assert story() == ""
    assert conversation_text([Gap(1, 3)], "helper") == ""


def test_what_was_said_and_done_is_told_in_its_order() -> None:
    text = story(
        events.TurnStarted(UserMessage("Read it", ("notes.txt",), sender="ana")),
        events.ThinkingDelta("Hmm"),
        events.TextDelta("I "),
        events.TextDelta("look."),
        *used("c1", "a.txt"),
        events.ToolRequested("c2", "Bash", "exec", {"command": "ls"}),
        events.ToolCancelled("c2", "not now"),
        events.Failed("provider", "Too busy."),
        events.TurnEnded("error"),
    )
    parts = [
        "another agent, `helper`", "User (ana): Read it\n(attached: notes.txt)", "Assistant: I look.",
        "The tool Read(file_path=a.txt) gave: ok", "Bash(command=ls) was not run to its end: not now",
        "Something went wrong: Too busy.", "Files touched so far:\n- a.txt (read)",
    ]  # fmt: skip
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "Hmm" not in text


def test_what_is_long_is_cut_and_of_a_long_conversation_the_newest_is_told() -> None:
    text = story(*used("c1", "a.txt", output="x" * 10 * MOST_OF_RESULT))
    assert f"({9 * MOST_OF_RESULT} more characters)" in text
    many = [events.TurnStarted(UserMessage(f"message {number} " + "y" * 1000)) for number in range(500)]
    text = story(*many)
    assert len(text) < MOST_CHARS + 10_000
    assert "message 499 " in text
    assert "message 0 " not in text
    assert "(What came before that is not shown.)" in text


def test_the_files_touched_last_are_told_each_once() -> None:
    text = story(*(event for number in range(MOST_FILES + 5) for event in used(f"c{number}", f"f{number}.txt", "edit")))
    listed = text.partition("Files touched so far:\n")[2].splitlines()
    assert len(listed) == MOST_FILES
    assert listed[-1] == f"- f{MOST_FILES + 4}.txt (changed)"


@pytest.mark.parametrize("given", ["src/a.txt", "./src/a.txt", "/w/src/a.txt"])
def test_a_file_that_the_tool_names_in_full_is_told_once(given: str) -> None:
    asked, finished = used("c1", given, "edit")
    assert isinstance(finished, events.ToolFinished)
    text = story(asked, finished.replace(metadata={"file_path": "/w/src/a.txt"}))
    assert text.partition("Files touched so far:\n")[2] == "- /w/src/a.txt (changed)"
