"""The book of questions, without clock or network."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.chat.approvals import (
    HIGHEST_NUMBER,
    LOWEST_NUMBER,
    READING_SECONDS,
    ROOM,
    Approvals,
    Mistaken,
    PendingApproval,
    buttons,
    pressed,
    question,
    settled,
    whole,
)
from trunkline.core.events import ToolRequested
from trunkline.core.preview import DESCRIPTION_CHARS


def request(call_id: str = "c1", **more: Any) -> ToolRequested:
    return ToolRequested(call_id, "Bash", "exec", {"command": "ls"}).replace(**more)


def enter(book: Approvals, which: ToolRequested, deadline: float = 10.0, at: float = 0.0) -> PendingApproval:
    asked = book.ask(which, deadline, at)
    assert asked is not None
    return asked


def test_the_only_question_needs_no_number() -> None:
    book = Approvals(500)
    asked = enter(book, request(), 10.0)
    assert asked.number == 500
    assert book.find(None) is asked


def test_without_a_number_several_questions_are_told_apart_by_asking_back() -> None:
    book = Approvals(500)
    enter(book, request("a"), 10.0)
    enter(book, request("b"), 10.0)
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
    asked = enter(book, request(), 10.0)
    assert book.close(asked, "denied by `1`")
    assert not book.close(asked, "approved by `2`")
    for token in (None, asked.token):
        with pytest.raises(Mistaken, match="is over: denied by `1`"):
            book.find(500, token)


def test_a_button_of_another_question_with_the_same_number_does_nothing() -> None:
    before, now = Approvals(500), Approvals(500)
    old = pressed(buttons(enter(before, request(), 10.0))[0].data)
    enter(now, request("dangerous"), 10.0)
    assert old is not None
    with pytest.raises(Mistaken, match="over"):
        now.find(old.number, old.token)


def test_a_button_carries_no_more_than_a_platform_takes() -> None:
    for button in buttons(enter(Approvals(HIGHEST_NUMBER), request(category="exec"), 10.0)):
        assert len(button.data.encode()) <= 64
        assert button.data.isascii()


@pytest.mark.parametrize("data", ["", "retry", "approve:1", "approve:x:t", "eat:1:t", "approve:1:t:t", "approve::t"])
def test_what_is_no_button_of_ours_means_nothing(data: str) -> None:
    assert pressed(data) is None


def test_a_number_of_thousands_of_digits_is_not_an_error() -> None:
    assert pressed(f"approve:{'9' * 9000}:t") is not None


def test_always_says_when_it_reaches_outside_the_workspace() -> None:
    inside, outside = enter(Approvals(), request(), 1.0), enter(Approvals(), request(outside=True), 1.0)
    for asked, always in ((inside, "Always (exec)"), (outside, "Always (exec, outside too)")):
        assert [button.data.partition(":")[0] for button in buttons(asked)] == ["approve", "always", "deny"]
        assert buttons(asked)[1].label == always
    assert "outside the workspace" in question(outside, 1)


def test_there_is_no_always_to_what_is_asked_about_each_time() -> None:
    for asking in ("ask", "confirm"):
        asked = enter(Approvals(), request().replace(asking=asking), 1.0)
        assert [button.label for button in buttons(asked)] == ["Approve", "Deny"]


def test_those_whose_time_is_over_are_found() -> None:
    book = Approvals(500)
    early, late = enter(book, request("a"), 10.0), enter(book, request("b"), 20.0)
    assert book.expired(9.0) == ()
    assert book.expired(10.0) == (early,)
    assert book.expired(30.0) == (early, late)
    assert book.of_call("b") is late


def test_numbers_start_anywhere_and_come_round() -> None:
    assert LOWEST_NUMBER <= enter(Approvals(), request(), 1.0).number <= HIGHEST_NUMBER
    book = Approvals(HIGHEST_NUMBER)
    assert [enter(book, request(str(each)), 1.0).number for each in range(2)] == [HIGHEST_NUMBER, LOWEST_NUMBER]


def test_a_question_shows_what_would_be_done_and_its_text_cannot_pretend_otherwise() -> None:
    tricky = request(args={"command": "rm -rf /\n```\n**Approval 1**: harmless"}, name="Ba`sh")
    text = question(enter(Approvals(500), tricky, 1.0), 600)
    assert "````sh\nrm -rf /\n```\n" in text
    assert "`Ba'sh`" in text
    assert "`/approve 500`" in text
    assert "10 minutes" in text


def test_of_a_very_long_command_both_ends_are_seen_and_how_much_is_between() -> None:
    end = ROOM.chars // 3
    long = request(args={"command": "a" * (ROOM.chars - end) + "hidden" + "z" * (end - 6) + "; rm x"})
    asked = enter(Approvals(500), long)
    text = question(asked, 1)
    assert f"{'a' * (ROOM.chars - end)}\n[... 6 characters are not shown ...]\nz" in text
    assert "z; rm x\n```" in text
    assert "hidden" not in text
    assert "`/show 500` shows all of it." in text
    assert buttons(asked)[-1].label == "Show all"
    assert "hidden" in whole(long)


def test_a_command_does_not_hide_the_other_arguments() -> None:
    asked = enter(Approvals(), request(args={"command": "ls", "cwd": "/etc", "sudo": True, "content": "harmless"}))
    text = question(asked, 1)
    assert "```sh\nls\n```" in text
    assert 'cwd: "/etc"\nsudo: true\ncontent: "harmless"' in text
    assert "/show" not in text
    assert [button.label for button in buttons(asked)] == ["Approve", "Always (exec)", "Deny"]


def test_a_description_can_neither_hide_the_command_nor_speak_for_the_bridge() -> None:
    lies = "ok\n```\n**Approval 7**: harmless\n[here](https://evil.example)\n" + "x" * 20_000
    text = question(enter(Approvals(500), request(description=lies)), 1)
    assert len(text) < DESCRIPTION_CHARS + 300
    head, says, *rest = text.split("\n")
    assert says.startswith("It says: `ok ''' **Approval 7**: harmless [here](https://evil.example) xxx")
    assert says.endswith(" more characters)`")
    assert rest[:3] == ["```sh", "ls", "```"]
    assert "500" in head


def test_characters_that_hide_or_turn_round_are_seen() -> None:
    tricky = request(
        args={"command": "ls \u202egnp.exe\x1b[8m\r\u200b\ttab", "path": "a\u2066b"},
        description="a\u202eb",
        name="Ba\u200dsh",
    )
    text = question(enter(Approvals(), tricky), 1)
    assert "ls <U+202E>gnp.exe<U+001B>[8m<U+000D><U+200B>\ttab" in text
    assert "a<U+2066>b" in text
    assert "a<U+202E>b" in text
    assert "Ba<U+200D>sh" in text


@pytest.mark.parametrize(
    ("seconds", "said"), [(6, "6 seconds"), (1, "1 second"), (60, "1 minute"), (90, "1.5 minutes"), (600, "10 minutes")]
)
def test_a_time_is_told_as_people_say_it(seconds: float, said: str) -> None:
    assert f"denied in {said}." in question(enter(Approvals(), request()), seconds)


def test_a_number_that_waits_is_not_given_twice_and_no_question_is_lost() -> None:
    book = Approvals(LOWEST_NUMBER)
    old = enter(book, request("old"))
    for each in range(HIGHEST_NUMBER - LOWEST_NUMBER):
        book.close(enter(book, request(str(each))), "denied")
    enter(book, request("new"))
    assert book.find(LOWEST_NUMBER) is old
    for each in range(HIGHEST_NUMBER - LOWEST_NUMBER - 1):
        enter(book, request(f"more {each}"))
    assert len(book.waiting) == HIGHEST_NUMBER - LOWEST_NUMBER + 1
    assert book.ask(request("too many"), 10.0, 0.0) is None
    assert book.find(LOWEST_NUMBER) is old


def test_a_yes_without_a_number_is_for_a_question_that_its_author_can_have_read() -> None:
    book = Approvals(500)
    asked = enter(book, request(), at=1000.0)
    for written in (None, 999.0, 1000.0, 1000.0 + READING_SECONDS / 2):
        with pytest.raises(Mistaken, match="`/approve 500`"):
            book.find_read(written)
    assert book.find_read(1000.0 + READING_SECONDS) is asked
    enter(book, request("b"), at=1000.0)
    with pytest.raises(Mistaken, match="Several"):
        book.find_read(2000.0)


def test_other_arguments_are_shown_by_their_names() -> None:
    text = settled(enter(Approvals(), request(args={"path": "é"}, description="Writes"), 1.0), "Denied")
    assert "path: é" in text
    assert "Writes" in text
    assert text.endswith("Denied.")
