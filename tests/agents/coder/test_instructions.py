"""AGENTS.md: which are read, in which order, and what they can include."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.agents.coder import instructions
from trunkline.agents.coder.instructions import MAX_CHARS, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, load
from trunkline.base import paths


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def own() -> Path:
    return Path(paths.config_dir()) / "AGENTS.md"


def test_without_any_there_is_no_section(tmp_path: Path) -> None:
    assert load(str(tmp_path)) == instructions.Instructions()


def test_the_users_come_first_then_the_roots_then_the_nearer_ones(repository: Path) -> None:
    here = repository / "a" / "b"
    files = [
        write(own(), "the user"),
        write(repository / "AGENTS.md", "the root"),
        write(here / "AGENTS.md", "the workspace"),
    ]
    found = load(str(here))
    assert found.files == tuple(map(str, files))
    assert found.notices == ()
    places = [found.text.index(text) for text in ("the user\n", "the root\n", "the workspace")]
    assert places == sorted(places)
    assert f"Contents of {files[1]} (project instructions):\n\nthe root\n" in found.text
    assert f"Contents of {files[0]} (the user's own):" in found.text


def test_what_lies_above_the_repository_or_below_the_workspace_does_not_count(repository: Path) -> None:
    write(repository.parent / "AGENTS.md", "above")
    write(repository / "below" / "AGENTS.md", "below")
    write(repository / "AGENTS.md", "here")
    assert load(str(repository)).files == (str(repository / "AGENTS.md"),)


def test_without_a_repository_only_the_workspaces_own_counts(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "above")
    here = write(tmp_path / "plain" / "AGENTS.md", "here")
    assert load(str(here.parent)).files == (str(here),)


def test_a_worktree_is_a_repository_too(tmp_path: Path) -> None:
    write(tmp_path / ".git", "gitdir: elsewhere")
    write(tmp_path / "AGENTS.md", "root")
    (tmp_path / "deep").mkdir()
    assert "root" in load(str(tmp_path / "deep")).text


# Includes


def test_an_include_stands_for_the_file_seen_from_the_one_that_has_it(repository: Path) -> None:
    write(repository / "AGENTS.md", "before\n@docs/style.md\nafter")
    write(repository / "docs" / "style.md", "Tabs.\n  @more.txt  ")
    write(repository / "docs" / "more.txt", "And spaces.")
    assert "before\nTabs.\nAnd spaces.\nafter" in load(str(repository)).text


@pytest.mark.parametrize(
    "line",
    [
        "see @docs/style.md",
        "@someone",
        "@",
        "@docs/style.md and more",
        "```\n@docs/style.md\n```",
        "~~~~\n```\n@docs/style.md",
    ],
)
def test_what_is_no_include_stands_for_itself(repository: Path, line: str) -> None:
    write(repository / "docs" / "style.md", "Tabs.")
    write(repository / "AGENTS.md", line)
    found = load(str(repository))
    assert found.text.endswith(line)
    assert found.notices == ()


def test_a_fence_ends_where_it_ends(repository: Path) -> None:
    write(repository / "style.md", "Tabs.")
    write(repository / "AGENTS.md", "```sh\n@style.md\n```\n@style.md")
    assert load(str(repository)).text.endswith("```sh\n@style.md\n```\nTabs.")


def test_files_that_include_each_other_end(repository: Path) -> None:
    write(repository / "AGENTS.md", "one\n@two.md")
    write(repository / "two.md", "two\n@AGENTS.md\n@two.md\nend")
    found = load(str(repository))
    assert found.text.endswith("one\ntwo\nend")
    assert [notice.partition(" is left out: ")[2] for notice in found.notices] == ["it would include itself."] * 2


def test_includes_go_five_deep(repository: Path) -> None:
    write(repository / "AGENTS.md", "@1.md")
    for depth in range(1, MAX_DEPTH + 2):
        write(repository / f"{depth}.md", f"depth {depth}\n@{depth + 1}.md")
    found = load(str(repository))
    assert f"depth {MAX_DEPTH}" in found.text
    assert f"depth {MAX_DEPTH + 1}" not in found.text
    assert len(found.notices) == 1


def test_a_few_files_that_include_each_other_often_are_no_bomb(repository: Path) -> None:
    write(repository / "AGENTS.md", "@1.md\n" * 100)
    for depth in range(1, 5):
        write(repository / f"{depth}.md", f"@{depth + 1}.md\n" * 100)
    write(repository / "5.md", "leaf")
    found = load(str(repository))
    assert len(found.files) <= MAX_FILES


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@../secret.md", "it is outside of the workspace"),
        ("@/etc/hosts.md", "it is outside of the workspace"),
        ("@~/notes.md", "it is outside of the workspace"),
        ("@link.md", "it is outside of the workspace"),
        ("@run.sh", "only .md, .txt, .json, .yaml, .yml, .toml files can be included"),
        ("@absent.md", "there is no such file"),
    ],
)
def test_a_repository_does_not_get_to_show_the_rest_of_the_disk(repository: Path, line: str, reason: str) -> None:
    secret = write(repository.parent / "secret.md", "secret")
    (repository / "link.md").symlink_to(secret)
    write(repository / "run.sh", "secret")
    agents = write(repository / "AGENTS.md", f"{line}\nrest")
    found = load(str(repository))
    assert "secret" not in found.text
    assert found.text.endswith("rest")
    assert found.notices == (f"`{line}` in `{agents}` is left out: {reason}.",)


def test_a_link_in_the_place_of_the_file_does_not_lead_out_either(repository: Path) -> None:
    secret = write(repository.parent / "id_rsa", "secret")
    (repository / "AGENTS.md").symlink_to(secret)
    found = load(str(repository))
    assert found.text == ""
    assert "leaves its directory" in found.notices[0]


@pytest.mark.parametrize("line", ["@../secret.md", "@~/secret.md", "@link.md"])
def test_a_home_that_is_a_repository_is_not_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    home = tmp_path / "home"
    (home / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    secret = write(home / "secret.md", "secret")
    write(home / "AGENTS.md", "@secret.md")
    write(home / "cloned" / "AGENTS.md", f"{line}\nrest")
    (home / "cloned" / "link.md").symlink_to(secret)
    found = load(str(home / "cloned"))
    assert found.files == (str(home / "cloned" / "AGENTS.md"),)
    assert "secret" not in found.text.replace(line, "")
    assert found.notices == (f"`{line}` in `{found.files[0]}` is left out: it is outside of the workspace.",)


def test_what_is_included_lies_in_the_workspace_and_not_only_in_the_repository(repository: Path) -> None:
    write(repository / "secret.md", "secret")
    write(repository / "AGENTS.md", "root\n@secret.md")
    write(repository / "part" / "AGENTS.md", "part\n@../secret.md")
    found = load(str(repository / "part"))
    assert [text in found.text for text in ("root", "part", "secret")] == [True, True, False]
    assert len(found.notices) == 2


def test_a_link_within_the_repository_is_fine(repository: Path) -> None:
    write(repository / "docs" / "agents.md", "Tabs.\n@more.md")
    write(repository / "docs" / "more.md", "Spaces.")
    (repository / "AGENTS.md").symlink_to("docs/agents.md")
    assert load(str(repository)).text.endswith("Tabs.\nSpaces.")


def test_the_users_own_file_may_be_a_link_and_include_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "dotfiles" / "agents.md", "mine\n@style.md\n@../other.md")
    write(tmp_path / "dotfiles" / "style.md", "my style")
    write(tmp_path / "other.md", "elsewhere")
    own().parent.mkdir(parents=True)
    own().symlink_to(tmp_path / "dotfiles" / "agents.md")
    found = load(str(tmp_path / "dotfiles"))
    assert "mine\nmy style" in found.text
    assert "elsewhere" not in found.text


# Bounds


def test_a_long_file_is_cut_and_that_is_said(repository: Path) -> None:
    write(repository / "AGENTS.md", "x" * (MAX_FILE_BYTES + 1))
    found = load(str(repository))
    assert len(found.text) < MAX_FILE_BYTES + 1000
    assert "longer than" in found.notices[0]


def test_all_together_are_bounded(repository: Path) -> None:
    for directory in (repository, repository / "a", repository / "a" / "b"):
        write(directory / "AGENTS.md", "x" * (MAX_FILE_BYTES - 10))
    found = load(str(repository / "a" / "b"))
    assert len(found.text) < MAX_CHARS + 1000
    assert len(found.notices) == 1


def test_a_pipe_is_not_waited_for(repository: Path) -> None:
    os.mkfifo(repository / "AGENTS.md")
    assert load(str(repository)).notices == (f"`{repository}/AGENTS.md` is not a file. It is ignored.",)


@pytest.mark.parametrize("name", ["CLAUDE.md", ".aionrs.md"])
def test_where_a_directory_has_no_agents_md_that_of_another_agent_stands_for_it(repository: Path, name: str) -> None:
    here = repository / "part"
    root = write(repository / name, "the root")
    write(here / name, "not this")
    near = write(here / "AGENTS.md", "the workspace")
    mine = write(own().with_name(name), "the user")
    assert load(str(here)).files == (str(mine), str(root), str(near))


def test_claude_md_includes_files_in_the_middle_of_a_line_and_agents_md_does_not(repository: Path) -> None:
    write(repository / "docs/style.md", "Use tabs.")
    text = "See @docs/style.md, and `@docs/other.md`, and me@example.md.\n```\n@docs/code.md\n```\n"
    write(repository / "CLAUDE.md", text)
    found = load(str(repository))
    assert "See @docs/style.md, and `@docs/other.md`, and me@example.md.\nUse tabs.\n```" in found.text
    assert found.notices == ()
    write(repository / "AGENTS.md", text)
    assert "Use tabs." not in load(str(repository)).text
