"""Profiles that were read before are read again without the parser, and never out of date."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import trunkline
from trunkline.base import paths
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile import Profile, cache, file

TEXT = "command: ./agent.sh --x\nargs: [a]\nenv: {A: '1'}\nenv_allowlist: [B]\ntimeout_secs: 1.5\nodd: 1\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    return str(file)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What went through the parser."""
    seen: list[str] = []
    find = file.find

    def watched(name: str) -> Profile:
        seen.append(name)
        return find(name)

    monkeypatch.setattr(file, "find", watched)
    return seen


def entries() -> list[Path]:
    return list(Path(paths.cache_dir(), "profiles").iterdir())


def test_the_second_time_it_is_the_same_without_the_parser(path: str, read: list[str]) -> None:
    first, second = cache.find(path), cache.find(path)
    assert first == second == file.load(path)
    assert first.warnings
    assert read == [path]


def test_another_text_is_read_again(path: str, read: list[str]) -> None:
    cache.find(path)
    Path(path).write_text(TEXT.replace("1.5", "2.5"))
    assert cache.find(path).timeout_secs == 2.5
    assert len(read) == 2


def test_the_same_text_elsewhere_is_another_profile(path: str, tmp_path: Path, read: list[str]) -> None:
    cache.find(path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "p.yaml").write_text(TEXT)
    assert cache.find(str(other / "p.yaml")).directory == str(other)
    assert len(read) == 2


def test_a_relative_path_belongs_to_its_directory(
    path: str, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "p.yaml").write_text(TEXT)
    for directory in (tmp_path, other):
        monkeypatch.chdir(directory)
        assert cache.find("p.yaml").directory == str(directory)


def test_a_path_at_home_belongs_to_that_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.yaml").write_text(TEXT)
        monkeypatch.setenv("HOME", str(tmp_path / name))
        assert cache.find("~/p.yaml").directory == str(tmp_path / name)


def test_another_release_reads_again(path: str, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cache.find(path)
    monkeypatch.setattr(trunkline, "__version__", "99")
    cache.find(path)
    assert len(read) == 2


def test_other_rules_read_again_what_was_safe_by_those_before(
    path: str, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    shutil.copytree(os.path.dirname(cache.__file__), code, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(code / "cache.py"))
    cache.find(path)
    cache.find(path)
    assert len(read) == 1
    with open(code / "safety.py", "a") as rules:
        rules.write("# another rule")
    cache.find(path)
    assert len(read) == 2


def test_two_profiles_of_one_checksum_are_not_mistaken_for_each_other(
    path: str, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "crc32", lambda data: 1)
    cache.find(path)
    other = path.replace("p.yaml", "q.yaml")
    Path(other).write_text("command: other")
    assert cache.find(other).command == ("other",)
    assert read == [path, other]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key":1,"fields":{}}', b"\xff"])
def test_a_damaged_entry_is_read_again_and_replaced(path: str, read: list[str], damage: bytes) -> None:
    expected = cache.find(path)
    (entry,) = entries()
    entry.write_bytes(damage)
    assert cache.find(path) == expected
    assert cache.find(path) == expected
    assert len(read) == 2


def test_entries_are_for_this_user_alone(path: str) -> None:
    cache.find(path)
    (entry,) = entries()
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.parent.stat().st_mode & 0o777 == 0o700


def test_a_cache_that_cannot_be_written_is_no_error(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUNKLINE_CACHE", os.path.join(path, "in-a-file"))
    assert cache.find(path) == file.load(path)


@pytest.mark.parametrize("is_first", [False, True])
def test_what_depends_on_the_disk_is_looked_up_each_time(tmp_path: Path, read: list[str], is_first: bool) -> None:
    program, file = tmp_path / "my agent", tmp_path / "p.yaml"
    file.write_text(f"command: {program}\n")
    found = {}
    for is_there in (is_first, not is_first):
        if is_there:
            program.touch()
        else:
            program.unlink(missing_ok=True)
        found[is_there] = cache.find(str(file)).command
    assert found == {True: (str(program),), False: (str(tmp_path / "my"), "agent")}
    assert len(read) == 2


def test_an_entry_is_there_as_a_whole_or_not_at_all(
    path: str, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: str) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        first = cache.find(path)
    assert [entry for entry in entries() if entry.suffix == ".json"] == []
    assert cache.find(path) == first
    assert len(read) == 2


def test_what_is_wrong_is_said_every_time(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("command: [\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"bad\.yaml"):
            cache.find(str(bad))


def test_a_file_with_the_name_of_a_bundled_profile_is_only_meant_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("codex", "mine"):
        (tmp_path / name).write_text("command: evil\n")
    for find in (cache.find, file.find):
        assert find("codex").command[0] == "codex"
        assert find("./codex").command == ("evil",)
        assert find("mine").command == ("evil",)


def test_bundled_profiles_and_names_that_are_none_go_their_usual_way() -> None:
    assert cache.find("codex") == file.find("codex")
    with pytest.raises(ConfigError, match="no profile"):
        cache.find("no-such-profile")
