"""Skills on the disk: where they are found, what is told of them, and what is no skill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.agents.coder.extending import markdown
from trunkline.agents.coder.extending import skills as module
from trunkline.agents.coder.extending.markdown import MAX_BYTES
from trunkline.agents.coder.extending.skills import LIST_CHARS, Skills, SkillSet, listed, text_of
from trunkline.core.faults import ConfigError


def skill(folder: Path, description: str = "What it is for.", body: str = "Do it.", **more: str) -> Path:
    """Write a skill with the folder's name."""
    folder.mkdir(parents=True)
    said = {"name": folder.name, "description": description, **{key.replace("_", "-"): more[key] for key in more}}
    front = "".join(f"{key}: {value}\n" for key, value in said.items() if value)
    (folder / "SKILL.md").write_text(f"---\n{front}---\n\n{body}\n")
    return folder


class Place:
    """A user's home and a workspace."""

    def __init__(self, root: Path) -> None:
        self.home, self.workspace = root / "user", root / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.environ = {"HOME": str(self.home), "TRUNKLINE_HOME": str(root / "state")}
        self.config = root / "state" / "config"

    def skills(self, *, trusted: bool = False) -> Skills:
        return Skills(str(self.workspace), self.environ, trusted=trusted)

    def look(self, *, trusted: bool = False) -> SkillSet:
        return self.skills(trusted=trusted).look()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_skills_are_found_in_every_place_of_the_user_and_of_the_workspace(place: Place) -> None:
    users = [place.config / "skills", place.home / ".trunkline/skills", place.home / ".claude/skills"]
    users.append(place.home / ".config/aionrs/skills")
    workspaces = [place.workspace / name / "skills" for name in (".trunkline", ".aionrs", ".claude")]
    for number, folder in enumerate([*users, *workspaces]):
        skill(folder / f"s{number}")
    found = place.look()
    assert [(each.name, each.own) for each in found.skills.values()] == [
        *((f"s{number}", True) for number in range(4)),
        *((f"s{number}", False) for number in range(4, 7)),
    ]
    assert not found.broken


def test_a_repository_has_its_skills_in_every_directory_of_it(place: Place) -> None:
    (place.workspace / ".git").mkdir()
    skill(place.workspace / ".claude/skills/above", allowed_tools="Bash")
    below = place.workspace / "part"
    below.mkdir()
    found = Skills(str(below), place.environ, trusted=True).look().skills["above"]
    assert (found.allowed, found.granted) == (("Bash",), ())


def test_the_users_own_comes_before_the_workspaces_and_the_other_one_is_shadowed(place: Place) -> None:
    mine = skill(place.home / ".claude/skills/deploy", "Mine.")
    theirs = skill(place.workspace / ".trunkline/skills/Deploy", "Theirs.")
    found = place.look()
    assert [each.folder for each in found.skills.values()] == [str(mine)]
    assert [each.folder for each in found.shadowed] == [str(theirs)]
    assert found.find("/DEPLOY") == found.skills["deploy"]


def test_links_are_followed_and_cycles_end(place: Place, tmp_path: Path) -> None:
    host = skill(tmp_path / "host" / "linked")
    root = place.workspace / ".aionrs/skills"
    root.mkdir(parents=True)
    (root / "linked").symlink_to(host)
    (root / "again").symlink_to(host)
    (root / "loop").symlink_to(root)
    (root / "up").symlink_to(place.workspace)
    (root / "gone").symlink_to(tmp_path / "nowhere")
    (place.workspace / ".claude").mkdir()
    (place.workspace / ".claude/skills").symlink_to(root)
    found = place.look()
    assert [each.folder for each in found.skills.values()] == [str(root / "again")]
    assert not found.broken
    assert not found.shadowed


def test_a_link_to_itself_is_in_nobodys_way(place: Place) -> None:
    skill(place.workspace / ".claude/skills/one")
    (place.workspace / ".claude/skills/aaa").symlink_to("aaa")
    assert list(place.look().skills) == ["one"]


def test_a_workspace_that_nobody_trusts_gets_no_other_file_read_by_a_link(place: Place, tmp_path: Path) -> None:
    (tmp_path / "diary.md").write_text("---\nname: diary\ndescription: Mine.\n---\nDear diary.\n")
    folder = place.workspace / ".claude/skills/diary"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(tmp_path / "diary.md")
    (broken,) = place.look().broken
    assert "link" in broken.problem
    assert "diary" in place.look(trusted=True).skills


def test_a_skill_may_be_a_link_to_the_file_of_another(place: Place, tmp_path: Path) -> None:
    skill(tmp_path / "elsewhere/review")
    folder = place.workspace / ".claude/skills/review"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(tmp_path / "elsewhere/review/SKILL.md")
    assert list(place.look().skills) == ["review"]


def test_skills_may_lie_in_groups_and_not_in_skills(place: Place) -> None:
    outer = skill(place.home / ".trunkline/skills/group/outer")
    skill(outer / "inner")
    skill(place.home / ".trunkline/skills/.hidden/secret")
    skill(place.home / ".trunkline/skills/a/b/c/too-deep")
    assert list(place.look().skills) == ["outer"]


def test_allowed_tools_count_for_the_user_and_for_a_workspace_that_is_trusted(place: Place) -> None:
    skill(place.home / ".trunkline/skills/mine", allowed_tools="Bash(git:*), Read")
    skill(place.workspace / ".trunkline/skills/theirs", allowed_tools="[Bash, Write]")
    found = place.look().skills
    assert found["mine"].granted == ("Bash(git:*)", "Read")
    assert (found["theirs"].allowed, found["theirs"].granted) == (("Bash", "Write"), ())
    assert place.look(trusted=True).skills["theirs"].granted == ("Bash", "Write")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no front matter"),
        ("# Just words", "no front matter"),
        ("---\nname: x\n---\nDo it.", "no `description`"),
        ("---\nname: x\ndescription: [a\n---\nDo it.", "not closed"),
        ("---\nname: x\ndescription: y\n", "no end"),
        ("---\nname: a/b\ndescription: y\n---\n", "a name has"),
        ("---\nname: ../../x\ndescription: y\n---\n", "a name has"),
        ('---\nname: "a\\nb"\ndescription: y\n---\n', "a name has"),
        (f"---\nname: {'x' * 65}\ndescription: y\n---\n", "a name has"),
        ("---\nname: x\ndescription: y\n---\n" + "x" * MAX_BYTES, "bytes"),
        ("---\nname: x\n" + "# x\n" * 10_000 + "description: y\n---\n", "no end within"),
        ("---\nname: x\0\ndescription: y\n---\n", "binary"),
    ],
)
def test_what_is_broken_is_told_and_costs_nothing_else(place: Place, text: str, problem: str) -> None:
    skill(place.home / ".claude/skills/good")
    folder = place.home / ".claude/skills/bad"
    folder.mkdir()
    (folder / "SKILL.md").write_text(text)
    found = place.look()
    assert list(found.skills) == ["good"]
    (broken,) = found.broken
    assert broken.folder == str(folder)
    assert problem in broken.problem
    assert broken.problem.isprintable()


def test_a_pipe_a_directory_and_what_may_not_be_read_are_no_skills(place: Place) -> None:
    root = place.home / ".claude/skills"
    for name in ("pipe", "directory", "dangling"):
        (root / name).mkdir(parents=True)
    os.mkfifo(root / "pipe/SKILL.md")
    (root / "directory/SKILL.md").mkdir()
    (root / "dangling/SKILL.md").symlink_to("nowhere")
    assert len(place.look().broken) == 3


def test_a_skill_without_a_name_has_that_of_its_folder(place: Place) -> None:
    skill(place.home / ".claude/skills/plain", name="")
    found = place.look().skills["plain"]
    assert "no `name`" in found.flaw


def test_a_name_may_have_blanks_and_is_typed_with_hyphens(place: Place) -> None:
    skill(place.home / ".claude/skills/pdf", name="PDF Forms")
    skill(place.workspace / ".claude/skills/other", name="pdf-forms")
    found = place.look()
    assert list(found.skills) == ["PDF Forms"]
    assert [shadowed.name for shadowed in found.shadowed] == ["pdf-forms"]
    for name in ("PDF Forms", "pdf forms", "/pdf-forms"):
        assert found.find(name) is found.skills["PDF Forms"]


def test_nothing_is_read_again_and_changes_count(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = skill(place.home / ".claude/skills/one")
    skills = place.skills()
    first = skills.look()
    reading: list[str] = []

    def noted(path: str) -> markdown.MarkdownFile:
        reading.append(path)
        return markdown.head(path)

    monkeypatch.setattr(module, "head", noted)
    assert skills.look() is first
    assert not reading
    (folder / "SKILL.md").write_text("---\nname: one\ndescription: Something else now.\n---\n")
    skill(place.home / ".claude/skills/two")
    assert [each.description for each in skills.look().skills.values()] == ["Something else now.", "What it is for."]
    assert len(reading) == 2
    (folder / "SKILL.md").unlink()
    assert list(skills.look().skills) == ["two"]


def test_the_model_is_told_names_and_descriptions_and_not_the_hidden_ones(place: Place) -> None:
    skill(place.home / ".claude/skills/one", "The first.", when_to_use="Use it on Mondays.")
    skill(place.home / ".claude/skills/two", "The\x1b[31m second.", disable_model_invocation="true")
    told = listed(place.look())
    assert "- one: The first. Use it on Mondays." in told
    assert "two" not in told
    assert "Do it." not in told
    assert not listed(SkillSet())


@pytest.mark.parametrize(("count", "length"), [(30, 900), (150, 400), (400, 300), (3000, 50)])
def test_the_list_keeps_to_its_budget_and_loses_no_skill(place: Place, count: int, length: int) -> None:
    for number in range(count):
        skill(place.workspace / f".claude/skills/s{number:04}", "word " * (length // 5))
    mine = skill(place.home / ".claude/skills/zz-mine", "My own.")
    found = place.look()
    told = listed(found)
    assert len(told) <= LIST_CHARS
    assert len(told) > LIST_CHARS * 0.8
    assert "- zz-mine: My own." in told
    assert found.skills["zz-mine"].folder == str(mine)
    assert len(found.skills) == count + 1
    missing = count + 1 - told.count("\n- ")
    assert (f"({missing} more" in told) is (missing > 0)


def test_descriptions_are_cleaned_before_they_are_shortened(place: Place) -> None:
    for number in range(200):
        skill(place.home / f".claude/skills/s{number:03}", "x" * 80 + "secret" * 5 + "y" * 80)
    told = listed(place.look(), lambda text: text.replace("secret" * 5, "[redacted]" * 20))
    assert "secr" not in told
    assert len(told) <= LIST_CHARS


def test_what_a_skill_says_comes_with_its_folder_and_its_arguments(place: Place) -> None:
    plain = skill(place.home / ".claude/skills/plain", body="Do it with ${CLAUDE_SKILL_DIR}/x.sh.")
    skill(place.home / ".claude/skills/taking", body="Do $ARGUMENTS, and $1 stays.")
    found = place.look().skills
    assert text_of(found["plain"], "") == f"The folder of this skill: {plain}\n\nDo it with {plain}/x.sh."
    assert text_of(found["plain"], "now").endswith("x.sh.\n\nARGUMENTS: now")
    assert text_of(found["taking"], "that").endswith("\n\nDo that, and $1 stays.")


def test_a_skill_that_has_gone_or_grown_is_an_error(place: Place) -> None:
    folder = skill(place.home / ".claude/skills/gone")
    found = place.look().skills["gone"]
    (folder / "SKILL.md").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        text_of(found, "")


def test_thousands_of_skills_have_an_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SKILLS", 5)
    for number in range(8):
        skill(place.workspace / f".claude/skills/s{number}")
    assert len(place.look().skills) == 5


def test_where_nobody_knows_the_home_the_workspaces_are_found(place: Place) -> None:
    skill(place.workspace / ".claude/skills/here")
    found = Skills(str(place.workspace), {"HOME": "relative"}).look()
    assert list(found.skills) == ["here"]
