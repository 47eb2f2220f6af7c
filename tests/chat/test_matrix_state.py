"""What an account keeps between two runs, and what its signs mean."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from trunkline.chat.matrix.platform import MOST_SIGNS, Signs
from trunkline.chat.matrix.state import FILE, MOST_TOLD, MatrixState, StateKeeper, load, save
from trunkline.chat.platform import Button
from trunkline.core.faults import ConfigError
from trunkline.store import durable

YES, NO = Button("Yes", "y"), Button("No", "n")


def test_what_is_kept_is_there_again_and_for_this_user_alone(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "dir"
    keeper = StateKeeper.file(str(directory))
    assert keeper.state == MatrixState()
    keeper.keep(user="@bot:here", since="s1")
    keeper.keep(since="s2", told=("!r",))
    assert load(str(directory)) == MatrixState("@bot:here", "", "s2", ("!r",))
    assert stat.S_IMODE(os.stat(directory / FILE).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert os.listdir(directory) == [FILE]


def test_what_is_kept_is_safe_before_it_takes_the_place_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    replace = os.replace

    def synced(fd: int) -> None:
        done.append(f"{os.fstat(fd).st_size > 0}")

    def renamed(old: str, new: str) -> None:
        done.append("renamed")
        replace(old, new)

    monkeypatch.setattr(durable, "sync_data", synced)
    monkeypatch.setattr(durable, "sync_directory", lambda path: done.append(path))
    monkeypatch.setattr(os, "replace", renamed)
    save(str(tmp_path), MatrixState(since="s1"))
    assert done == ["True", "renamed", str(tmp_path)]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"since": 3, "told": 4}', b"\xff"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert load(str(tmp_path)) == MatrixState()


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    keeper = StateKeeper.file(str(tmp_path / "file" / "dir"))
    keeper.keep(since="s1")
    assert keeper.state.since == "s1"
    assert "cannot keep" in caplog.text


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    save(str(tmp_path), MatrixState(since="s1"))
    keeper = StateKeeper.file(str(tmp_path))
    (tmp_path / FILE).unlink()
    keeper.keep(since="s1")
    assert not (tmp_path / FILE).exists()


def test_rooms_that_were_told_are_remembered_up_to_a_number() -> None:
    state = MatrixState()
    for number in range(MOST_TOLD + 1):
        state = state.with_notified(str(number))
    assert len(state.told) == MOST_TOLD
    assert "0" not in state.told
    assert state.with_notified("5").told[-1] == "5"


def test_signs_that_are_there_are_not_put_there_again_and_others_go() -> None:
    signs = Signs()
    signs.know("$1", {"Yes": "y", "No": "n"})
    assert signs.missing("$1", [YES, NO]) == ["Yes", "No"]
    signs.put("$1", "Yes", "$y")
    assert signs.missing("$1", [YES, NO]) == ["No"]
    assert signs.take_superfluous("$1", [NO]) == ["$y"]
    assert signs.take_superfluous("$1", [NO]) == []


def test_what_is_not_known_differs_from_nothing() -> None:
    signs = Signs()
    assert signs.meanings("$1") is None
    signs.know("$1", {})
    assert signs.meanings("$1") == {}


def test_old_messages_are_forgotten() -> None:
    signs = Signs()
    for number in range(MOST_SIGNS + 1):
        signs.know(str(number), {"Yes": "y"})
        signs.put(str(number), "Yes", f"${number}")
    assert signs.meanings("0") is None
    assert signs.take_superfluous("0", []) == []
    assert signs.meanings("1") == {"Yes": "y"}


class Shelf:
    """Where machines share what a platform keeps."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.is_away = False

    def recall(self) -> bytes:
        return self.data

    def remember(self, state: bytes) -> None:
        if self.is_away:
            raise ConfigError("The chat database cannot be used now.")
        self.data = state


def test_what_is_kept_on_a_shelf_is_there_for_the_next_machine() -> None:
    shelf = Shelf()
    keeper = StateKeeper.shelf(shelf)
    assert keeper.state == MatrixState()
    keeper.keep(user="@me:here", device="D", since="s7")
    assert StateKeeper.shelf(shelf).state == MatrixState("@me:here", "D", "s7")
    shelf.is_away = True
    keeper.keep(since="s8")
    assert keeper.state.since == "s8"
    assert StateKeeper.shelf(shelf).state.since == "s7"
    assert StateKeeper.shelf(Shelf(b"[rubbish")).state == MatrixState()
