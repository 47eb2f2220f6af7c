"""What a standing answer covers, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.core.approvals import Policy
from trunkline.core.command_words import first_words, words
from trunkline.core.events import ToolRequested
from trunkline.core.grants import Grant, grant_for
from trunkline.core.rules import Rules, read_rule


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
        ("git status --short src", "git status --short"),
        ("git diff -- a b", "git diff --"),
        ("git log HEAD~2 main..x", "git log"),
        ("git 'add' a.py", "git add"),
        ("ls -la src", "ls -la"),
        ("head -20 a.py", "head -20"),
        ("pytest tests -q", "pytest -q"),
        ("pytest -q tests/test_a.py::TestB::test_c", "pytest -q"),
        # The word behind an option may be its value.
        ("grep -e x src", "grep -e x"),
        ("git log --format oneline a.py", "git log --format oneline"),
        ("/usr/bin/git log", "/usr/bin/git log"),
        # Their first words do not say what is run: other words choose something else.
        ("make check", ""),
        ("npm test", ""),
        ("git fetch", ""),
        ("git push origin main", ""),
        ("git commit -m fixes", ""),
        # Of other files it would throw away what nobody has kept.
        ("git restore a.py", ""),
        ("git checkout a.py", ""),
        ("pip install x", ""),
        ("gh pr list", ""),
        ("git -C /tmp status", ""),
        ("git", ""),
        ("git bisect run make", ""),
        ("npm run build", ""),
        ("python -c 1", ""),
        ("bash -c ls", ""),
        ("sudo ls", ""),
        ("env ls", ""),
        ("xargs rm", ""),
        ("rm -rf build", ""),
        ("some-program of somebody", ""),
        # A program of somebody's own.
        ("./git status", ""),
        # Its options need no dash: `ps e` shows everybody's environment.
        ("ps aux", ""),
        ("/tmp/git status", ""),
        ("bin/ls", ""),
        # They reach out of the directory, or could.
        ("cat /etc/passwd", ""),
        ("cat ../x", ""),
        ("cat a/../../x", ""),
        ("cat ~/x", ""),
        ("cat *", ""),
        ("git show HEAD:a", ""),
        ("pytest @args.txt", ""),
        ("git diff https://x/y", ""),
        ("git status ''", ""),
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
    "command", ["git status -s", "git status -s src/", "git   status -s", '"git" status src/a.py lib -s']
)
def test_a_grant_for_some_words_covers_them_with_other_files(command: str) -> None:
    policy = granted(bash("git status -s docs"))
    assert not asks(policy, bash(command))
    assert not asks(policy, bash(command, timeout=5))
    assert not asks(policy, ToolRequested("c2", "Bash", "exec", {"cmd": command}))


@pytest.mark.parametrize(
    "command",
    [
        "git", "git push", "git statusx", "git -c core.pager=x status", "status git", "ls", "sudo git status",
        "git status; rm -rf ~", "git status && rm x", "git status || rm x", "git status | sh", "git status & rm x",
        "git status\nrm x", "git status\rrm x", "git status $(rm x)", "git status `rm x`", "git status > /etc/passwd",
        "git status < /etc/x", "X=1 git status", "git status \\\n; rm", "git status ${x}", "git status < ~/x",
        "(git status; rm x)", "git status 'a", "", 7, ["git", "status"], None,
    ],
)  # fmt: skip
def test_it_covers_no_other_command_and_none_that_could_hold_a_second_one(command: Any) -> None:
    assert asks(granted(bash("git status")), bash(command))


@pytest.mark.parametrize(
    ("allowed", "command"),
    [
        ("git fetch", "git fetch --upload-pack='touch x' ."),
        ("git fetch", "git fetch ./elsewhere"),
        ("git pull", "git pull --upload-pack=x ."),
        ("git push", "git push --receive-pack=x ."),
        ("git push --dry-run", "git push"),
        ("git log", "git log --output=x"),
        ("git log", "git log -1 --output x"),
        ("git log", "git log -- --output=x"),
        ("git show", "git show -s --output=x"),
        ("git diff", "git diff --output=x"),
        ("git diff", "git diff --no-index a b"),
        ("git status", "git status --anything"),
        ("git status", "git status -s"),
        ("make test", "make test -f evil.mk"),
        ("make test", "make test SHELL=x"),
        ("make test", "make test deploy"),
        ("npm test", "npm test --script-shell=x"),
        ("go test", "go test -exec x"),
        ("cargo test", "cargo test --config x"),
        ("apt-get install x", "apt-get install -o x"),
        ("pip install x", "pip install https://x/y"),
        ("pip install x", "pip install y"),
        ("pytest -q", "pytest -q /outside/evil_test.py"),
        ("pytest -q", "pytest -q ../evil_test.py"),
        ("pytest -q", "pytest -q -p evil"),
        ("pytest -q", "pytest -q @args"),
        ("pytest -q", "pytest"),
        ("pytest -p good", "pytest -p evil"),
        ("black --check src", "black src"),
        ("cat Makefile", "cat /etc/shadow"),
        ("cat Makefile", "cat ~root/x"),
        ("cat Makefile", "cat *"),
        ("ls", "ls ? [a]"),
    ],
)
def test_it_covers_no_options_and_no_places_that_were_not_granted(allowed: str, command: str) -> None:
    policy = granted(bash(allowed))
    assert not asks(policy, bash(allowed))
    assert asks(policy, bash(command))


def test_it_covers_no_link_that_leads_out_of_the_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "src").mkdir(parents=True)
    (workspace / "up").symlink_to(tmp_path)
    (workspace / "test_out.py").symlink_to(tmp_path / "test_out.py")
    (workspace / "in").symlink_to("src")
    policy = granted(bash("pytest -q"))
    policy.workspace = str(workspace)
    assert not asks(policy, bash("pytest -q in src/new .git/x"))
    assert asks(policy, bash("pytest -q up/test_x.py"))
    assert asks(policy, bash("pytest -q test_out.py"))
    assert asks(policy, bash("pytest -q test_out.py::test_it"))


def test_a_grant_of_an_earlier_version_for_words_that_say_too_little_covers_nothing() -> None:
    policy = Policy()
    policy.grants[Grant("exec", tool="Bash", command="git fetch")] = None
    assert asks(policy, bash("git fetch"))
    assert asks(policy, bash("git fetch --upload-pack=x ."))


def test_a_command_that_reaches_out_is_granted_as_it_is() -> None:
    policy = granted(bash("cat /etc/hosts"))
    assert not asks(policy, bash("cat /etc/hosts"))
    assert asks(policy, bash("cat /etc/hosts /etc/passwd"))
    assert asks(policy, bash("cat a"))


def test_a_tool_of_a_server_is_granted_by_its_name() -> None:
    policy = granted(ToolRequested("c1", "send", "mcp", {"command": "ls"}))
    assert not asks(policy, ToolRequested("c2", "send", "mcp", {"text": "x"}))
    assert asks(policy, ToolRequested("c2", "other", "mcp", {"command": "ls"}))


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
        (Grant("edit"), "every `edit` tool (`Edit`)"),
        (Grant("edit", outside=True), "every `edit` tool (`Edit`), outside the workspace too"),
        (Grant("exec"), "every `exec` tool (`Bash`, `Spawn`, `WebFetch`, `WebSearch`)"),
        (Grant("mcp"), "every `mcp` tool (`mcp__*`)"),
        (Grant("exec", tool="Spawn"), "`Spawn`"),
        (Grant("exec", tool="Bash", command="git status"), "`Bash(git status:./**)`"),
        (Grant("exec", tool="Bash", command="a\nb\x1b", exact=True), "`Bash(a<U+000A>b<U+001B>)`"),
        (Grant("exec", tool="Bash", command="rm *", exact=True), "`Bash(rm \\*)`"),
        (Grant("exec", tool="WebFetch", command="domain:x.org"), "`WebFetch(domain:x.org)`"),
        (Grant("mcp", tool="mcp__hub__send"), "`mcp__hub__send`"),
    ],
)
def test_a_grant_says_what_it_covers_as_a_rule(grant: Grant, said: str) -> None:
    assert str(grant) == said
    assert [read_rule(rule)[1] for rule in grant.rules] == [""] * len(grant.rules)


@pytest.mark.parametrize("command", ["rm *", "ls a* \\*b", "echo '*' ?", "a *", "a:*", "cat:./**", "x && y *\nz"])
def test_a_command_with_stars_is_granted_as_it_is_and_its_rule_means_the_same(command: str) -> None:
    policy = granted(bash(command))
    assert not asks(policy, bash(command))
    (grant,) = policy.grants
    written = Policy(rules=Rules(allow=grant.rules))
    assert not asks(written, bash(command))
    for other in ("rm a", "rm -rf a", "ls ab xb", "a b", "a", "cat x", "x && y b\nz"):
        assert asks(policy, bash(other)), other
        assert asks(written, bash(other)), other


def test_a_page_is_granted_with_its_host() -> None:
    policy = granted(ToolRequested("c1", "WebFetch", "exec", {"url": "https://X.org:8080/a?b"}))
    assert not asks(policy, ToolRequested("c2", "WebFetch", "exec", {"url": "http://x.org/"}))
    assert asks(policy, ToolRequested("c2", "WebFetch", "exec", {"url": "http://sub.x.org/"}))
    assert asks(policy, bash("ls"))


def test_what_was_granted_and_what_rules_allow_make_a_chain_together() -> None:
    policy = Policy(rules=Rules(allow=("Bash(make test)",)))
    for request in (bash("git status"), bash("git diff --stat x")):
        policy.grants[grant_for(request, narrow=True)] = None
    assert not asks(policy, bash("git status && git diff --stat a.py | make test; (git status x)"))
    assert asks(policy, bash("git status && git diff --output=x"))
    assert asks(policy, bash("git status && rm x"))


def test_a_command_of_another_agents_tool_is_granted_as_it_is() -> None:
    policy = granted(ToolRequested("c1", "shell", "exec", {"command": "git status"}))
    assert not asks(policy, ToolRequested("c2", "shell", "exec", {"command": "git status"}))
    assert asks(policy, ToolRequested("c2", "shell", "exec", {"command": "git status x"}))
    assert asks(policy, ToolRequested("c2", "shell", "exec", {"command": "git status", "cwd": "/"}))
    assert asks(policy, bash("git status"))


def test_words_with_blanks_in_them_are_one_word() -> None:
    assert words("git 'status x'") == ["git", "status x"]
    assert first_words("git status 'a b'") == "git status"
    assert first_words("grep 'a b'") == first_words("grep x") == "grep"
    assert first_words("grep -e 'a b'") == ""
    assert asks(granted(bash("git status")), bash("git 'status x'"))


@pytest.mark.parametrize("name", ["Run Terminal Command", "mcp.tool/x", "Bash(rm:*)", "*", "B*", "3d"])
def test_a_grant_for_a_tool_that_no_rule_can_name_is_for_this_one_alone(name: str) -> None:
    policy = granted(ToolRequested("c1", name, "exec", {"x": 1}))
    assert not asks(policy, ToolRequested("c2", name, "exec", {"x": 2}))
    assert asks(policy, ToolRequested("c3", f"{name} ", "exec", {"x": 1}))
    assert asks(policy, ToolRequested("c4", name, "mcp", {"x": 1}))
    assert asks(policy, ToolRequested("c5", name, "exec", {"x": 1}, outside=True))
    assert asks(policy, bash("rm x"))
    (grant,) = policy.grants
    assert str(grant) == f"`{name}`"
    assert not grant.rules


def test_a_grant_for_a_command_of_such_a_tool_is_for_that_command() -> None:
    policy = granted(ToolRequested("c1", "Run Terminal Command", "exec", {"command": "make test"}))
    assert not asks(policy, ToolRequested("c2", "Run Terminal Command", "exec", {"command": "make test"}))
    assert asks(policy, ToolRequested("c3", "Run Terminal Command", "exec", {"command": "make install"}))
    assert str(next(iter(policy.grants))) == "`Run Terminal Command make test`"


def test_a_page_is_granted_by_its_host_however_that_is_written() -> None:
    policy = granted(ToolRequested("c1", "WebFetch", "exec", {"url": " https://\uff58.org./a"}))
    assert str(next(iter(policy.grants))) == "`WebFetch(domain:x.org)`"
    assert not asks(policy, ToolRequested("c2", "WebFetch", "exec", {"url": "https://x.org/b"}))
