"""`trunkline skills`: what there is, what one says, and what is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.agents.coder.extending.test_skills import skill
from trunkline.cli import skills


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    place = tmp_path / "workspace"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "user/.claude/skills"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(skills.command, list(arguments))


def printed(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def broken(folder: Path, text: str) -> str:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return str(folder / "SKILL.md")


def test_the_list_has_all_of_them_and_says_which_count(workspace: Path, mine: Path) -> None:
    skill(mine / "release", "How to make a release.")
    skill(mine / "secret", "For people.", disable_model_invocation="true")
    skill(workspace / ".trunkline/skills/release", "Theirs.", allowed_tools="Bash")
    file = broken(workspace / ".claude/skills/bad", "nothing")
    assert invoke("list").stdout.splitlines() == [
        "NAME     OF         STATE     DESCRIPTION",
        "release  user       ok        How to make a release.",
        "secret   user       / only    For people.",
        "release  workspace  shadowed  Theirs.",
        "bad                 broken    it has no front matter: `---`, `name`, `description`, `---`",
    ]
    found = printed("list")
    assert [each["name"] for each in found["skills"]] == ["release", "secret"]
    assert [(each["name"], each["allowed_tools"], each["allowed_tools_count"]) for each in found["shadowed"]] == [
        ("release", ["Bash"], False)
    ]
    assert [each["file"] for each in found["broken"]] == [file]


def test_where_there_is_none_that_is_said() -> None:
    result = invoke("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no skills" in result.stderr
    assert printed("list") == {"skills": [], "shadowed": [], "broken": []}


def test_one_of_them_is_shown_with_its_text(workspace: Path, mine: Path) -> None:
    folder = skill(workspace / ".claude/skills/release", "How.", "1. Tag it.\x1b[31m", allowed_tools="Bash(git:*)")
    shown = invoke("show", "/Release").stdout
    for part in ("name: release", f"file: {folder}/SKILL.md", "Bash(git:*) (without effect: ", "1. Tag it."):
        assert part in shown
    assert "\x1b" not in shown
    assert printed("show", "release", "--workspace", str(workspace))["body"] == "1. Tag it.[31m"
    result = invoke("show", "relaese")
    assert result.exit_code == 1
    assert "Did you mean `release`?" in result.stderr


def test_one_that_is_broken_cannot_be_shown_and_says_why(workspace: Path) -> None:
    broken(workspace / ".claude/skills/bad", "---\nname: bad\n---\n")
    result = invoke("show", "bad")
    assert result.exit_code == 1
    assert "no `description`" in result.stderr


def test_what_is_right_passes_the_check(workspace: Path, mine: Path) -> None:
    skill(mine / "release")
    skill(workspace / ".claude/skills/release")
    result = invoke("check")
    assert result.exit_code == 0
    assert "is shadowed by" in result.stdout
    assert printed("check")["broken"] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing", "no front matter"),
        ("---\nname: bad\n---\n", "no `description`"),
        ("---\ndescription: x\n---\n", "no `name`"),
        ("---\nname: bad\ndescription: use this: always\n---\n", "not YAML"),
        ("---\nname: bad\ndescription: [x\n---\n", "not closed"),
        ("---\nname: a/b\ndescription: x\n---\n", "cannot be its name"),
    ],
)
def test_what_is_broken_is_named_and_fails_the_check(workspace: Path, mine: Path, text: str, problem: str) -> None:
    skill(mine / "good")
    file = broken(workspace / ".claude/skills/bad", text)
    result = invoke("check")
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{file}: ")
    assert problem in line
    (told,) = printed("check", code=1)["broken"]
    assert told["file"] == file
    assert problem in told["problem"]


def test_what_can_be_used_in_spite_of_a_flaw_is_not_counted_as_broken(workspace: Path, mine: Path) -> None:
    skill(mine / "good")
    nameless = broken(workspace / ".claude/skills/nameless", "---\ndescription: x\n---\n")
    nothing = broken(workspace / ".claude/skills/nothing", "nothing")
    # Its front matter is fine, and its end is no text.
    binary = broken(
        workspace / ".claude/skills/binary", "---\nname: binary\ndescription: x\n---\n" + "x" * 20_000 + "\0"
    )
    result = invoke("check")
    assert result.exit_code == 1
    assert result.stderr == "Skills that can be used: 2. Broken: 2. With a flaw for other programs: 1.\n"
    told = printed("check", code=1)
    assert told["skills"] == 2
    assert {each["file"]: each["usable"] for each in told["broken"]} == {nothing: False, nameless: True, binary: False}
