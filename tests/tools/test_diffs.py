"""Diffs that programs can apply."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import require
from trunkline.tools.diffs import split_lines, unified_diff
from trunkline.tools.replacing import NoReplacement, TextChange, find_replacements, replaced

NO_LIMIT = 10**9


def diff(old: str, changes: list[TextChange], name: str = "file", limit: int = NO_LIMIT) -> str:
    return unified_diff(old, changes, name, limit)


def apply(old: str, patch: str) -> str:
    """Does what `patch` does, and minds every count and every line of context."""
    lines, result, position = split_lines(old), [], 0
    patch_lines = split_lines(patch)[2:]
    at = 0
    while at < len(patch_lines):
        assert patch_lines[at].startswith("@@ -")
        old_range, new_range = patch_lines[at].split()[1:3]
        old_start, old_count = _range(old_range)
        new_start, new_count = _range(new_range)
        result += lines[position:old_start]
        position = old_start
        assert len(result) == new_start
        at += 1
        while old_count or new_count:
            sign, line = patch_lines[at][0], patch_lines[at][1:]
            at += 1
            if at < len(patch_lines) and patch_lines[at].startswith("\\"):
                line = line.removesuffix("\n")
                at += 1
            if sign in " -":
                assert lines[position] == line
                position, old_count = position + 1, old_count - 1
            if sign in " +":
                result.append(line)
                new_count -= 1
    return "".join(result + lines[position:])


def _range(text: str) -> tuple[int, int]:
    start, _, count = text[1:].partition(",")
    size = int(count) if count else 1
    return int(start) - (size > 0), size


def test_it_looks_as_everybody_knows_it() -> None:
    old = "".join(f"line {number}\n" for number in range(1, 10))
    changes = find_replacements(old, "line 5", "changed", every=False)
    assert diff(old, changes, "src/a.py") == (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n"
        "-line 5\n+changed\n line 6\n line 7\n line 8\n"
    )


def test_lines_that_only_surround_a_change_are_context() -> None:
    old = "a\nb\nc\nd\n"
    text = diff(old, find_replacements(old, "a\nb\nc\nd\n", "a\nb\nX\nd\n", every=False))
    assert [line for line in text.split("\n")[3:] if line.startswith(("-", "+"))] == ["-c", "+X"]


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    old = "".join(f"{number % 10}\n" for number in range(30))
    text = diff(old, find_replacements(old, "5\n", "5\n5b\n", every=True))
    assert text.count("@@ -") == 3
    assert "@@ -14,6 +15,7 @@" in text


def test_a_new_file_comes_from_nothing() -> None:
    text = unified_diff("", [TextChange(0, 0, "one\ntwo")], "new", NO_LIMIT, created=True)
    assert text == "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"


def test_names_that_would_be_misread_are_quoted() -> None:
    change = [TextChange(0, 1, "b")]
    assert diff("a\n", change, "my file").startswith("--- a/my file\t\n+++ b/my file\t\n")
    assert diff("a\n", change, 'q"\n').startswith('--- "a/q\\"\\n"\n')
    assert diff("a\n", change, "/etc/x").startswith("--- a/etc/x\n")


# (old text, looked for, put there, everywhere)
CASES = [
    ("a\nb\nc\n", "b", "x", False),
    ("a\nb\nc", "c", "x", False),
    ("a\nb\nc", "c", "x\n", False),
    ("a\nb\nc\n", "c\n", "c", False),
    ("a\nb\nc\n", "b\n", "", False),
    ("a\nb\nc\n", "\n", "", True),
    ("a\r\nb\r\nc\r\n", "b", "x\ny", False),
    ("a\r\nb", "b", "c", False),
    ("a", "a", "", False),
    ("a\n", "a\n", "", False),
    ("x\n" * 50, "x\n", "y\n", True),
    ("x\n\n" * 50, "\n\n", "\n", True),
    ("".join(f"{n}\n" for n in range(1000)), "7", "seven\n", True),
    ("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nf\ng\nh\n", "h\ng\nc\nd\nX\nf\nb\na\n", False),
    ("\N{GRINNING FACE}\n\u2028\n", "\u2028", "\x0c", False),
]


@pytest.mark.parametrize(("old", "what", "by", "every"), CASES)
def test_what_it_says_is_what_was_done(old: str, what: str, by: str, every: bool) -> None:
    changes = find_replacements(old, what, by, every)
    assert apply(old, diff(old, changes)) == replaced(old, changes)


@given(
    st.text("ab\n\r", max_size=60), st.text("ab\n", min_size=1, max_size=4), st.text("abx\n", max_size=5), st.booleans()
)
def test_what_it_says_is_what_was_done_for_any_text(old: str, what: str, by: str, every: bool) -> None:
    try:
        changes = find_replacements(old, what, by, every)
    except NoReplacement:
        return
    if replaced(old, changes) != old:
        assert apply(old, diff(old, changes)) == replaced(old, changes)


@pytest.mark.process
@pytest.mark.parametrize("program", ["patch", "git"])
@pytest.mark.parametrize(("old", "what", "by", "every"), CASES)
def test_other_programs_apply_it(tmp_path: Path, program: str, old: str, what: str, by: str, every: bool) -> None:
    require(program, shutil.which(program) is not None, f"install {program}")
    changes = find_replacements(old, what, by, every)
    (tmp_path / "my file").write_bytes(old.encode())
    (tmp_path / "patch").write_bytes(diff(old, changes, "my file").encode())
    commands = {
        "patch": ["patch", "--binary", "-p1", "-F0", "-s", "-i", "patch"],
        "git": ["git", "apply", "--whitespace=nowarn", "patch"],
    }
    environment = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "HOME": str(tmp_path)}
    subprocess.run(commands[program], cwd=tmp_path, check=True, capture_output=True, env=environment)
    new = replaced(old, changes)
    # An empty file may as well be gone for `patch`.
    result = (tmp_path / "my file").read_bytes().decode() if (tmp_path / "my file").exists() else ""
    assert result == new


def test_too_long_a_diff_loses_whole_hunks_and_says_so() -> None:
    old = "".join(f"{number % 10}\n" for number in range(1000))
    changes = find_replacements(old, "5\n", "five\n", every=True)
    text = diff(old, changes, limit=500)
    body, mark, rest = text.partition("... [truncated ")
    assert len(text) <= 500
    assert mark
    assert rest.endswith(" chars] ...\n\n")
    assert apply(old, body) == replaced(old, changes[: body.count("@@ -")])


def test_the_first_hunk_is_there_even_if_it_is_too_long() -> None:
    text = diff("a\n", [TextChange(0, 1, "x" * 1000)], limit=100)
    assert "+xxx" in text


@pytest.mark.slow
def test_large_files_take_time_in_proportion() -> None:
    rng = random.Random(1)
    old = "".join(f"{rng.random()}\n" for _ in range(200_000))
    changes = find_replacements(old, "0.1", "zero point one", every=True)
    assert len(changes) > 10_000
    started = time.process_time()
    text = diff(old, changes)
    # A comparison of all lines with all lines takes hours.
    assert time.process_time() - started < 10
    assert apply(old, text) == replaced(old, changes)


def test_a_file_replaced_as_a_whole_is_not_compared_line_by_line() -> None:
    old = "".join(f"old {number}\n" for number in range(50_000))
    new = "".join(f"new {number}\n" for number in range(50_000))
    started = time.process_time()
    text = diff(old, [TextChange(0, len(old), new)])
    assert time.process_time() - started < 5
    assert apply(old, text) == new
