"""Which files a command line names, and how far the disk is looked at to find out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trunkline.base.vocabulary import Mode
from trunkline.core import command_files
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolRequested
from trunkline.core.rules import Rules


def verdict(command: str, workspace: Path, *, mode: Mode = "default", **rules: tuple[str, ...]) -> str:
    policy = Policy(mode, workspace=str(workspace), rules=Rules(**rules))  # type: ignore[arg-type]
    return policy.judge(ToolRequested("c1", "Bash", "exec", {"command": command})).verdict


@pytest.mark.parametrize(
    "command",
    [
        "cd / && cat etc/passwd", "cd /; cat etc/passwd", "(cd / && cat etc/passwd)", "pushd / && cat etc/passwd",
        "env -C / cat etc/passwd", "cat a.txt && cd .. && cat b.txt",
    ],
)  # fmt: skip
def test_a_file_of_the_workspace_is_none_where_the_line_has_gone_to(tmp_path: Path, command: str) -> None:
    rules = ("Bash(cd:*)", "Bash(pushd:*)", "Bash(env:*)", "Bash(cat:./**)")
    assert verdict(command, tmp_path, allow=rules) == "ask"
    assert verdict("cat a.txt && cat etc/passwd", tmp_path, allow=rules) == "allow"
    assert verdict("cd src", tmp_path, allow=("Bash(cd:./**)",)) == "allow"
    assert verdict("cd src && ls -l", tmp_path, allow=("Bash(cd:./**)", "Bash(ls:*)")) == "allow"


def test_a_line_that_names_more_files_than_are_looked_at_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    deny = ("Read(secret/**)",)
    assert verdict("cat a b c a b c", tmp_path, mode="yolo", deny=deny) == "allow"
    monkeypatch.setattr(command_files, "MOST_FILES", 3)
    assert verdict("cat a b c a b c", tmp_path, mode="yolo", deny=deny) == "allow"
    assert verdict("sudo cat a b", tmp_path, mode="yolo", deny=deny) == "allow"
    assert verdict("cat a b c d", tmp_path, mode="yolo", deny=deny) == "ask"
    assert verdict("cat a b c d", tmp_path, mode="yolo") == "allow"
    # It writes to none of them.
    assert verdict("cat a b c d", tmp_path, mode="yolo", deny=("Edit(secret/**)",)) == "allow"


def test_the_disk_is_not_searched_to_judge_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    looked: list[str] = []
    scandir = os.scandir

    def counted(path: str) -> Any:
        looked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    deny = ("Read(*/file)",)
    assert verdict("cat */fi*", tmp_path, mode="yolo", deny=deny) == "deny"
    monkeypatch.setattr(command_files, "MOST_ENTRIES", 4)
    del looked[:]
    many = "cat " + " ".join(f"*/*{number}" for number in range(100))
    assert verdict(many, tmp_path, mode="yolo", deny=("Read(secret/**)",)) == "ask"
    # For deny rules, ask rules and what is unclear: the workspace and one directory of it.
    assert len(looked) <= 6
    assert verdict("cat */fi*", tmp_path, mode="yolo", deny=("Read(secret/**)",)) == "ask"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace beside a home directory with a key in it."""
    for name in ("home/.ssh", "work/secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_rsa").touch()
    (tmp_path / "work" / "a.py").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("x", "q", "d", "h", "f"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "work"


@pytest.mark.parametrize(
    "command",
    [
        "cd; cat .ssh/id_rsa", "cd -- ~; cat .ssh/id_rsa", "cd -P ~; cat .ssh/id_rsa", "pushd ~; cat .ssh/id_rsa",
        "env -C ~ cat .ssh/id_rsa", "git -C ~ show .ssh/id_rsa", "tar --directory=$HOME -c .ssh",
        "tar --directory ~ -c .ssh",
        "h=~; cat $h/.ssh/id_rsa", "cat ~/.ss$@h/id_rsa", "cat ~/.ss${q}h/id_r*", "d=.ss; cat ~/${d}h/id_r*",
        "cd; cat .s*/*", "for d in .ssh .aws; do cat ~/$d/id_rsa; done", "for i in 1 2; do cat .ssh/id_rsa; cd ~; done",
        "f='a .ssh/id_rsa'; cd; cat $f", "h=$HOME; d=$h/.ssh; cat \"$d\"/id_rsa", "cat ~/.ssh/$x",
        "cd .. && cd home && cat .ssh/x",
    ],
)  # fmt: skip
def test_a_file_is_found_wherever_the_line_may_be_and_whatever_it_puts_into_variables(home: Path, command: str) -> None:
    assert verdict(command, home, mode="yolo", deny=("Read(~/.ssh/**)",)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "(cd /); cat secret/k", "cd / | cat secret/k", "false && cd /; cat secret/k", "cd /nonexist; cat secret/k",
        "cd / & cat secret/k",
    ],
)  # fmt: skip
def test_where_a_line_does_not_stay_hides_no_file(home: Path, command: str) -> None:
    assert verdict(command, home, mode="yolo", deny=("Read(secret/**)",)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat ${HOME%/}/.ssh/id_rsa", "x=$(echo ssh); cat ~/.$x/id_rsa", "read x < f; cat ~/$x", "cat $(cat f)",
        "cat < $(ls)",
        "x=$(cat f); cd $x; cat id_rsa", "x=$(cat f); mytool a/$x", "set -- .ssh; cat ~/$1/id_rsa",
        "x+=h; cat ~/.ss$x/id_rsa",
        "sh -c 'cat ~/.ss$1' _ h/id_rsa", "while read f; do cat $f; done", "x=`cat f`; cp $x .", "cat ~/$OLDPWD/x",
        "cat ~+/.ssh/x", "cat ~-/.ssh/x", "cat ~1/x", "x=~-; cat $x/.ssh/id_rsa", "dd if=~-/x",
        "x=$(cat f); echo a/$x; cat a/$x",
        "cat {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "cat " + "{a,b}" * 1_000,
    ],
)  # fmt: skip
def test_a_file_that_only_the_shell_knows_is_asked_about_where_some_are_denied(home: Path, command: str) -> None:
    assert verdict(command, home, mode="yolo", deny=("Read(~/.ssh/**)",)) == "ask"
    assert verdict(command, home, mode="yolo") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        'for f in *.py; do wc -l "$f"; done', "cd src && ls", "for i in 1 2; do cat f$i; done", "f=a.py; cat $f",
        "ls $PWD/a.py",
        "git commit -m \"$(cat <<'EOF'\na/b\nEOF\n)\"", 'git commit -m "a/b $(date)"', 'echo "$(date)/y"',
        "cat $HOME/notes",
        "docker run -v $(pwd):/w img make", 'python x.py --date "$(date)"', "curl http://h/$(date)", "cat ~/.bashrc",
        "find . -name '*.py' -exec wc -l {} +", "git ls-files | xargs wc -l", "diff <(ls a) <(ls b)",
        "cat f.$$ /tmp/$PPID/f", "git log HEAD~1 HEAD~", "mytool '" + '{"a": 1, "b": 2}' * 20 + "'",
        "x=$(ls); [ -n \"$x\" ] && echo $x",
    ],
)  # fmt: skip
def test_other_lines_are_not_asked_about(home: Path, command: str) -> None:
    assert verdict(command, home, mode="yolo", deny=("Read(~/.ssh/**)", "Read(secret/**)")) == "allow"


def test_a_line_that_goes_to_more_directories_than_are_looked_at_is_asked_about(home: Path) -> None:
    line = "; ".join(f"cd d{number}" for number in range(8))
    assert verdict(line, home, mode="yolo", deny=("Read(~/.ssh/**)",)) == "ask"
