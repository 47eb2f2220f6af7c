"""`trunkline schema`: prints what the `schema` of a wire makes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from trunkline.cli import schema
from trunkline.wires.agentproc import schema as agentproc
from trunkline.wires.jsonstream import schema as jsonstream


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_it_prints_the_document_of_a_direction(direction: jsonstream.Direction) -> None:
    result = CliRunner().invoke(schema.command, ["jsonstream", "--direction", direction])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == jsonstream.document(direction)


def test_without_a_direction_it_prints_both() -> None:
    result = CliRunner().invoke(schema.command, ["jsonstream"])
    assert json.loads(result.stdout) == jsonstream.document("both")


@pytest.mark.parametrize("direction", ["events", "commands", "both"])
def test_agentproc_is_protocol_0_4(direction: agentproc.Direction) -> None:
    result = CliRunner().invoke(schema.command, ["agentproc", "--direction", direction])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == agentproc.document(direction)


def test_an_unknown_wire_is_wrong_usage() -> None:
    result = CliRunner().invoke(schema.command, ["telegraph"])
    assert result.exit_code == 2
    assert "jsonstream" in result.stderr
