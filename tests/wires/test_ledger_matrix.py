"""Every kind of agent on every way into an exchange does what the matrix says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ledger_agents import AGENTS
from tests.support.ledger_scenarios import WAYS, cell
from trunkline.wires import ledger, ledger_matrix
from trunkline.wires.ledger_matrix import MATRIX, SCENARIOS, WORDS

#: Agents that are programs.
_PROCESSES = ("agentproc", "jsonstream", "acp")
_CELLS = [
    pytest.param(agent, way, marks=[pytest.mark.process] if agent in _PROCESSES else [], id=f"{agent}-{way}")
    for agent in AGENTS
    for way in WAYS
]


@pytest.mark.parametrize(("agent", "way"), _CELLS)
async def test_a_cell_is_what_the_matrix_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, way: str
) -> None:
    found = await cell(tmp_path, agent, way, monkeypatch)
    assert found == {scenario: outcome.word for scenario, outcome in MATRIX[agent, way].items()}


def test_every_cell_has_a_word_for_every_scenario_and_a_reason_where_something_is_less() -> None:
    assert len(MATRIX) == len(ledger_matrix.AGENTS) * len(ledger_matrix.WAYS) == 72
    for outcomes in MATRIX.values():
        assert list(outcomes) == list(SCENARIOS)
        for outcome in outcomes.values():
            assert outcome.word in WORDS
            assert bool(outcome.why) == (outcome.word not in ("carried", "asked"))


@pytest.mark.parametrize(
    ("way", "wire"),
    [
        ("jsonstream", "jsonstream"),
        ("agentproc", "agentproc"),
        ("tryll", "tryll"),
        ("runner", "sns"),
        ("acp", "acp"),
        ("openai", "openai"),
        ("mcp", "mcp"),
    ],
)
def test_the_matrix_says_what_the_ledger_says(way: str, wire: str) -> None:
    answer, faults = ledger.cell(wire, "approve once"), ledger.cell(wire, "faults")
    # Of MCP it says what becomes of a client that shows no forms.
    can_ask = answer.fate == "carried" or "in 0.4" in answer.how or "in the form" in answer.how
    assert MATRIX["scripted", way]["tool"].word == ("asked" if can_ask else "elsewhere")
    assert (MATRIX["scripted", way]["fault"].word == "carried") == (faults.fate == "carried")


def test_every_agent_and_way_is_tried() -> None:
    assert (list(AGENTS), list(WAYS)) == (list(ledger_matrix.AGENTS), list(ledger_matrix.WAYS))
