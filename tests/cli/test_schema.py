"""`trunkline schema`: each wire in the language that programs have for it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trunkline.cli import schema
from trunkline.network.http.app import all_endpoints
from trunkline.network.http.openapi import document
from trunkline.wires.agentproc import schema as agentproc
from trunkline.wires.jsonstream import schema as jsonstream
from trunkline.wires.line_schema import Direction

FBS = Path(__file__).parents[2] / "src/trunkline/wires/tryll/schema/messages.fbs"


def printed(*arguments: str) -> Result:
    return CliRunner().invoke(schema.command, list(arguments))


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_it_prints_the_document_of_a_direction(direction: Direction) -> None:
    result = printed("jsonstream", "--direction", direction)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == jsonstream.document(direction)


def test_without_a_direction_it_prints_both() -> None:
    assert json.loads(printed("jsonstream").stdout) == jsonstream.document("both")


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_agentproc_is_protocol_0_4(direction: Direction) -> None:
    result = printed("agentproc", "--direction", direction)
    assert (result.exit_code, json.loads(result.stdout)) == (0, agentproc.document(direction))


def test_the_network_is_printed_as_it_describes_itself() -> None:
    result = printed("sns")
    assert (result.exit_code, json.loads(result.stdout)) == (0, json.loads(json.dumps(document(all_endpoints()))))
    assert "/api/agents/nonce" in json.loads(result.stdout)["paths"]


def test_tryll_is_printed_as_the_file_that_the_codec_is_held_against() -> None:
    result = printed("tryll")
    assert (result.exit_code, result.stdout) == (0, FBS.read_text())


@pytest.mark.parametrize("wire", schema.WIRES)
def test_every_wire_has_a_module_and_a_line_of_help(wire: str) -> None:
    module = import_module(f"trunkline.cli.schema.{schema.WIRES[wire]}")
    assert "both" in module.DIRECTIONS
    assert f"{wire} " in printed("--help").stdout


def test_what_is_not_divided_has_no_directions() -> None:
    result = printed("tryll", "--direction", "events")
    assert (result.exit_code, "leave it out" in result.stderr) == (2, True)


def test_an_unknown_wire_is_wrong_usage() -> None:
    result = printed("telegraph")
    assert result.exit_code == 2
    assert "jsonstream" in result.stderr
