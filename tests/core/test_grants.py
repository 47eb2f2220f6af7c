"""What a standing answer covers, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.core.approvals import Policy
from trunkline.core.command_words import first_words, words
from trunkline.core.events import ToolRequested
from trunkline.core.grants import Grant, grant_for


def bash(command: Any, **more: Any) -> ToolRequested:
    return ToolRequested("c1", "Bash", "exec", {"command": command, **more})


def granted(request: ToolRequested, *, narrow: bool = True) -> Policy:
    policy = Policy()
    policy.grants[grant_for(request, narrow=narrow)] = None
    return policy


def asks(policy: Policy, request: ToolRequested) -> bool:
    verdict = policy.verdict(request.name, request.category, outside=request.outside, args=request.args)
    return verdict == "ask"


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("git status", "git status"),
        ("git status --short", "git status"),
        ("git 'commit' -m fixes", "git commit"),
        ("npm test", "npm test"),
        ("make check", "make check"),
        ("ls -la src", "ls"),
        ("pytest tests -q", "pytest"),
        ("/usr/bin/git log", "/usr/bin/git log"),
        # Their first words do not say what is run.
        ("git -C /tmp status", ""),
        ("git", ""),
        ("git bisect run make", ""),
        ("git config alias.st x", ""),
        ("npm run build", ""),
        ("uv run x", ""),
        ("python -c 1", ""),
        ("bash -c ls", ""),
        ("sudo ls", ""),
        ("env ls", ""),
        ("xargs rm", ""),
        ("rm -rf build", ""),
        ("./deploy now", ""),
        ("some-program of somebody", ""),
        # More than one command, or one that is changed by what stands before it.
        ("git status; rm -rf x", ""),
        ("git status && ls", ""),
        ("git status | tee x", ""),
        ("git status > x", ""),
        ("git status $(rm x)", ""),
        ("git status `rm x`", ""),
        ("git status $HOME", ""),
        ("git status\nrm x", ""),
        ("git status\rrm x", ""),
        ("git status &", ""),
        ("git status \\; x", ""),
        ('git status "$(rm x)"', ""),
        ("git status <(rm x)", ""),
        ("git status {a,b}", ""),
        ("git status #x", ""),
        ("GIT_PAGER=x git status", ""),
        ("PATH=. ls", ""),
        ("git status 'open", ""),
        ("g* status", ""),
        ("git\u00a0status", ""),
        ("", ""),
        ("   ", ""),
    ],
)
def test_first_words_are_those_that_say_what_is_run(command: str, first: str) -> None:
    assert first_words(command) == first


@pytest.mark.parametrize(
    "command", ["git status", "git status --short", "git   status", '"git" status src/a.py', "git status *.py"]
)
def test_a_grant_for_some_words_covers_the_commands_that_begin_with_them(command: str) -> None:
    policy = granted(bash("git status --short"))
    assert not asks(policy, bash(command))
    assert not asks(policy, bash(command, timeout=5))
    assert not asks(policy, ToolRequested("c2", "Bash", "exec", {"cmd": command}))


@pytest.mark.parametrize(
    "command",
    [
        "git", "git push", "git statusx", "git -c core.pager=x status", "status git", "ls", "sudo git status",
        "git status; rm -rf ~", "git status && rm x", "git status || rm x", "git status | sh", "git status & rm x",
        "git status\nrm x", "git status\rrm x", "git status $(rm x)", "git status `rm x`", "git status > /etc/passwd",
        "git status < x", "X=1 git status", "git status \\\n; rm", "git status ${x}", "(git status)", "! git status",
        "git status 'a", "", 7, ["git", "status"], None,
    ],
)  # fmt: skip
def test_it_covers_no_other_command_and_none_that_could_hold_a_second_one(command: Any) -> None:
    assert asks(granted(bash("git status")), bash(command))


def test_other_arguments_are_a_part_of_what_is_run() -> None:
    policy = granted(bash("git status"))
    assert asks(policy, bash("git status", cwd="/etc"))
    assert asks(policy, bash("git status", env={"PATH": "."}))
    elsewhere = granted(bash("git status", cwd="/etc"))
    assert not asks(elsewhere, bash("git status", cwd="/etc"))
    assert asks(elsewhere, bash("git status"))
    assert asks(elsewhere, bash("git status", cwd="/"))


def test_a_command_whose_words_say_nothing_is_granted_as_it_is() -> None:
    policy = granted(bash("git status; rm -rf build"))
    assert not asks(policy, bash("git status; rm -rf build"))
    assert asks(policy, bash("git status; rm -rf build2"))
    assert asks(policy, bash("git status"))


def test_another_tool_that_runs_things_is_granted_by_its_name() -> None:
    policy = granted(ToolRequested("c1", "Spawn", "exec", {"tasks": []}))
    assert not asks(policy, ToolRequested("c2", "Spawn", "exec", {"tasks": [1]}))
    assert asks(policy, bash("ls"))
    assert asks(granted(bash("git status")), ToolRequested("c2", "Other", "exec", {"command": "git status"}))


def test_on_a_wire_a_grant_is_for_the_category() -> None:
    policy = granted(bash("git status"), narrow=False)
    assert not asks(policy, bash("rm -rf x; ls"))
    assert not asks(policy, ToolRequested("c2", "Spawn", "exec", {}))
    assert asks(policy, ToolRequested("c2", "Write", "edit", {}))


@pytest.mark.parametrize("narrow", [True, False])
def test_a_grant_reaches_outside_if_it_was_given_there_and_inside_too(narrow: bool) -> None:
    away = ToolRequested("c1", "Edit", "edit", {"file_path": "/etc/x"}, outside=True)
    here = away.replace(outside=False)
    assert not asks(granted(away, narrow=narrow), away)
    assert not asks(granted(away, narrow=narrow), here)
    assert not asks(granted(here, narrow=narrow), here)
    assert asks(granted(here, narrow=narrow), away)


def test_the_allow_list_stays_inside_unless_it_is_configured_to_reach_out() -> None:
    away = ToolRequested("c1", "Read", "info", {}, outside=True)
    assert asks(Policy(), away)
    assert asks(Policy("auto_edit"), away)
    assert not asks(Policy(allow_outside=True), away)
    assert asks(Policy("auto_edit", allow_outside=True), away.replace(name="Write", category="edit"))


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        (Grant("edit"), "every `edit` tool"),
        (Grant("edit", outside=True), "every `edit` tool, outside the workspace too"),
        (Grant("exec", tool="Spawn"), "the tool `Spawn`"),
        (Grant("exec", tool="Bash", command="git status"), "commands that begin with `git status`"),
        (Grant("exec", tool="Bash", command="a\nb\x1b", exact=True), "exactly `a<U+000A>b<U+001B>`"),
    ],
)
def test_a_grant_says_what_it_covers(grant: Grant, said: str) -> None:
    assert str(grant) == said


def test_words_with_blanks_in_them_are_one_word() -> None:
    assert words("git 'status x'") == ["git", "status x"]
    assert asks(granted(bash("git status")), bash("git 'status x'"))
