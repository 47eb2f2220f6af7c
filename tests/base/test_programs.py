"""Where programs are looked for: on the `PATH`, and never in the directory that one happens to be in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunkline.base.process import SpawnError, child_env, spawn
from trunkline.base.programs import find_program, trusted_path

#: Parts of a `PATH` that lead into the current directory.
RELATIVE = ("", ".", "bin", "../repository")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of somebody else's, with a program `tool` in all places, in which we are."""
    folder = tmp_path / "repository"
    for place in (folder, folder / "bin"):
        place.mkdir()
        program = place / "tool"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("relative", RELATIVE)
def test_a_folder_that_begins_in_the_current_directory_is_passed_over(repository: Path, relative: str) -> None:
    assert find_program("tool", {"PATH": relative}) is None
    path = f"{relative}{os.pathsep}{repository}"
    assert find_program("tool", {"PATH": path}) == f"{repository}/tool"
    assert trusted_path({"PATH": path}) == str(repository)


def test_a_program_is_found_only_if_it_can_be_run(repository: Path) -> None:
    (repository / "plain").write_text("x")
    environ = {"PATH": f"/nowhere{os.pathsep}{repository}"}
    assert find_program("plain", environ) is None
    assert find_program("bin", environ) is None


@pytest.mark.process
@pytest.mark.parametrize("relative", RELATIVE)
def test_no_program_of_the_current_directory_is_started_by_its_bare_name(repository: Path, relative: str) -> None:
    env = child_env(extra={"PATH": f"{relative}{os.pathsep}/nowhere"})
    with pytest.raises(SpawnError) as caught:
        spawn(["tool"], cwd=str(repository), env=env)
    assert caught.value.reason == "not-found"
