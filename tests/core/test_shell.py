"""What a shell would run, read from its command line, against what shells do run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import require
from trunkline.core.rules_commands import allowed, denied, pattern_of
from trunkline.core.shell import parse
from trunkline.core.shell_words import UNKNOWN
from trunkline.core.shell_wrapped import MOST_WORDS, everything

#: Places in which a command may stand.
AROUND = (
    # With a blank before it: `$((` begins an arithmetic expansion.
    " ({})", "{{ {}; }}", "a && {}", "{} && a", "a || {}", "a; {}", "{} | b", "a | {}", "a & {}", "{} &", "a\n{}",
    "{}\n a",
     "a $({})", 'a "$({})"', 'a "x $({}) y" z', "a <({})", "a $(b $({}))", "a ${{x:-$({})}}", "if {}; then a; fi",
    "if a; then {}; else b; fi", "while {}; do b; done", "for x in a b; do {}; done", "for x in $({}); do a; done",
    "! {}", "a # b\n{}", "a 'b' \\\n; {}", "{} 2>&1", "a > $({})", "a <<E\n$({})\nE\n", "a <<'E'\n$(b)\nE\n{}",
    "until a; do {}; done", "a 2>/dev/null || {}", "X=$({}) a",
)  # fmt: skip
QUOTED = ("a", "'rm' x", "rm", "FOO=1 rm x", "\\rm x", '"rm" x', "r'm' x", "sudo rm x", "xargs rm", "/bin/rm x")


@given(st.lists(st.sampled_from(AROUND), max_size=4), st.sampled_from(QUOTED[1:]))
@settings(max_examples=300, deadline=None)
def test_a_command_is_found_wherever_it_stands(around: list[str], command: str) -> None:
    text = command
    for form in around:
        text = form.format(text)
    assert denied(pattern_of("rm:*"), text), text
    innocent = tuple(map(pattern_of, ("a:*", "b:*", "sudo:*", "xargs:*")))
    assert allowed(innocent, text, lambda path: True) is None, text


@given(st.text(max_size=60) | st.text("ab $(){}`'\"\\;&|<>\n#=!*?[]~x,.-", max_size=60))
@settings(max_examples=500, deadline=None)
@example("$(" * 5000)
@example("`" * 5001)
@example('"${' * 5000)
@example("<<a " * 500 + "\n")
@example("sudo " * 20_000)
@example("find -exec " * 5_000)
@example("bash -c " * 5_000)
@example("eval " * 900)
@example("a;" * 40_000)
@example("git -x " * 5_000)
def test_no_text_is_too_much(text: str) -> None:
    found, _ = everything(text)
    assert len(found) <= MOST_WORDS


def ran_by(shell: str, text: str, folder: Path) -> set[str]:
    """The programs that a shell looks for; there are none."""
    script = (
        f'command_not_found_handle() {{ echo "sh: 1: $1: not found" >&2; }}\n{text}\nwait' if shell == "bash" else text
    )
    try:
        done = subprocess.run(
            [shutil.which(shell) or shell, "-c", script],
            cwd=folder, env={"PATH": "/nowhere"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
        )  # fmt: skip
    except (ValueError, UnicodeEncodeError):
        return set()
    return set(re.findall(r"\d: (\S*): not found", done.stderr.decode("utf-8", "replace")))


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash", "dash"])
@given(text=st.text("aab  $(){}`'\"\\;&|<>\n#=!", max_size=24))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(text='a `a \\"; b; a \\"`')
@example(text="a $'\\'; b; \\''")
@example(text='a "${b:-\'}"; b; "\'"')
@example(text="a\\\nb")
@example(text="((a b))")
@example(text="a <<a\n`b`\na\nb")
def test_what_is_certain_is_all_that_shells_run(shell: str, tmp_path: Path, text: str) -> None:
    require(shell, shutil.which(shell) is not None, f"install `{shell}`")
    script = parse(text)
    if not script.certain or any(not command.words[0].static for command in script.commands if command.words):
        return
    known = {command.words[0].text for command in script.commands if command.words}
    # A file by that name may be there by now, from a redirection.
    assert {name for name in ran_by(shell, text, tmp_path) if "/" not in name} <= known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", ["a", "b"]),
        ("a 'b c' \"d e\"f g\\ h", ["a", "b c", "d ef", "g h"]),
        ("a\\\nb c", ["ab", "c"]),
        ("a $'\\x62\\143\\u0064\\n'", ["a", "bcd\n"]),
        ('a "\\$b \\c \\"d\\""', ["a", '$b \\c "d"']),
        ("a $b", ["a", UNKNOWN]),
        ("a x${b}y", ["a", f"x{UNKNOWN}y"]),
        ("a $((1 + 2))", ["a", UNKNOWN]),
        ("a 'b'#c", ["a", "b#c"]),
        ("a ''", ["a", ""]),
        ("a ~/b ./c", ["a", "~/b", "./c"]),
        ("a b=c", ["a", "b=c"]),
    ],
)
def test_words_are_read_without_their_quotes(text: str, words: list[str]) -> None:
    script = parse(text)
    assert script.certain
    assert [word.text for word in script.commands[0].words] == words


def test_redirections_and_variables_are_no_words() -> None:
    (command,) = parse("A=1 B='x y' a b >c 2>>'d e' <f 2>&1 >&2 <<<g &>h {n}>i").commands
    assert [word.text for word in command.words] == ["a", "b"]
    assert command.assignments == ("A=1", "B='x y'")
    found = [(each.operator, each.target.text, each.writes) for each in command.redirections]
    assert found == [(">", "c", True), (">>", "d e", True), ("<", "f", False), ("&>", "h", True), (">", "i", True)]
