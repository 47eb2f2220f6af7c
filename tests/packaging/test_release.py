"""`scripts/release.py`: one command makes the commit and the tag, and the notes are the changelog's."""

from __future__ import annotations

import datetime
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import release
import trunkline
from tests.conftest import require

TODAY = datetime.date(2026, 11, 16)
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added
- A thing.

## [0.1.0] - 2026-01-01

- The first.
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a changelog."""
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "ann@example.org")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Begin")):
        release.git(tmp_path, *command)
    return tmp_path


def test_a_release_is_a_commit_of_the_changelog_with_the_date_and_a_tag_on_it(root: Path) -> None:
    release.prepare(root, "0.2.0", TODAY)
    assert release.git(root, "describe", "--exact-match") == "v0.2.0"
    assert release.git(root, "status", "--porcelain") == ""
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-16\n\n### Added" in (root / "CHANGELOG.md").read_text()


def test_the_notes_are_what_the_changelog_says_about_that_version_alone(root: Path) -> None:
    assert release.notes(root, "0.1.0") == "- The first.\n"
    release.prepare(root, "0.2.0", TODAY)
    assert release.notes(root, "0.2.0") == "### Added\n- A thing.\n"


def test_a_tag_that_the_changelog_does_not_know_has_no_notes(root: Path) -> None:
    with pytest.raises(release.ReleaseError, match=r"nothing under `## \[0\.3\.0\]`"):
        release.notes(root, "0.3.0")


def built_version(root: Path) -> str:
    """What a build there calls itself, with the settings of our own."""
    require("hatch-vcs", find_spec("hatch_vcs") is not None, "make test-environment")
    from hatch_vcs.version_source import VCSVersionSource

    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: str = VCSVersionSource(str(root), project["tool"]["hatch"]["version"]).get_version_data()["version"]
    return found


def test_a_build_has_the_version_of_its_tag_and_counts_the_commits_since(root: Path) -> None:
    assert built_version(root) == "0.1.dev1"
    release.prepare(root, "0.2.0", TODAY)
    assert built_version(root) == "0.2.0"
    release.git(root, "commit", "--quiet", "--allow-empty", "--message", "More")
    assert built_version(root) == "0.2.1.dev1"


def test_a_copy_without_git_can_be_built_and_does_not_know_its_version(tmp_path: Path) -> None:
    assert built_version(tmp_path) == trunkline._NO_VERSION


@pytest.mark.parametrize("version", ["0.2", "v0.2.0", "0.2.0-rc1", "", "0.2.0 "])
def test_what_is_no_version_is_refused(root: Path, version: str) -> None:
    with pytest.raises(release.ReleaseError, match="is not a version"):
        release.prepare(root, version, TODAY)


def test_nothing_is_released_twice_or_empty_or_with_changes_that_nobody_committed(root: Path) -> None:
    release.prepare(root, "0.2.0", TODAY)
    with pytest.raises(release.ReleaseError, match="is there already"):
        release.prepare(root, "0.2.0", TODAY)
    with pytest.raises(release.ReleaseError, match="nothing under"):
        release.prepare(root, "0.3.0", TODAY)
    (root / "new.txt").touch()
    with pytest.raises(release.ReleaseError, match="not committed"):
        release.prepare(root, "0.3.0", TODAY)


def test_a_mistake_is_told_and_not_thrown(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["notes", "v99.0.0"]) == 1
    assert "make release" in capsys.readouterr().err
