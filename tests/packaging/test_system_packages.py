"""System packages are installed on Debian by root, when something is missing, and never otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import system_packages

# Stands in for apt-get: writes down how it was called; `install` works only after `update`, as in a fresh container.
APT_GET = """#!/bin/sh
here=$(dirname "$0")
echo "$@" >>"$here/calls"
case "$*" in
    *update*) touch "$here/updated" ;;
    *install*)
        [ -e "$here/updated" ] || { echo "no package lists"; exit 100; }
        printf '#!/bin/sh\\n' >"$here/wanted-tool"
        chmod +x "$here/wanted-tool" ;;
esac
"""
NEEDS = (("sh", "dash"), ("wanted-tool", "wanted-package"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, first on PATH, with an apt-get of our own; we are root on Debian."""
    (tmp_path / "apt-get").write_text(APT_GET)
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(system_packages, "is_debian", lambda: True)
    return tmp_path


def test_what_is_missing_is_installed_with_lists_fetched_when_there_are_none(machine: Path) -> None:
    system_packages.ensure(NEEDS)
    calls = (machine / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["wanted-package", "update", "wanted-package"]
    assert "dash" not in "".join(calls)


def test_nothing_is_run_when_all_is_there(machine: Path) -> None:
    system_packages.ensure((("sh", "dash"),))
    assert not (machine / "calls").exists()


def test_the_missing_packages_are_named_where_they_may_not_be_installed(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    system_packages.ensure(NEEDS)
    assert not (machine / "calls").exists()
    assert "wanted-package" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ID=debian\n", True), ('NAME="U"\nID=ubuntu\nID_LIKE="debian"\n', True), ("ID=fedora\n", False), (None, False)],
)
def test_debian_and_its_children_are_known(tmp_path: Path, text: str | None, expected: bool) -> None:
    release = tmp_path / "os-release"
    if text is not None:
        release.write_text(text)
    assert system_packages.is_debian(release) is expected
