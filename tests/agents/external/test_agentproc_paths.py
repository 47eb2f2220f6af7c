"""What a foreign agent's tool may be given without a person being asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.agents.external.agentproc_paths import MAX_DEPTH, MAX_TEXTS, stays_inside


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    place = tmp_path / "ws"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.py").touch()
    (place / "out").symlink_to("/etc")
    return str(place)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"path": "src/a.py"},
        {"path": "new/file.txt", "content": "some words, and\nmore"},
        {"path": "src/../src/a.py"},
        {"edits": [{"old": "a", "new": "b"}], "count": 3, "all": True, "none": None, "path": None},
        {"paths": ["src/a.py", "b"], "profile": 3},
    ],
)
def test_what_names_nothing_outside_is_inside(data: Any, workspace: str) -> None:
    assert stays_inside(data, workspace, workspace)
    assert stays_inside({"path": f"{workspace}/src"}, workspace, workspace)


@pytest.mark.parametrize(
    "data",
    [
        {"path": "/etc/passwd"},
        {"path": "out/passwd"},
        {"path": " /etc/passwd"},
        {"path": "../other"},
        {"path": "~/secrets"},
        {"path": "~root"},
        {"path": "file:///etc/passwd"},
        {"path": "FILE:///etc/%70asswd"},
        {"path": "file://localhost/etc/passwd"},
        {"edits": {"/etc/passwd": "x"}},
        {"a": [[[[["/etc/passwd"]]]]]},
        {"path": "a\0b"},
        {"path": "/tmp/\ud800"},
        {"path": "x" * 5000},
        {"file_path": 5},
        {"notebookPath": True},
        {"paths": ["a", 5]},
        {"cwd": {"a": 1.5}},
    ],
    ids=repr,
)
def test_what_names_something_outside_is_found(data: Any, workspace: str) -> None:
    assert not stays_inside(data, workspace, workspace)


def test_what_is_too_deep_or_too_much_to_look_at_counts_as_outside(workspace: str) -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert stays_inside(deep, workspace, workspace)
    assert not stays_inside([deep], workspace, workspace)
    assert stays_inside(["x"] * MAX_TEXTS, workspace, workspace)
    assert not stays_inside(["x"] * (MAX_TEXTS + 1), workspace, workspace)


def test_a_change_of_a_file_that_makes_programs_run_does_not_stay_inside(tmp_path: Path) -> None:
    workspace = str(tmp_path)
    (tmp_path / "notes").symlink_to(".git")
    for path in (".git/config", "a/.Git/hooks/x", ".envrc", "notes/config"):
        assert stays_inside({"file_path": path}, workspace, workspace)
        assert not stays_inside({"file_path": path}, workspace, workspace, changes=True)
    assert stays_inside({"file_path": "a.py"}, workspace, workspace, changes=True)
