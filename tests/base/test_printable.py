"""Text that does nothing but appear."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.base.printable import printable, without_controls


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable("a\tb\nc\x1b[2J\x9b\r\ud800ü") == "a\tb\nc\\x1b[2J\\x9b\\x0d\\ud800ü"


def test_control_characters_are_replaced_or_left_out() -> None:
    assert without_controls("a\x00b\x85\t\n") == "ab\t\n"
    assert without_controls("a\x00b", "?") == "a?b"


@given(st.text(st.characters()))
def test_either_way_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for shown in (printable(text), without_controls(text)):
        assert not [char for char in shown if (char < " " and char not in "\t\n") or "\x7f" <= char <= "\x9f"]
        shown.encode()
