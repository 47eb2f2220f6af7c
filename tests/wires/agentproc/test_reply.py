"""What an agent says becomes one reply."""

from __future__ import annotations

from trunkline.wires.agentproc.messages import (
    Body,
    Error,
    Ignored,
    Lost,
    Partial,
    PermissionRequest,
    Result,
    Said,
    SessionId,
)
from trunkline.wires.agentproc.reply import GENERIC_ERROR, GrowingReply


def reply(
    *said: Said, streaming: bool = True, max_chars: int = 8000, suffix: str = "..."
) -> tuple[GrowingReply, list[Said]]:
    taken = GrowingReply(streaming=streaming, max_chars=max_chars, suffix=suffix)
    return taken, taken.take(said)


def test_lines_of_the_body_are_joined_and_blank_ones_are_kept() -> None:
    taken, heard = reply(Body(""), Body("a"), Body(""), Body("b"), Body(""))
    assert taken.text() == "\na\n\nb\n"
    assert heard == []


def test_partials_are_heard_at_once_and_the_body_comes_in_addition() -> None:
    taken, heard = reply(Partial("one "), Body("body"), Partial("two"))
    assert heard == [Partial("one "), Partial("two")]
    assert (taken.text(), taken.partials) == ("body", ["one ", "two"])


def test_partials_are_left_out_when_the_turn_does_not_stream() -> None:
    taken, heard = reply(Partial("one"), Body("body"), streaming=False)
    assert (heard, taken.partials, taken.text()) == ([], [], "body")


def test_an_empty_partial_says_nothing() -> None:
    taken, heard = reply(Partial(""), Partial("", "thinking"))
    assert (heard, taken.partials) == ([], [])


def test_the_last_session_id_counts_also_after_an_error() -> None:
    taken, _ = reply(SessionId("one"), Error("bad"), SessionId("two"))
    assert taken.session_id == "two"


def test_the_first_error_counts_and_silences_everything_but_sessions() -> None:
    taken, heard = reply(Body("x"), Error("first"), Partial("late"), Body("late"), Error("second"), Result("late"))
    assert taken.error == "first"
    assert heard == [Error("first")]
    assert taken.partials == []


def test_a_session_id_is_heard_at_once() -> None:
    assert reply(SessionId("one"), SessionId("two"))[1] == [SessionId("one"), SessionId("two")]


def test_a_line_that_was_too_long_leaves_the_reply_incomplete() -> None:
    taken, heard = reply(Body("a"), Lost("too long"))
    assert (taken.text(), taken.truncated, heard) == ("a", True, [Lost("too long")])
    assert not reply(Body("a"), Ignored("odd"))[0].truncated


def test_an_error_without_a_text_is_an_error_all_the_same() -> None:
    taken, heard = reply(Error("  "))
    assert taken.error == GENERIC_ERROR
    assert heard == [Error(GENERIC_ERROR)]


def test_errors_count_when_the_turn_does_not_stream() -> None:
    taken, heard = reply(Error("bad"), streaming=False)
    assert taken.error == "bad"
    assert heard == [Error("bad")]


def test_a_body_of_exactly_the_limit_is_whole_and_one_character_more_is_cut() -> None:
    exact, _ = reply(Body("12345"), Body("789"), max_chars=9)
    assert (exact.text(), exact.truncated) == ("12345\n789", False)
    longer, _ = reply(Body("12345"), Body("7890"), max_chars=9)
    assert (longer.text(), longer.truncated) == ("12345\n789...", True)


def test_a_line_feed_beyond_the_limit_counts_as_more() -> None:
    taken, _ = reply(Body("12345"), Body(""), max_chars=5)
    assert (taken.text(), taken.truncated) == ("12345...", True)


def test_characters_are_counted_not_bytes() -> None:
    taken, _ = reply(Body("😀😀😀"), max_chars=2)
    assert taken.text() == "😀😀..."


def test_a_limit_of_nothing_leaves_the_suffix() -> None:
    assert reply(Body("abc"), max_chars=0)[0].text() == "..."


def test_partials_together_are_cut_and_the_suffix_is_a_partial_of_its_own() -> None:
    taken, heard = reply(Partial("hello "), Partial("world"), Partial("!"), max_chars=10)
    assert heard == [Partial("hello "), Partial("worl"), Partial("...")]
    assert taken.partials == ["hello ", "worl", "..."]
    assert taken.truncated


def test_without_a_suffix_the_cut_stands_alone() -> None:
    assert reply(Partial("hello"), max_chars=3, suffix="")[1] == [Partial("hel")]


def test_partials_that_fill_the_limit_exactly_are_not_cut_before_more_comes() -> None:
    taken, heard = reply(Partial("12345"), max_chars=5)
    assert heard == [Partial("12345")]
    assert not taken.truncated
    assert taken.take([Partial("6")]) == [Partial("...")]
    assert taken.truncated


def test_sessions_and_errors_count_after_a_cut() -> None:
    taken, _ = reply(Partial("hello"), SessionId("s"), Error("bad"), max_chars=3)
    assert (taken.session_id, taken.error) == ("s", "bad")


def test_what_was_cut_is_not_kept() -> None:
    taken = GrowingReply(streaming=True, max_chars=10, suffix="")
    for _ in range(1000):
        taken.take([Body("x" * 1000)])
    assert sum(map(len, taken._body)) < 50
    assert taken.text() == "x" * 10


def test_a_result_is_the_reply_if_no_piece_of_it_was_shown() -> None:
    assert reply(Result("whole"))[0].text() == "whole"
    assert reply(Partial("who"), Partial("le"), Result("whole"))[0].text() == ""
    assert reply(Partial("who"), Result("whole"), streaming=False)[0].text() == "whole"
    assert reply(Partial("hm", "thinking"), Result("whole"))[0].text() == "whole"


def test_a_second_result_is_left_out_with_a_warning() -> None:
    taken, heard = reply(Result("one"), Result("two"))
    assert taken.text() == "one"
    assert [type(said) for said in heard] == [Ignored]


def test_thinking_is_heard_and_does_not_count_as_answer() -> None:
    taken, heard = reply(Partial("hm", "thinking"), max_chars=1)
    assert heard == [Partial("hm", "thinking")]
    assert taken.partials == []


def test_usage_comes_with_the_result_or_with_the_error() -> None:
    assert reply(Result("x", {"input_tokens": 1}))[0].usage == {"input_tokens": 1}
    assert reply(Error("x", {"input_tokens": 2}))[0].usage == {"input_tokens": 2}


def test_a_result_or_an_error_concludes() -> None:
    assert not reply(Partial("x"))[0].concluded
    assert reply(Result("x"))[0].concluded
    assert reply(Error("x"))[0].concluded


def test_requests_and_warnings_are_heard() -> None:
    request, warning = PermissionRequest("r1", "Write", {}), Ignored("why")
    assert reply(request, warning)[1] == [request, warning]
