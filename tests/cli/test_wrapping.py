"""Lines that end between words."""

from __future__ import annotations

from trunkline.cli.wrapping import commands_apart, wrapped


def test_lines_end_between_words_and_keep_their_indent() -> None:
    assert wrapped("one two three", 8) == "one two\nthree"
    assert wrapped("  one two three", 8) == "  one\n  two\n  three"
    assert wrapped("one\n\ntwo", 8) == "one\n\ntwo"
    assert wrapped("two three", 9, taken=7) == "two\nthree"


def test_what_somebody_will_copy_stays_in_one_piece() -> None:
    key = "0x" + "a" * 64
    assert wrapped(f"sign in with the key {key} here", 40) == f"sign in with the key\n{key}\nhere"
    assert wrapped("Run `chmod 600 agent.json`, please", 12) == "Run\n`chmod 600 agent.json`,\nplease"


def test_a_command_that_mends_something_has_a_line_of_its_own_whatever_follows_it() -> None:
    told = "The engine is missing. Add it with `/a b/python -m pip install 'x[y]'`. The file has an unknown key."
    assert commands_apart(told) == (
        "The engine is missing. Add it with:\n    /a b/python -m pip install 'x[y]'\nThe file has an unknown key."
    )
    assert commands_apart("Get it with `trunkline models pull x`.") == "Get it with:\n    trunkline models pull x"
    assert commands_apart("Say it with `-p TEXT`, or pipe it in.") == "Say it with `-p TEXT`, or pipe it in."


def test_a_command_with_a_line_of_its_own_is_never_broken() -> None:
    assert wrapped(commands_apart("It is gone. Add it with `python -m pip install x`. So it is."), 14) == (
        "It is gone.\nAdd it with:\n    python -m pip install x\nSo it is."
    )
