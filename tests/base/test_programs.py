"""Where programs are looked for: on the `PATH`, and never in the directory that one happens to be in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trunkline.base.process import SpawnError, child_env, spawn
from trunkline.base.programs import as_typed, as_typed_here, find_program, own_command, own_command_here, trusted_path

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


@pytest.mark.parametrize(
    ("path", "folder", "anywhere", "here"),
    [
        ("bin", ".", "trunkline", "trunkline"),
        ("", ".", "{own}", "bin/trunkline"),
        ("", "other", "{own}", "{own}"),
        ("others", ".", "{own}", "bin/trunkline"),
    ],
    ids=["on PATH", "near", "far", "another on PATH"],
)
def test_it_is_told_how_to_run_the_program_that_is_running(
    path: str, folder: str, anywhere: str, here: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "bin" / "trunkline"
    for program in (own, tmp_path / "others" / "trunkline"):
        program.parent.mkdir()
        program.touch(mode=0o755)
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.chdir(tmp_path / folder)
    environ = {"PATH": str(tmp_path / path) if path else "/nowhere"}
    assert own_command(environ) == anywhere.format(own=own)
    assert own_command_here(environ) == here.format(own=own)
    own.unlink()
    assert own_command(environ) == own_command_here(environ) == f"{tmp_path}/bin/python -P -X utf8 -m trunkline"


def test_commands_in_a_text_are_those_that_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "bin" / "trunkline"
    own.parent.mkdir()
    own.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    told = "Get `m` with `trunkline models pull m`. The package `trunkline` has it; trunkline knows."
    typed = "Get `m` with `bin/trunkline models pull m`. The package `trunkline` has it; trunkline knows."
    assert as_typed_here(told) == typed
    assert as_typed(told) == typed.replace("`bin/", f"`{tmp_path}/bin/")
    monkeypatch.setenv("PATH", str(own.parent))
    assert as_typed_here(told) == as_typed(told) == told
