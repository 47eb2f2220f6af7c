"""Where files live."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path
from typing import NoReturn

import pytest

from trunkline.base import paths

HOME = {"HOME": "/home/ada"}


def test_without_any_variable_files_live_where_the_xdg_specification_puts_them() -> None:
    assert paths.state_dir(HOME) == "/home/ada/.local/state/trunkline"
    assert paths.sessions_dir(HOME) == "/home/ada/.local/state/trunkline/sessions"
    assert paths.config_dir(HOME) == "/home/ada/.config/trunkline"
    assert paths.cache_dir(HOME) == "/home/ada/.cache/trunkline"


def test_absolute_xdg_variables_are_honoured() -> None:
    environ = {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/k"}
    assert paths.state_dir(environ) == "/s/trunkline"
    assert paths.config_dir(environ) == "/c/trunkline"
    assert paths.cache_dir(environ) == "/k/trunkline"


@pytest.mark.parametrize("value", ["", "state", "./state", "../state", "~/state"])
def test_empty_and_relative_xdg_values_are_ignored(value: str) -> None:
    environ = HOME | {"XDG_STATE_HOME": value, "XDG_CONFIG_HOME": value, "XDG_CACHE_HOME": value}
    assert paths.state_dir(environ) == "/home/ada/.local/state/trunkline"
    assert paths.config_dir(environ) == "/home/ada/.config/trunkline"
    assert paths.cache_dir(environ) == "/home/ada/.cache/trunkline"


def test_one_variable_moves_state_and_configuration_but_not_the_shared_cache() -> None:
    environ = HOME | {"TRUNKLINE_HOME": "/srv/t", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}
    assert paths.state_dir(environ) == "/srv/t"
    assert paths.sessions_dir(environ) == "/srv/t/sessions"
    assert paths.config_dir(environ) == "/srv/t/config"
    assert paths.cache_dir(environ) == "/home/ada/.cache/trunkline"


def test_the_cache_has_a_variable_of_its_own() -> None:
    assert paths.cache_dir({"TRUNKLINE_CACHE": "/big/disk", "XDG_CACHE_HOME": "/k"}) == "/big/disk"


def test_our_own_variables_may_be_relative_or_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.state_dir({"TRUNKLINE_HOME": "here"}) == str(tmp_path / "here")
    assert paths.state_dir(HOME | {"TRUNKLINE_HOME": "~/t"}) == "/home/ada/t"
    assert paths.state_dir(HOME | {"TRUNKLINE_HOME": ""}) == "/home/ada/.local/state/trunkline"


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", "/elsewhere")
    assert paths.sessions_dir() == "/elsewhere/sessions"


def test_a_missing_home_is_an_error_that_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def unlisted(number: int) -> NoReturn:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unlisted)
    for wrong in ({}, {"HOME": ""}, {"HOME": "relative"}):
        with pytest.raises(paths.HomeUnknown, match="`TRUNKLINE_HOME`"):
            paths.state_dir(wrong)
    assert paths.state_dir({"TRUNKLINE_HOME": "/srv/t"}) == "/srv/t"


def test_an_empty_home_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    listed = pwd.getpwuid(os.getuid()).pw_dir
    assert paths.state_dir({"HOME": ""}) == paths.state_dir({}) == f"{listed}/.local/state/trunkline"


def test_directories_are_made_for_the_user_alone_and_named(tmp_path: Path) -> None:
    made = paths.ensure_dir(str(tmp_path / "a" / "b"))
    assert made == (str(tmp_path / "a"), str(tmp_path / "a" / "b"))
    for directory in made:
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


def test_a_directory_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    before = shared.stat().st_mode
    assert paths.ensure_dir(str(shared)) == ()
    assert shared.stat().st_mode == before


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        paths.ensure_dir(str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"):
        paths.ensure_dir(str(tmp_path / "file" / "below"))


def test_asking_for_a_directory_does_not_make_it(tmp_path: Path) -> None:
    paths.sessions_dir({"TRUNKLINE_HOME": str(tmp_path / "home")})
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_says_of_a_file_is_a_sentence_without_its_number(tmp_path: Path) -> None:
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path / "x"))
    assert paths.unusable(error) == f"Cannot use `{tmp_path / 'x'}`: No such file or directory."
    assert paths.unusable(OSError(errno.EIO, "Input/output error")) == "Input/output error."
    assert paths.unusable(paths.HomeUnknown("There is no home.")) == "There is no home."


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        ("/s/home/sessions/x.log", "TRUNKLINE_HOME"),
        ("/s", "TRUNKLINE_HOME"),
        ("/k/models", "TRUNKLINE_CACHE"),
        ("/elsewhere", None),
        ("/", None),
    ],
)
def test_only_files_of_ours_are_moved_by_a_variable(path: str, variable: str | None) -> None:
    told = paths.elsewhere(path, {"TRUNKLINE_HOME": "/s/home", "TRUNKLINE_CACHE": "/k"})
    assert told == ("" if variable is None else f"Set `{variable}` to a directory in which you can write.")


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/b", "/a/", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
    ],
)
def test_a_path_is_within_a_folder_and_not_within_one_whose_name_begins_alike(
    path: str, folder: str, expected: bool
) -> None:
    assert paths.is_within(path, folder) is expected
