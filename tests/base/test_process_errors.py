from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import process
from trunkline.base.process import SpawnError, spawn
from trunkline.base.process_guard import Guard

pytestmark = pytest.mark.process


def failure(argv: list[str], cwd: str | None = None, env: dict[str, str] | None = None) -> SpawnError:
    with pytest.raises(SpawnError) as caught:
        spawn(argv, cwd=cwd, env=env)
    return caught.value


def make_file(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_program_that_is_not_on_the_path() -> None:
    error = failure(["no-such-program", "--key", "secret-value"])
    assert error.reason == "not-found"
    assert "`no-such-program` on `PATH`" in str(error)
    assert "secret-value" not in str(error)


def test_the_path_is_that_of_the_child(tmp_path: Path) -> None:
    make_file(tmp_path / "tool", "#!/bin/sh\nexit 4\n")
    assert failure(["tool"]).reason == "not-found"
    with spawn(["tool"], env={"PATH": str(tmp_path)}) as child:
        assert child.wait(PATIENCE_SECONDS) == 4


def test_a_relative_program_is_looked_for_in_the_childs_directory(tmp_path: Path) -> None:
    make_file(tmp_path / "tool", "#!/bin/sh\nexit 4\n")
    assert failure(["./tool"]).reason == "not-found"
    with spawn(["./tool"], cwd=str(tmp_path)) as child:
        assert child.wait(PATIENCE_SECONDS) == 4


def test_a_directory_in_the_path_that_may_not_be_searched_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What the system says then, also to root, whom no directory refuses.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(process, "_Leader", refuse)
    assert failure(["no-such-program"]).reason == "not-found"
    assert failure(["true", "x" * (1 << 22)]).reason == "too-long"


@pytest.mark.parametrize("path", ["missing", "file/below", "x" * 300])
def test_a_path_that_leads_nowhere(tmp_path: Path, path: str) -> None:
    make_file(tmp_path / "file", "")
    error = failure([str(tmp_path / path)])
    assert error.reason == "not-found"
    assert path in error.message


def test_a_file_without_permission_to_run(tmp_path: Path) -> None:
    error = failure([make_file(tmp_path / "tool", "#!/bin/sh\n", 0o644)])
    assert error.reason == "not-executable"
    assert "chmod +x" in error.hint


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    error = failure([str(tmp_path)])
    assert error.reason == "not-executable"
    assert "is a directory" in error.message


def test_a_script_without_a_first_line(tmp_path: Path) -> None:
    error = failure([make_file(tmp_path / "tool", "echo hello\n")])
    assert error.reason == "bad-format"
    assert "#!/bin/sh" in error.hint


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    error = failure([make_file(tmp_path / "tool", "#!/no/such/interpreter\n")])
    assert error.reason == "bad-interpreter"
    assert str(tmp_path / "tool") in error.message


def test_a_working_directory_that_is_missing_or_a_file(tmp_path: Path) -> None:
    for cwd, why in ((tmp_path / "missing", "does not exist"), (make_file(tmp_path / "file", ""), "not a directory")):
        error = failure(["true"], cwd=str(cwd))
        assert error.reason == "bad-cwd"
        assert f"`{cwd}`" in error.message
        assert why in error.message


def test_arguments_that_are_too_long() -> None:
    error = failure(["true", "x" * (1 << 22)])
    assert error.reason == "too-long"
    assert len(str(error)) < 500


@pytest.mark.parametrize("bad", ["a\0b", "half \ud800 a character"])
def test_text_that_no_program_can_receive_is_named_by_its_place(bad: str) -> None:
    path = os.environ["PATH"]
    assert "argument 2 of `true`" in failure(["true", "fine", bad]).message
    assert "variable `NAME`" in failure(["true"], env={"PATH": path, "NAME": bad}).message
    assert "the name of a variable" in failure(["true"], env={"PATH": path, bad: "fine"}).message
    assert "the working directory" in failure(["true"], cwd=bad).message
    error = failure([bad])
    assert error.reason == "bad-text"
    str(error).encode("utf-8")


def test_a_variable_needs_a_possible_name() -> None:
    error = failure(["true"], env={"A=B": "x"})
    assert error.reason == "bad-text"
    assert "`A=B`" in error.message


def test_a_program_must_be_named() -> None:
    assert failure([]).reason == "bad-text"
    assert failure([""]).reason == "bad-text"


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_system_without_room_says_so(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(process, "_Leader", refuse)
    assert failure(["true"]).reason == "no-resources"
    monkeypatch.setattr(Guard, "announce", refuse)
    assert failure(["true"]).reason == "no-resources"


def test_other_refusals_keep_the_systems_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ETXTBSY, "busy")

    monkeypatch.setattr(process, "_Leader", refuse)
    assert failure(["true"]).reason == "busy"

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(process, "_Leader", fail)
    error = failure(["true"])
    assert (error.reason, error.hint) == ("other", os.strerror(errno.EIO))


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_nothing_is_spawned_without_a_watchdog(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    fresh = Guard()
    monkeypatch.setattr("trunkline.base.process.guard", fresh)
    monkeypatch.setattr(sys, "executable", executable)
    error = failure(["true"])
    assert error.reason == "other"
    assert "watchdog" in error.message
    assert fresh.pid is None
