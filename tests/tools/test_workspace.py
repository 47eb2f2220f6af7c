"""What is inside a workspace, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.tools.edit import Edit
from trunkline.tools.files import FileMemory
from trunkline.tools.workspace import Workspace, printable
from trunkline.tools.write import Write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "work"


def test_relative_paths_start_at_the_root(root: Path) -> None:
    assert Workspace(root).resolve("src/a.py") == f"{root}/src/a.py"
    assert Workspace(root).resolve("./src/../b") == f"{root}/b"
    assert Workspace(root).resolve("") == str(root)


def test_absolute_paths_and_the_home_are_understood(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert Workspace(root).resolve("/etc/hosts") == "/etc/hosts"
    assert Workspace(root).resolve("~/notes") == "/home/somebody/notes"


@pytest.mark.parametrize("path", ["", ".", "a", "src/new/deep/file", "src/../a", "no\0name", "half\ud800"])
def test_these_are_inside(root: Path, path: str) -> None:
    assert not Workspace(root).outside(path)


@pytest.mark.parametrize("path", ["..", "../elsewhere", "/etc/passwd", "src/../../x", "~", "/"])
def test_these_are_outside(root: Path, path: str) -> None:
    assert Workspace(root).outside(path)


def test_a_directory_whose_name_only_begins_like_the_root_is_outside(root: Path) -> None:
    assert Workspace(root).outside(f"{root}-other/file")


def test_a_link_out_is_outside_also_below_it_and_when_its_target_is_missing(root: Path) -> None:
    (root / "out").symlink_to(root.parent / "elsewhere")
    (root / "dangling").symlink_to("/no/such/place")
    (root / "in").symlink_to(root / "src")
    workspace = Workspace(root)
    assert workspace.outside("out")
    assert workspace.outside("out/new.txt")
    assert workspace.outside("dangling")
    assert not workspace.outside("in/new.txt")


def test_a_root_that_is_itself_a_link_has_an_inside(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    workspace = Workspace(link)
    assert not workspace.outside("src/a")
    assert not workspace.outside(str(root / "src"))
    assert workspace.outside("../elsewhere")


def test_links_in_a_circle_do_no_harm(root: Path) -> None:
    (root / "circle").symlink_to("circle")
    assert not Workspace(root).outside("circle/x")


def test_everything_is_inside_the_root_of_all(root: Path) -> None:
    assert not Workspace("/").outside("/etc/passwd")
    assert Workspace("/").relative("/etc/passwd") == "etc/passwd"


def test_people_see_paths_from_the_root_where_they_are_below_it(root: Path) -> None:
    assert Workspace(root).relative(f"{root}/src/a.py") == "src/a.py"
    assert Workspace(root).relative("src") == "src"
    assert Workspace(root).relative("/etc/hosts") == "/etc/hosts"


def test_names_that_are_no_text_can_be_shown() -> None:
    assert printable(os.fsdecode(b"caf\xe9")) == "caf\N{REPLACEMENT CHARACTER}"


def test_a_change_of_what_makes_programs_run_counts_as_outside_by_any_way(root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "harmless").symlink_to(".git/hooks")
    (root / "notes").symlink_to(".git/config")
    (root / "shared").mkdir()
    (root / ".vscode").symlink_to("shared")
    workspace = Workspace(root)
    for path in (
        ".git/config",
        "src/../.git/x",
        ".Git/config",
        "sub/.git/config",
        "harmless/pre-commit",
        "notes",
        ".vscode/tasks.json",
        "../x",
    ):
        assert workspace.guards(path), path
    assert not workspace.guards("src/a.py")
    # Reading them is as harmless as before.
    assert not workspace.outside(".git/config")


def test_a_workspace_in_such_a_directory_has_ordinary_files(root: Path) -> None:
    (root / ".git" / "modules").mkdir(parents=True)
    assert not Workspace(root / ".git" / "modules").guards("a.txt")


@pytest.mark.parametrize("tool", [Write, Edit])
def test_whatever_changes_files_asks_about_those(root: Path, tool: type[Write] | type[Edit]) -> None:
    made = tool(Workspace(root), FileMemory())
    assert made.outside({"file_path": ".git/config"})
    assert not made.outside({"file_path": "src/a.py"})
