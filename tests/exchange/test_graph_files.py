"""Which files are graphs of an exchange, and how they are read and saved."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.graph_texts import SMITH
from trunkline.core.faults import ConfigError
from trunkline.exchange.graph_files import (
    COMES_ALONG,
    LINKED_AWAY,
    MAX_BYTES,
    NOT_TEXT,
    AgentGraph,
    GraphChanged,
    GraphFixed,
    GraphTooLarge,
    find,
    graphs,
    read,
    save,
)
from trunkline.exchange.settings import AgentSettings


def agents(**specs: str) -> dict[str, AgentSettings]:
    return {name: AgentSettings(name, spec) for name, spec in specs.items()}


def smith(folder: Path, text: str = SMITH) -> AgentGraph:
    (folder / "smith.yaml").write_text(text)
    return AgentGraph("smith", str(folder / "smith.yaml"))


def test_agents_that_share_a_file_share_a_graph_and_the_unused_ones_of_ours_come_last() -> None:
    known = agents(one="graph:/g/a.yaml", code="coder", two="graph:/g/a.yaml", gate="graph:npc", none="graph:")
    found = graphs(known)
    assert [(each.id, each.name, [agent.name for agent in each.agents], each.is_bundled) for each in found] == [
        ("one", "a.yaml", ["one", "two"], False),
        ("gate", "npc", ["gate"], True),
        ("graph:smith", "smith", [], True),
    ]
    assert (shared := find(known, "two")) is not None
    assert (shared.id, shared.path) == ("two", "/g/a.yaml")
    assert shared.user == known["two"]
    assert (ours := find(known, "graph:npc")) is not None
    assert ours.user == known["gate"]
    assert found[-1].user is None
    for unknown in ("code", "none", "", "graph:", "graph:/g/a.yaml", "graph:../npc", "nobody"):
        assert find(known, unknown) is None


def test_a_file_is_saved_in_one_step_with_the_permissions_that_it_has(tmp_path: Path) -> None:
    graph = smith(tmp_path)
    os.chmod(graph.path, 0o640)
    before = read(graph)
    assert (before.text, before.why_fixed) == (SMITH, "")
    version = save(graph, b"other", before.version)
    after = read(graph)
    assert (after.text, after.version) == ("other", version)
    assert stat.S_IMODE(os.stat(graph.path).st_mode) == 0o640
    assert os.listdir(tmp_path) == ["smith.yaml"]


def test_what_somebody_else_has_changed_is_not_overwritten(tmp_path: Path) -> None:
    graph = smith(tmp_path)
    version = read(graph).version
    Path(graph.path).write_text("theirs")
    with pytest.raises(GraphChanged, match="changed by somebody else"):
        save(graph, b"mine", version)
    os.unlink(graph.path)
    with pytest.raises(GraphChanged):
        save(graph, b"mine", version)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_there_yet_can_be_written(tmp_path: Path) -> None:
    graph = AgentGraph("new", str(tmp_path / "new.yaml"))
    assert (found := read(graph)).version == ""
    assert (found.text, found.why_fixed) == ("", "")
    save(graph, SMITH.encode(), "")
    assert read(graph).text == SMITH
    with pytest.raises(GraphChanged):
        save(graph, b"again", "")
    nowhere = AgentGraph("no", str(tmp_path / "no" / "new.yaml"))
    assert "does not exist" in read(nowhere).why_fixed
    with pytest.raises(GraphFixed):
        save(nowhere, b"x", "")


def test_one_that_comes_along_stays_as_it_is() -> None:
    graph = AgentGraph("graph:npc", "npc")
    found = read(graph)
    assert found.why_fixed == COMES_ALONG
    with pytest.raises(GraphFixed, match="comes with Trunkline"):
        save(graph, b"x", found.version)
    assert read(graph) == found


def test_a_link_inside_of_the_folder_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "now.yaml").write_text(SMITH)
    os.symlink("now.yaml", tmp_path / "smith.yaml")
    graph = AgentGraph("smith", str(tmp_path / "smith.yaml"))
    save(graph, b"other", read(graph).version)
    assert (tmp_path / "now.yaml").read_text() == "other"
    assert os.path.islink(graph.path)


def test_a_link_out_of_the_folder_is_neither_shown_nor_written(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the words")
    (tmp_path / "graphs").mkdir()
    os.symlink("../secret", tmp_path / "graphs" / "smith.yaml")
    graph = AgentGraph("smith", str(tmp_path / "graphs" / "smith.yaml"))
    with pytest.raises(ConfigError) as refused:
        read(graph)
    assert str(refused.value) == LINKED_AWAY
    with pytest.raises(ConfigError, match="link"):
        save(graph, b"x", "")
    assert (tmp_path / "secret").read_text() == "the words"


def test_the_largest_file_is_shown_and_saved_and_one_byte_more_is_not(tmp_path: Path) -> None:
    graph = smith(tmp_path, "#" * MAX_BYTES)
    found = read(graph)
    assert len(found.text) == MAX_BYTES
    version = save(graph, b"+" * MAX_BYTES, found.version)
    with pytest.raises(GraphTooLarge):
        save(graph, b"+" * (MAX_BYTES + 1), version)
    Path(graph.path).write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(GraphTooLarge, match="more than"):
        read(graph)


def test_what_is_no_text_is_shown_as_well_as_it_can_be_and_cannot_be_saved_over(tmp_path: Path) -> None:
    graph = smith(tmp_path)
    Path(graph.path).write_bytes(b"start: \xff\xfe\x00")
    found = read(graph)
    assert (found.text, found.why_fixed) == ("start: \ufffd\ufffd\x00", NOT_TEXT)
    with pytest.raises(GraphFixed, match="not UTF-8"):
        save(graph, b"x", found.version)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "smith.yaml")
    graph = AgentGraph("smith", str(tmp_path / "smith.yaml"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read(graph)
    with pytest.raises(ConfigError):
        save(graph, b"x", "")


def test_a_file_that_this_user_may_not_write_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = smith(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = read(graph)
    assert "may not write" in found.why_fixed
    with pytest.raises(GraphFixed):
        save(graph, b"x", found.version)


def test_a_disk_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = smith(tmp_path)

    def full(*names: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(GraphFixed, match="No space left"):
        save(graph, b"x", read(graph).version)
    assert read(graph).text == SMITH
    assert os.listdir(tmp_path) == ["smith.yaml"]
