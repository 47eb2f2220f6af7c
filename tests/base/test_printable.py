"""Text that does nothing but appear."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.printable import printable, printable_line, without_controls, without_directions

HEBREW = "\u05e9\u05dc\u05d5\u05dd"
#: What turns the direction of writing, and what nudges it.
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
MARKS = "\u061c\u200e\u200f"


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable("a\tb\nc\x1b[2J\x9b\r\ud800ü") == "a\tb\nc\\x1b[2J\\x9b\\x0d\\ud800ü"


def test_a_name_stays_in_its_line() -> None:
    assert printable_line("a\tb\nc\x1b]0;x\x07") == "a\\tb\\nc\\x1b]0;x\\x07"


def test_control_characters_are_replaced_or_left_out() -> None:
    assert without_controls("a\x00b\x85\t\n") == "ab\t\n"
    assert without_controls("a\x00b", "?") == "a?b"


def test_what_turns_the_direction_of_writing_is_shown_and_letters_stay() -> None:
    assert printable(f"a\u202eb {HEBREW}") == f"a\\u202eb {HEBREW}"
    for char in TURNS:
        assert printable(char) == f"\\u{ord(char):04x}"
    assert printable(f"{HEBREW}!{MARKS}") == f"{HEBREW}!"
    assert without_directions(f"{TURNS}{HEBREW}{MARKS}\u200d") == f"{HEBREW}\u200d"
    # Whoever sends a text on leaves its directions to those who show it.
    assert without_controls(f"\u200f{HEBREW}\u202e", "?") == f"\u200f{HEBREW}\u202e"


@given(st.text(st.characters()))
def test_either_way_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for shown in (printable(text), without_controls(text)):
        assert not [char for char in shown if (char < " " and char not in "\t\n") or "\x7f" <= char <= "\x9f"]
        shown.encode()
    assert not set(printable(text)) & set(TURNS + MARKS)
