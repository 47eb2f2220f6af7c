"""`scripts/release.py`: one command makes the commit and the tag, and the notes are the changelog's."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest

import release

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
    """A repository with a version and a changelog."""
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "ann@example.org")
    (tmp_path / "src" / "trunkline").mkdir(parents=True)
    (tmp_path / "src" / "trunkline" / "__init__.py").write_text('"""Text."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Begin")):
        release.git(tmp_path, *command)
    return tmp_path


def test_a_release_is_a_commit_with_the_version_and_the_date_and_a_tag_on_it(root: Path) -> None:
    release.prepare(root, "0.2.0", TODAY)
    assert release.git(root, "describe", "--exact-match") == "v0.2.0"
    assert release.git(root, "status", "--porcelain") == ""
    assert release.source_version(root) == "0.2.0"
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-16\n\n### Added" in (root / "CHANGELOG.md").read_text()


def test_the_notes_are_what_the_changelog_says_about_that_version_alone(root: Path) -> None:
    assert release.notes(root, "0.1.0") == "- The first.\n"
    release.prepare(root, "0.2.0", TODAY)
    assert release.notes(root, "0.2.0") == "### Added\n- A thing.\n"


def test_a_tag_that_is_not_the_version_of_the_source_has_no_notes(root: Path) -> None:
    with pytest.raises(release.ReleaseError, match=r"the source is version 0\.1\.0, not 0\.3\.0"):
        release.notes(root, "0.3.0")


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


def test_the_version_of_the_source_can_be_found() -> None:
    done = subprocess.run(["git", "--version"], capture_output=True, check=False)
    assert done.returncode == 0
    assert release.source_version(release.ROOT)
