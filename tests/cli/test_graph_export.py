"""`trunkline graph export`: what a game's client sends to have the agent of a graph's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from trunkline.agents.graph import yaml_graph
from trunkline.cli.app import app
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import json_form

GRAPH = """
start: wish
default_model: small
max_steps: 7
storages:
  lines: [One., Two.]
  map: {a: first}
knowledge:
  wishes:
    embedding_model: minilm-l6
    fields: [{name: intent, type: string, default: ""}]
    records: [{text: A beer., metadata: {intent: drink}}]
nodes:
  wish: {type: ClassifyIntent, embedded_string_storage: wishes, metadata_field: intent, found: say, not_found: answer}
  say: {type: CannedResponse, string_storage: lines}
  answer: {type: Generate, stream: true, sampling: {temperature: 0}}
"""


def exported(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["graph", "export", *arguments])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_requests_are_those_that_make_the_graph(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH, encoding="utf-8")
    found = exported(str(file))
    read = yaml_graph.load(str(file))
    agent = json_form.decode(json.dumps(found["agent"]).encode())
    assert agent == m.CreateAgentRequest(0, read.graph, "small", False, 7)
    storages = [json_form.decode(json.dumps(each).encode()) for each in found["storages"]]
    assert [(type(each).__name__, getattr(each, "name", "")) for each in storages] == [
        ("CreateStringStorageRequest", "lines"),
        ("CreateStringStorageRequest", "map"),
        ("CreateEmbeddedStringStorageRequest", "wishes"),
    ]
    assert isinstance(storages[1], m.CreateStringStorageRequest)
    assert (storages[1].kind, storages[1].keys, storages[1].strings) == (m.StringStorageKind.MAP, ("a",), ("first",))
    assert isinstance(storages[2], m.CreateEmbeddedStringStorageRequest)
    assert json.loads(storages[2].records_json)["records"] == [{"text": "A beer.", "metadata": {"intent": "drink"}}]


def test_what_has_its_default_is_left_out_and_zero_is_not_a_default_of_what_is_inherited(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH, encoding="utf-8")
    nodes = {node["name"]: node["params"] for node in exported(str(file))["agent"]["graph"]["nodes"]}
    assert nodes["answer"] == {"type": "GenerateParams", "stream": True, "sampling": {"temperature": 0.0}}
    assert "request_id" not in exported("npc")["agent"]


def test_a_memory_is_made_where_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    memories = "memories:\n  player: {embedding_model: minilm-l6, file: memory/player.jsonl}\n"
    keeps = "  keep: {type: Remember, memory: player}\n"
    file.write_text(f"{memories}{GRAPH}{keeps}", encoding="utf-8")
    storage = exported(str(file))["storages"][-1]
    assert storage == {
        "type": "CreateEmbeddedStringStorageRequest",
        "name": "player",
        "embedding_model": "minilm-l6",
        "memory_path": "memory/player.jsonl",
    }


def test_enumerations_are_numbers_which_clients_of_frames_read_too(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH, encoding="utf-8")
    assert exported(str(file))["storages"][1]["kind"] == 1 == m.StringStorageKind.MAP


def test_it_is_written_to_a_file_but_never_over_the_graph(tmp_path: Path) -> None:
    file, out = tmp_path / "graph.yaml", tmp_path / "graph.json"
    file.write_text(GRAPH, encoding="utf-8")
    result = CliRunner().invoke(app, ["graph", "export", str(file), "-o", str(out)])
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads(out.read_text(encoding="utf-8")) == exported(str(file))
    result = CliRunner().invoke(app, ["graph", "export", str(file), "-o", str(file)])
    assert result.exit_code != 0
    assert file.read_text(encoding="utf-8") == GRAPH


def test_a_graph_that_does_not_work_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text("start: nowhere\nnodes: {}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["graph", "export", str(file)])
    assert result.exit_code == 1
    assert "nowhere" in result.output
