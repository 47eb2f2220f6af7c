"""Tricks with which a command would slip past a rule: none of them was allowed, and none was missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.core.approvals import Policy
from trunkline.core.events import ToolRequested
from trunkline.core.rules import Rules

#: Everything that these commands have in them but `bad`.
ALLOWED = (
    "good", "echo", "cat", "cd", "test", "[", "printf", "read", "unset", "let", "export", "hash", "find", "xargs",
    "env", "sh", "bash", "eval", "timeout", "git", "true",
)  # fmt: skip


def verdict(command: str, workspace: Path | str = "/nowhere", *, mode: str = "", **rules: tuple[str, ...]) -> str:
    """With deny rules in the mode that allows everything else."""
    made = {kind: tuple(f"Bash({about}:*)" for about in abouts) for kind, abouts in rules.items()}
    policy = Policy(mode or ("yolo" if "deny" in rules else "default"), rules=Rules(**made), workspace=str(workspace))  # type: ignore[arg-type]
    return policy.judge(ToolRequested("c1", "Bash", "exec", {"command": command})).verdict


@pytest.mark.parametrize(
    "command",
    [
        # What a shell finds where it counts, or looks for the place of a variable.
        "for x in 'a[$(bad)]'; do echo $((x)); done",
        "for x in $(cat f); do echo $((x + 1)); done",
        "for x in 'a[$(bad)]'; do echo ${y:0:x}; done",
        "test -v 'a[$(bad)]'",
        "for x in 'a[$(bad)]'; do test -v \"$x\"; done",
        "for x in '-v a[$(bad)]'; do test $x; done",
        "[ -v 'a[`bad`]' ]",
        "printf -v 'a[$(bad)]' x",
        "printf %d 'a[$(bad)]'",
        "for x in 'a[$(bad)]'; do printf %d \"$x\"; done",
        "unset 'a[$(bad)]'",
        "read 'a[$(bad)]' < f",
        "let 'a[$(bad)]=1'",
        "export 'a[$(bad)]=1'",
        "read x < f; echo $((x))",
        # Words that become several, or options.
        "for x in '-exec bad ;'; do find . $x; done",
        "find . $(cat f)",
        "find -ex*",
        "echo bad | xargs env",
        "cat f | xargs find .",
        "for x in '-c alias.y=!bad'; do git $x y; done",
        # What another program reads, or is given in an unusual place.
        "bash -o pipefail -c bad",
        "bash +O extglob -c bad",
        "bash --rcfile f -c bad",
        "echo bad | sh -s x",
        "echo bad | bash -",
        "bash /dev/stdin",
        "eval -- bad",
        "env -S'bad x'",
        "env --split-string='bad x'", "env -v -Sbad", "env -S \"good \"$x",
        "timeout 5 bad",
        "hash -p /bin/bad good; good",
        # With zsh, and with `sh`.
        "echo $x[bad]",
        "good$'\\xx'",
        "go$=''od",
        "good &>/dev/null bad",
        ">&2~'a[$(bad)]'",
        ">/dev/null while good",
        "cat ${x:-<(bad)}", "cat ${x:->(bad)}", "echo x > ~-/f", "echo x > ~+/f",
        "cat <<E\nx\\\nE\ngood <<'E'\n$(bad)\nE",
        # What is not whole.
        "good &&", "good |", "| good", "good; ; good", "good & ; good", "if good; then good", "{ good", "good; fi",
        "good && ; good", "(good |)", "for x in a; do good",
    ],
)  # fmt: skip
def test_a_line_that_may_run_something_else_is_not_allowed(command: str) -> None:
    assert verdict(command, allow=ALLOWED) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "for i in 1 2 3; do echo $((i + 1)); done",
        "for i in {1..5}; do echo $((i)); done",
        "echo $((1 + 2)) $((COLUMNS - 1))",
        "for f in a b; do test -f \"$f\" && echo \"$f\"; done",
        "for f in a b; do [ \"$f\" = a ] || printf '%s\\n' \"$f\"; done",
        "for f in *.py; do cat \"$f\"; done",
        "find \"$HOME\" -name '*.py'",
        "find . -name *.py -exec cat {} +",
        "find . -exec good {} \\;",
        "cat f | xargs good",
        "timeout 5 good",
        "bash -o pipefail -c 'good | cat'",
        "bash -lc good",
        "git \"$PWD\" good",
        "if good; then cat f; else good; fi",
        "while good; do cat f; done &",
        "cd src && good",
        "printf '%s %s\\n' a \"$x\"",
        "echo ${x:0:3} ${x: -2} ${x:-a}",
    ],
)  # fmt: skip
def test_a_line_all_of_whose_parts_are_allowed_is_allowed(command: str) -> None:
    assert verdict(command, allow=ALLOWED) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "bash -o pipefail -c 'bad x'", "env -S'bad x'", "eval -- bad x", "csh -c 'bad x'", "busybox sh -c 'bad x'",
        "ccache bad x", "xvfb-run -a bad x", "tmux new 'bad x'", "sg grp -c 'bad x'", "ip netns exec a bad x",
        "/lib64/ld-linux-x86-64.so.2 /bin/bad x", "perf stat bad x",
        # What a script is called.
        "bash bad", "bash ./bad x", "sh -x sub/bad", "source ./bad", ". bad",
        # The value of a variable, or of an option.
        "PAGER='bad x' git log", "GIT_SSH_COMMAND=\"bad x\" git fetch", "EDITOR=bad git commit",
        "tar --checkpoint-action=exec='bad x' -cf a b", "tar --to-command='bad x' -xf a", "split --filter='bad' f",
        "git -c core.pager='bad x' log", "ssh -o ProxyCommand='bad x' h", "rsync --rsh='bad x' a b", "socat - EXEC:bad",
        "rsync -e 'bad x' a b", "rsync -ave 'bad x' a b", "rsync -e'bad x' a b", "rsync --rsh 'bad x' a b",
        "man -P 'bad x' ls", "man -Pbad ls", "man --pager bad ls", "tar -I 'bad x' -xf a", "tar -xF bad -f a",
        "scp -S bad a h:b",
        # What another language is told to run.
        "python -c 'import os; os.system(\"bad x\")'", "perl -e 'system(\"bad x\")'",
        "awk 'BEGIN { system(\"bad x\") }'",
        "python3 - <<'E'\nimport subprocess\nsubprocess.run([\"bad\"])\nE", "ruby -e '`bad x`'",
        "sudo node -e 'require(`child_process`).execSync(`bad x`)'", "expect -c 'spawn bad x'",
        # Some disks ignore case.
        "BAD x", "/bin/Bad x",
    ],
)  # fmt: skip
def test_a_deny_rule_finds_what_other_programs_would_run(command: str) -> None:
    assert verdict(command, deny=("bad",)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "PATH=. good",
        "env LD_PRELOAD=x good",
        "export PATH=.; good",
        "export PATH+=:.; good",
        "at now < f",
        "BASH_ENV=f bash x",
        "cat f | xargs env",
    ],
)
def test_what_decides_which_program_is_run_is_asked_about_where_some_are_denied(command: str) -> None:
    assert verdict(command, deny=("bad",)) == "ask"
    assert verdict(command, mode="yolo") == "allow"


@pytest.mark.parametrize(
    "command",
    ["python bad.py", "python x.py bad", "python -m pytest -k bad", "echo bad", "git commit -m 'bad idea'",
     "grep bad f", "A=1 good", "MODE=test good", "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done", "badly", "cat bad",
     "rsync -a bad h:bad", "man bad", "tar -xf bad"],
)  # fmt: skip
def test_a_deny_rule_leaves_others_alone(command: str) -> None:
    assert verdict(command, deny=("bad",)) == "allow"


def test_a_redirection_is_where_the_line_has_gone_to(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    away = "cd .git/hooks && echo x > pre-commit"
    assert verdict("echo x > notes", tmp_path, mode="auto_edit", allow=ALLOWED) == "allow"
    assert verdict(away, tmp_path, mode="auto_edit", allow=ALLOWED) == "ask"
    assert verdict(f"bash -c '{away}'", tmp_path, mode="auto_edit", allow=ALLOWED) == "ask"
    assert verdict(f"cd src && echo x > {tmp_path}/notes", tmp_path, mode="auto_edit", allow=ALLOWED) == "allow"
