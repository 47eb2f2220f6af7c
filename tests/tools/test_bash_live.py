from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.redact import MASK, Redactor
from trunkline.tools.bash_live import LIVE_LINES, SILENT_SECONDS, LiveReport, UnreadOutput

SECRET = "tr0ub4dor-and-3"


def test_what_was_taken_does_not_come_again() -> None:
    unread = UnreadOutput(100)
    unread.feed(0, b"one\n")
    unread.feed(1, b"two\n")
    assert unread.take() == ("one\ntwo\n", 0)
    assert unread.take() == ("", 0)


def test_only_the_newest_is_kept_and_the_rest_is_counted() -> None:
    unread = UnreadOutput(5)
    unread.feed(0, b"abc")
    unread.feed(0, b"defgh")
    unread.feed(0, b"ij")
    assert unread.take() == ("fghij", 5)
    unread.feed(0, b"k")
    assert unread.take() == ("k", 0)


def test_a_character_in_two_pieces_is_one() -> None:
    unread = UnreadOutput(100)
    unread.feed(0, "é".encode()[:1])
    assert unread.take() == ("", 0)
    unread.feed(0, "é".encode()[1:])
    assert unread.take() == ("é", 0)


def test_a_secret_in_two_pieces_is_masked() -> None:
    unread = UnreadOutput(100, Redactor([SECRET]))
    unread.feed(0, f"key {SECRET[:6]}".encode())
    before, _ = unread.take()
    unread.feed(0, f"{SECRET[6:]} end".encode())
    after, _ = unread.take()
    unread.finish()
    assert f"{before}{after}{unread.take()[0]}" == f"key {MASK} end"


def test_what_only_looked_like_a_secret_is_told_at_the_end() -> None:
    unread = UnreadOutput(100, Redactor([SECRET]))
    unread.feed(0, SECRET[:6].encode())
    unread.finish()
    assert unread.take() == (SECRET[:6], 0)


@given(st.integers(1, len(SECRET)))
def test_half_of_a_secret_is_not_shown_where_the_beginning_was_dropped(kept: int) -> None:
    unread = UnreadOutput(kept + 40, Redactor([SECRET]))
    unread.feed(0, b"x" * 100 + SECRET.encode() + b" " * 40)
    assert SECRET[-4:] not in unread.take()[0]


def told(*pieces: bytes, seconds: float = 1.0) -> list[str]:
    unread = UnreadOutput(10_000)
    said: list[str] = []
    for piece in pieces:
        unread.feed(0, piece)
    LiveReport(unread, said.append).still(seconds)
    return said


def test_lines_are_told_one_by_one_without_empty_ones() -> None:
    assert told(b"one\n\n  two\n10%\r20%") == ["one", "  two", "10%", "20%"]


def test_of_a_flood_the_newest_lines_are_told() -> None:
    said = told(b"".join(b"%d\n" % number for number in range(100)))
    assert said == ["[90 more lines]", *(str(number) for number in range(100 - LIVE_LINES, 100))]


def test_lines_that_were_not_kept_are_counted_in_a_flood() -> None:
    unread = UnreadOutput(100, Redactor([SECRET]))
    said: list[str] = []
    live = LiveReport(unread, said.append)
    for number in range(1000):
        unread.feed(0, b"%d\n" % number)
    live.still(0.5)
    # The first of what is kept may be the rest of a secret, and is not looked at; its lines are counted all the same.
    assert said == ["[990 more lines]", *(str(number) for number in range(990, 1000))]
    said.clear()
    unread.feed(0, b"x\n" * 1000 + b"and on")
    live.still(1.0)
    assert said == ["[991 more lines]", *["x"] * 9, "and on"]


def test_nothing_is_told_when_nothing_new_came() -> None:
    assert told() == []


def test_silence_is_broken_after_a_while_and_then_begins_again() -> None:
    said: list[str] = []
    live = LiveReport(UnreadOutput(100), said.append)
    for seconds in (1, SILENT_SECONDS, SILENT_SECONDS + 1, 2 * SILENT_SECONDS):
        live.still(seconds)
    assert said == [f"still running after {SILENT_SECONDS:.0f} s", f"still running after {2 * SILENT_SECONDS:.0f} s"]
