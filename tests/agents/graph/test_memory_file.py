"""The file of a memory: appended, bounded, and whole whatever happens to whoever writes it."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunkline.agents.graph import memory_file
from trunkline.agents.graph.memory_file import MAX_BYTES, MAX_FOLDERS, MAX_TEXT, MemoryEntry, MemoryFile
from trunkline.core.faults import EmbeddingError, OutsideStorage, StorageMissing
from trunkline.store import locks


def entry(text: str, id: str = "") -> MemoryEntry:
    return MemoryEntry(id or text, "2026-11-18T20:00:00Z", "said", text)


def at(root: Path, name: str = "memory/player.jsonl") -> MemoryFile:
    return MemoryFile.at(str(root), name, "player")


def texts(file: MemoryFile) -> list[str]:
    return [each.text for each in file.read("player")]


def test_what_is_added_is_there_for_the_next_one_who_opens_it_and_is_its_owners_alone(tmp_path: Path) -> None:
    left, state = at(tmp_path).add([entry("a"), entry("b")], 10, "player")
    assert [each.text for each in left] == ["a", "b"]
    assert state == at(tmp_path).state()
    at(tmp_path).add([entry("c")], 10, "player")
    assert texts(at(tmp_path)) == ["a", "b", "c"]
    path = tmp_path / "memory/player.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    first, second, *_ = path.read_text().splitlines()
    assert (json.loads(first), json.loads(second)["text"]) == ({"trunkline_memory": 1}, "a")


def test_no_file_is_made_before_there_is_something_to_remember(tmp_path: Path) -> None:
    assert texts(at(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_leave_first_and_no_draft_stays_behind(tmp_path: Path) -> None:
    file = at(tmp_path)
    for number in range(5):
        _, state = file.add([entry(str(number))], 3, "player")
        assert state == file.state()
    assert texts(file) == ["2", "3", "4"]
    assert os.listdir(tmp_path / "memory") == ["player.jsonl"]


def test_a_text_that_another_process_has_written_meanwhile_is_not_written_again(tmp_path: Path) -> None:
    at(tmp_path).add([entry("a", "first")], 10, "player")
    left, _ = at(tmp_path).add([entry("a", "second"), entry("b")], 10, "player")
    assert [each.id for each in left] == ["first", "b"]


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_line_that_was_cut_off_counts_as_nothing_and_is_cleared_away(tmp_path: Path, cut: int) -> None:
    at(tmp_path).add([entry("a"), entry("b")], 10, "player")
    path = tmp_path / "memory/player.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    # Without its line feed alone, the entry is whole.
    assert texts(at(tmp_path)) == (["a", "b"] if cut == 1 else ["a"])
    at(tmp_path).add([entry("c")], 10, "player")
    assert texts(at(tmp_path))[-1] == "c"
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_header_that_was_cut_off_is_an_empty_memory(tmp_path: Path) -> None:
    (tmp_path / "player.jsonl").write_bytes(b'{"trunkline_me')
    at(tmp_path, "player.jsonl").add([entry("a")], 10, "player")
    assert texts(at(tmp_path, "player.jsonl")) == ["a"]


def test_writers_that_trim_the_file_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    def write(number: int) -> None:
        # Each opens the file by itself, as another process would.
        at(tmp_path).add([entry(f"{number}")], 100 if number % 2 else 50, "player")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert sorted(map(int, texts(at(tmp_path)))) == list(range(40))


def test_bytes_are_bounded_like_entries(tmp_path: Path) -> None:
    file = at(tmp_path)
    long = "\N{GRINNING FACE}" * MAX_TEXT
    file.add([entry(long, str(number)) for number in range(1)], 2000, "player")
    file.add([entry(f"{number} {long}"[:MAX_TEXT], str(number)) for number in range(1, 400)], 2000, "player")
    assert os.path.getsize(file.path) <= MAX_BYTES
    found = file.read("player")
    assert (found[-1].id, len(found) < 400) == ("399", True)


@pytest.mark.parametrize(
    "path", ["../out.jsonl", "/etc/out.jsonl", "a/../../out.jsonl", "C:\\out.jsonl", "link/out.jsonl"]
)
def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(OutsideStorage):
        at(root, path)


def test_without_a_storage_folder_there_is_no_memory() -> None:
    with pytest.raises(StorageMissing):
        MemoryFile.at(None, "player.jsonl", "player")


@pytest.mark.parametrize("name", ["lore.json", "player", ".jsonl", "memory/.jsonl", "player.jsonl/"])
def test_only_a_file_of_its_own_kind_of_name_can_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbeddingError):
        at(tmp_path, name)


@pytest.mark.parametrize("data", [b"hello\n", b"[]\n", b'{"trunkline_memory":2}\n', b"\n{}\n", b"\xff\n"])
def test_a_file_that_no_memory_wrote_is_neither_read_nor_written(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(data)
    with pytest.raises(EmbeddingError, match="not one that a memory wrote"):
        at(tmp_path, "log.jsonl")
    with pytest.raises(EmbeddingError):
        MemoryFile(str(tmp_path), str(tmp_path / "log.jsonl")).add([entry("a")], 10, "player")
    assert (tmp_path / "log.jsonl").read_bytes() == data


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(EmbeddingError):
        at(tmp_path, "pipe.jsonl")
    with pytest.raises(EmbeddingError):
        MemoryFile(str(tmp_path), str(tmp_path / "pipe.jsonl")).add([entry("a")], 10, "player")


def test_a_link_that_was_put_in_its_place_is_not_followed(tmp_path: Path) -> None:
    file = at(tmp_path, "player.jsonl")
    other = tmp_path / "other"
    other.write_text("")
    (tmp_path / "player.jsonl").symlink_to(other)
    with pytest.raises(EmbeddingError):
        file.add([entry("a")], 10, "player")
    assert other.read_text() == ""


def test_lines_that_are_no_entries_are_passed_over(tmp_path: Path) -> None:
    at(tmp_path, "p.jsonl").add([entry("a")], 10, "player")
    with open(tmp_path / "p.jsonl", "a") as file:
        file.write('{"id":1,"time":"","kind":"said","text":"x"}\n[]\n{"id":"b","time":"","kind":"order","text":"x"}\n')
    assert texts(at(tmp_path, "p.jsonl")) == ["a"]


def test_a_folder_has_only_so_many_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_file, "MAX_FILES", 2)
    for name in ("a.jsonl", "deep/b.jsonl"):
        at(tmp_path, name).add([entry("a")], 10, name)
    with pytest.raises(EmbeddingError, match="2 memories"):
        at(tmp_path, "c.jsonl").add([entry("a")], 10, "c")
    # Those that are there go on.
    assert len(at(tmp_path, "a.jsonl").add([entry("b")], 10, "a")[0]) == 2


def test_a_file_is_in_so_many_folders_and_in_no_more(tmp_path: Path) -> None:
    assert MAX_FOLDERS == 8
    at(tmp_path, "f/" * 8 + "a.jsonl").add([entry("a")], 10, "player")
    for folder in ("f/" * 9, "x/../" + "f/" * 9, "f\\" * 9, "f/" * 900):
        with pytest.raises(EmbeddingError, match="more than 8 folders"):
            at(tmp_path, f"{folder}b.jsonl")
        with pytest.raises(EmbeddingError, match="more than 8 folders"):
            MemoryFile.check(None, f"{folder}b.jsonl", "player")
    assert not (tmp_path / ("f/" * 9)).exists()


def test_what_is_made_below_a_folder_of_a_session_counts_below_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = str(tmp_path / "f/f/f/f")
    at(tmp_path, "f/f/f/f/a.jsonl").add([entry("a")], 10, "player")
    MemoryFile.at(chosen, "f/f/f/f/a.jsonl", "player", str(tmp_path)).add([entry("a")], 10, "player")
    with pytest.raises(EmbeddingError, match="more than 8 folders"):
        MemoryFile.at(chosen, "f/f/f/f/f/a.jsonl", "player", str(tmp_path))
    monkeypatch.setattr(memory_file, "MAX_FILES", 2)
    with pytest.raises(EmbeddingError, match="2 memories"):
        MemoryFile.at(chosen, "b.jsonl", "player", str(tmp_path)).add([entry("a")], 10, "player")


def test_a_lock_that_is_not_let_go_of_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = at(tmp_path)
    file.add([entry("a")], 10, "player")
    monkeypatch.setattr(memory_file, "WAIT_SECONDS", 0.05)
    other = os.open(file.path, os.O_RDWR)
    try:
        assert locks.lock(other)
        with pytest.raises(EmbeddingError, match="another process has locked its file"):
            file.add([entry("b")], 10, "player")
    finally:
        os.close(other)
    file.add([entry("c")], 10, "player")
    assert texts(file) == ["a", "c"]
