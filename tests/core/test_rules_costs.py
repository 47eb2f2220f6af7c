"""What it costs to judge a call: counted, and in proportion to its length, whatever is in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trunkline.base import patterns
from trunkline.base.vocabulary import Mode
from trunkline.core import (
    command_files,
    command_texts,
    command_words,
    credentials,
    risks,
    rules_commands,
    sending,
    shell,
    shell_guesses,
    shell_options,
    shell_values,
    shell_variables,
    shell_words,
    shell_wrapped,
)
from trunkline.core.approvals import Policy
from trunkline.core.events import Category, ToolRequested
from trunkline.core.risks import risk_of
from trunkline.core.rules import Rules

MODULES = (
    patterns, command_files, command_texts, command_words, credentials, risks, rules_commands, sending, shell,
    shell_guesses, shell_options, shell_values, shell_variables, shell_words, shell_wrapped,
)  # fmt: skip
DENY = ("Bash(rm:*)", "Bash(git push:*)", "Bash(* --force)", "Read(.env)", "Read(~/.ssh/**)", "Edit(src/**)")
ALLOW = ("Bash(sudo:*)", "Bash(sudo *)", "Bash(su*)", "Bash(cat:./**)", "Bash(a:*)")
#: Characters of a line, about: enough for what grows with their square to be far beyond the limit.
LONG = 4_000
#: What may be done for each of them, and up to the limits of what is looked into whatever the length.
MOST_PER_CHAR = 150
MOST_ANYWAY = 5_000_000


class Work:
    """Counts calls of functions, and the characters that regular expressions are let loose on."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, frame: object, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            self.done += 1

    def of(self, judge: Callable[[], object]) -> int:
        before = self.done
        sys.setprofile(self)
        try:
            judge()
        finally:
            sys.setprofile(None)
        return self.done - before


class Counted:
    """A regular expression that says how much it looks through."""

    def __init__(self, pattern: re.Pattern[str], work: Work) -> None:
        self._pattern = pattern
        self._work = work

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pattern, name)
        return self._counting(found, name) if callable(found) else found

    def _counting(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            result = call(*args)
            if name == "match":
                self._work.done += result.end() - result.start() if result else 1
            else:
                text, start, end = (*args[name == "sub" :], 0, sys.maxsize)[:3] if len(args) < 3 else args
                self._work.done += min(len(text), end) - start
            return result

        return counted


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()
    for module in MODULES:
        count_in(module, found, monkeypatch)
    shell_wrapped.look_into.cache_clear()
    command_texts.tokens.cache_clear()
    return found


def count_in(module: ModuleType, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in list(vars(module).items()):
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(module, name, Counted(value, work))


def call(name: str, category: Category = "info", **args: Any) -> ToolRequested:
    return ToolRequested("c1", name, category, args)


def policy(mode: Mode = "yolo", **rules: tuple[str, ...]) -> Policy:
    return Policy(mode, workspace="/tmp", rules=Rules(**rules))  # type: ignore[arg-type]


LINES = {
    "a here-document that goes on": "cat <<E\n" + "\\\n" * (LONG // 2),
    "many here-documents": "cat " + "<<E " * (LONG // 4) + "\n",
    "many interpreters": "awk x;" * 1_000 + "echo " + "y" * (LONG // 2),
    "a deep path": "cat " + "a/" * (LONG // 2),
    "deep paths": "cat " + " ".join("a/" * 1_900 + str(number) for number in range(4)),
    "a deep directory": "cd " + "a/" * 1_900 + "; cat " + " ".join(map(str, range(1_500))),
    "many directories": ";".join(f"cd d{number}" for number in range(5)) + ";cd .;cd ./." * 700,
    "options with directories": "tar " + "-C a " * (LONG // 5),
    "words that only the shell knows": "cd a; cd b; cat " + " ".join(f"$(a)/{number}" for number in range(1_500)),
    "variables in one another": ";".join(f"{a}={f'${b}' * 200}" for a, b in ("ab", "bc", "cd", "de")) + "; cat $a",
    "a long variable many times": "a=" + "y" * (LONG // 2) + "; cat " + "$a" * (LONG // 4),
    "braces": "cat " + "{a,b}" * (LONG // 5),
    "braces in one another": "cat " + "{a," * 800 + "b" + "}" * 800,
    "the same by many braces": "cat " + ("{a,a}" * 8 + " ") * 400,
    "wrappers around a script": "sudo " * 60 + "'" + "a b;" * (LONG // 4) + "'",
    "evaluations": "eval " * (LONG // 5),
    "evaluations of a pattern": "eval " * 60 + "'" + "*" * LONG + "'",
    "a wrapper that several rules allow": "sudo " * 10 + "bad",
    "tails with a program that is denied": "x " + "git " * (LONG // 4),
    "prefixes": "command " * (LONG // 8),
    "patterns": "find " + " ".join(f"?{number}" for number in range(2_500)),
    "backticks": "`a" * (LONG // 2),
    "traps": "trap " + "a " * (LONG // 2),
    "commands": "a;" * (LONG // 2),
    "git": "git " + "-x a " * 100 + "'" + "a;" * (LONG // 2) + "'",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_is_judged_with_work_in_proportion_to_its_length(work: Work, line: str) -> None:
    request = call("Bash", "exec", command=line)
    most = MOST_PER_CHAR * len(line) + MOST_ANYWAY
    assert work.of(lambda: risk_of(request, "/tmp")) < most
    assert work.of(lambda: policy(deny=DENY).judge(request)) < most
    assert work.of(lambda: policy("default", allow=ALLOW).judge(request)) < most


@pytest.mark.parametrize(
    "request_",
    [
        call("Read", file_path="a/" * LONG),
        call("Read", file_path="a/" * 1_900),
        call("Glob", pattern="{a,b}" * 8 + "c/" * 2_000),
        call("Glob", pattern="{a,b}" * LONG),
        call("Glob", pattern="{a," * LONG),
        call("Grep", pattern="a", glob="{a,b}" * 7 + "/c" * 200),
        call("open", "mcp", files=["a/" * 2_000] * 30),
    ],
)
def test_so_is_a_call_that_names_files(work: Work, request_: ToolRequested) -> None:
    most = MOST_PER_CHAR * LONG + MOST_ANYWAY
    assert work.of(lambda: risk_of(request_, "/tmp")) < most
    assert work.of(lambda: policy(deny=DENY).judge(request_)) < most
    assert work.of(lambda: policy("default", allow=("Read(src/**)",)).judge(request_)) < most


def test_the_disk_is_not_asked_about_a_path_that_is_too_long_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lstat = os.lstat

    def counted(path: str) -> os.stat_result:
        asked.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", counted)
    path = "a/" * patterns.LONGEST_PATH
    assert not risk_of(call("Read", file_path=path), str(tmp_path))
    assert policy(deny=("Read(/nowhere/**)",)).judge(call("Read", file_path=path)).verdict == "deny"
    assert len(asked) < 100
    assert policy(deny=("Read(/nowhere/**)",)).judge(call("Read", file_path="a/../" * 4_000 + "b")).verdict == "allow"
    assert risk_of(call("Read", file_path="a/../" * 4_000 + ".env"), str(tmp_path))
    assert risk_of(call("Read", file_path=path + ".ssh/id"), str(tmp_path))
    assert not risk_of(call("say", "mcp", text="What is in ~/.ssh/ stays there. " * 1_000), str(tmp_path))


def test_of_more_paths_than_are_looked_up_the_names_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "link").symlink_to(".ssh")
    many = ["a/b/c"] * 10
    assert risk_of(call("open", "mcp", files=["link/x", *many]), str(tmp_path))
    monkeypatch.setattr(risks, "MOST_NAMES", 20)
    assert not risk_of(call("open", "mcp", files=["link/x", *many]), str(tmp_path))
    assert risk_of(call("open", "mcp", files=[".ssh/x", *many]), str(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "cat " + "a/" * 3_000,
        "mytool --in=" + "a/" * 3_000,
        "cd " + "a/" * 1_500 + "; cd " + "a/" * 1_500,
        "cat " + "{a,b}" * 1_000,
        "cat " + " ".join("a/" * 500 + str(number) for number in range(60)),
        "a=" + "y" * 5_000 + "; cat $a",
        "a=b; cat " + "$a" * 40,
        "eval " * 25 + "a",
        "sudo " * 25 + "a",
    ],
)
def test_a_line_beyond_a_limit_is_asked_about_where_something_is_denied(line: str) -> None:
    request = call("Bash", "exec", command=line)
    assert policy(deny=("Read(/nowhere/**)", "Bash(rm:*)")).judge(request).verdict == "ask"
    assert policy().judge(request).verdict == "allow"


@pytest.mark.parametrize("line", ["python -c '" + "x = 1 / 2\n" * 1_000 + "'", "echo " + "a/" * 3_000])
def test_a_long_text_that_is_no_path_is_not(line: str) -> None:
    assert policy(deny=("Read(/nowhere/**)",)).judge(call("Bash", "exec", command=line)).verdict == "allow"


def test_a_line_with_more_commands_than_are_read_is_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "MOST_COMMANDS", 3)
    for few, many in (("a;a;a", "a;a;a;a;b"), ("a `a` `a`", "`a` `a` `a` `a` `b`")):
        assert shell.parse(few).certain
        read = shell.parse(many)
        assert not read.certain
        assert "b" not in {command.words[0].text for command in read.commands}
