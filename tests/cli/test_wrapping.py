"""Lines that end between words."""

from __future__ import annotations

from trunkline.cli.wrapping import wrapped


def test_lines_end_between_words_and_keep_their_indent() -> None:
    assert wrapped("one two three", 8) == "one two\nthree"
    assert wrapped("  one two three", 8) == "  one\n  two\n  three"
    assert wrapped("one\n\ntwo", 8) == "one\n\ntwo"
    assert wrapped("two three", 9, taken=7) == "two\nthree"


def test_what_somebody_will_copy_stays_in_one_piece() -> None:
    key = "0x" + "a" * 64
    assert wrapped(f"sign in with the key {key} here", 40) == f"sign in with the key\n{key}\nhere"
    assert wrapped("Run `chmod 600 agent.json`, please", 12) == "Run\n`chmod 600 agent.json`,\nplease"
    assert wrapped("Add it with: python -m pip install x", 14) == "Add it with:\npython -m pip install x"
