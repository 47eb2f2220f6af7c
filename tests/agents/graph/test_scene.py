"""What of a model's words is a character's line, and how each of them sees a scene."""

from __future__ import annotations

import pytest

from trunkline.agents.graph.scene import Line, cleaned, is_complete, lines_of, seen_by, whole_sentences
from trunkline.models.engines import ChatMessage


@pytest.mark.parametrize(
    ("text", "line", "ends"),
    [
        ("Good day.", "Good day.", False),
        ("\n  Good   day. \nBert: No!", "Good day.", False),
        ("Anna: Good day.", "Good day.", False),
        ("**anna:** Good day.", "Good day.", False),
        ("Anna:\nGood day.", "Good day.", False),
        ("Annabel: is here.", "Annabel: is here.", False),
        ("Good night. [END] Bert: wait", "Good night.", True),
        ("[END]", "", True),
        (" \n ", "", False),
        ("Anna:", "", False),
    ],
)
def test_a_line_is_the_first_one_that_says_something(text: str, line: str, ends: bool) -> None:
    assert cleaned(text, "Anna") == (line, ends)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("Good day", False),
        ("\n\nGood", False),
        ("Anna:\n", False),
        ("Good day\n", True),
        ("a [END]", True),
        ("", False),
    ],
)
def test_a_line_is_complete_when_nothing_can_change_it(text: str, complete: bool) -> None:
    assert is_complete(text, "Anna") == complete


@pytest.mark.parametrize(
    ("text", "kept"), [("One. Two", "One."), ("One", "One"), ("One? Two! Thr", "One? Two!"), ("1.5 is", "1.5 is")]
)
def test_what_was_cut_off_ends_with_its_last_sentence(text: str, kept: str) -> None:
    assert whole_sentences(text) == kept


def test_a_name_with_signs_is_no_pattern() -> None:
    assert cleaned("(.*+?: ha", "(.*+?") == ("ha", False)


def test_an_earlier_scene_is_known_again_and_each_sees_its_own_part() -> None:
    said = [ChatMessage("user", "Well?"), ChatMessage("assistant", "Anna: Yes.\nBert: No.\nNobody: what\n\nsilence")]
    lines = lines_of(said, ["Anna", "Bert"])
    assert lines == [Line("", "Well?"), Line("Anna", "Yes."), Line("Bert", "No."), Line("", "Nobody: what"),
                     Line("", "silence")]  # fmt: skip
    assert [(each.role, each.text) for each in seen_by("Anna", lines)] == [
        ("user", "Well?"),
        ("assistant", "Yes."),
        ("user", "Bert: No.\nNobody: what\nsilence"),
    ]
