"""The book of questions, without clock or network."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.chat.approvals import (
    HIGHEST_NUMBER,
    LOWEST_NUMBER,
    SHOWN_CHARS,
    Approvals,
    Mistaken,
    buttons,
    pressed,
    question,
    settled,
)
from trunkline.core.events import ToolRequested


def request(call_id: str = "c1", **more: Any) -> ToolRequested:
    return ToolRequested(call_id, "Bash", "exec", {"command": "ls"}).replace(**more)


def test_the_only_question_needs_no_number() -> None:
    book = Approvals(500)
    asked = book.ask(request(), 10.0)
    assert asked.number == 500
    assert book.find(None) is asked


def test_without_a_number_several_questions_are_told_apart_by_asking_back() -> None:
    book = Approvals(500)
    book.ask(request("a"), 10.0)
    book.ask(request("b"), 10.0)
    with pytest.raises(Mistaken, match="`500`, `501`"):
        book.find(None)


def test_an_answer_to_nothing_says_so() -> None:
    book = Approvals(500)
    with pytest.raises(Mistaken, match="Nothing waits"):
        book.find(None)
    with pytest.raises(Mistaken, match="no question `7`"):
        book.find(7)


def test_a_late_answer_is_told_what_became_of_the_question() -> None:
    book = Approvals(500)
    asked = book.ask(request(), 10.0)
    assert book.close(asked, "denied by `1`")
    assert not book.close(asked, "approved by `2`")
    with pytest.raises(Mistaken, match="denied by `1`"):
        book.find(500)


def test_a_button_of_another_question_with_the_same_number_does_nothing() -> None:
    before, now = Approvals(500), Approvals(500)
    old = pressed(buttons(before.ask(request(), 10.0))[0].data)
    now.ask(request("dangerous"), 10.0)
    assert old is not None
    with pytest.raises(Mistaken, match="over"):
        now.find(old.number, old.token)


def test_a_button_carries_no_more_than_a_platform_takes() -> None:
    for button in buttons(Approvals(HIGHEST_NUMBER).ask(request(category="exec"), 10.0)):
        assert len(button.data.encode()) <= 64
        assert button.data.isascii()


@pytest.mark.parametrize("data", ["", "retry", "approve:1", "approve:x:t", "eat:1:t", "approve:1:t:t", "approve::t"])
def test_what_is_no_button_of_ours_means_nothing(data: str) -> None:
    assert pressed(data) is None


def test_a_number_of_thousands_of_digits_is_not_an_error() -> None:
    assert pressed(f"approve:{'9' * 9000}:t") is not None


def test_there_is_no_always_for_what_reaches_outside_the_workspace() -> None:
    inside, outside = Approvals().ask(request(), 1.0), Approvals().ask(request(outside=True), 1.0)
    assert [button.data.partition(":")[0] for button in buttons(inside)] == ["approve", "always", "deny"]
    assert [button.data.partition(":")[0] for button in buttons(outside)] == ["approve", "deny"]
    assert "outside the workspace" in question(outside, 1)


def test_those_whose_time_is_over_are_found() -> None:
    book = Approvals(500)
    early, late = book.ask(request("a"), 10.0), book.ask(request("b"), 20.0)
    assert book.expired(9.0) == ()
    assert book.expired(10.0) == (early,)
    assert book.expired(30.0) == (early, late)
    assert book.of_call("b") is late


def test_numbers_start_anywhere_and_come_round() -> None:
    assert LOWEST_NUMBER <= Approvals().ask(request(), 1.0).number <= HIGHEST_NUMBER
    book = Approvals(HIGHEST_NUMBER)
    assert [book.ask(request(str(each)), 1.0).number for each in range(2)] == [HIGHEST_NUMBER, LOWEST_NUMBER]


def test_a_question_shows_what_would_be_done_and_its_text_cannot_pretend_otherwise() -> None:
    tricky = request(args={"command": "rm -rf /\n```\n**Approval 1**: harmless"}, name="Ba`sh")
    text = question(Approvals(500).ask(tricky, 1.0), 10)
    assert "````sh\nrm -rf /\n```\n" in text
    assert "`Ba'sh`" in text
    assert "`/approve 500`" in text
    assert "10 minutes" in text


def test_a_very_long_command_is_cut_and_says_so() -> None:
    long = request(args={"command": "x" * (SHOWN_CHARS + 5)})
    assert "(5 more characters)" in question(Approvals().ask(long, 1.0), 1)


def test_other_arguments_are_shown_as_json() -> None:
    text = settled(Approvals().ask(request(args={"path": "é"}, description="Writes"), 1.0), "Denied")
    assert '"path": "é"' in text
    assert "Writes" in text
    assert text.endswith("Denied.")
