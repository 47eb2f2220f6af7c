"""The reference of all checks is what the code says. `python -m tests.conform.agentproc.test_docs` writes it anew."""

from __future__ import annotations

from pathlib import Path

from trunkline.conform import record
from trunkline.conform.agentproc.agent import stage as agent_stage
from trunkline.conform.agentproc.agent.catalogue import SUITES
from trunkline.conform.agentproc.bridge import partials
from trunkline.conform.agentproc.bridge import stage as bridge_stage
from trunkline.conform.agentproc.bridge.catalogue import SUITE
from trunkline.conform.report import catalogue

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "conformance-agentproc.md"
HEADING = "## Agents\n\n"


def tables() -> str:
    parts = {
        "## Agents": SUITES["0.1"].checks,
        "## Agents that speak 0.4": SUITES["0.4"].checks,
        "## Bridges": SUITE.checks,
    }
    return "\n".join(f"{heading}\n\n{catalogue(list(checks.values()))}" for heading, checks in parts.items())


def test_the_reference_lists_every_check() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    before, heading, after = text.partition(HEADING)
    assert heading + after == tables(), "run `python -m tests.conform.agentproc.test_docs`"
    assert before


def test_the_reference_names_the_limits() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert f"one turn of an agent | `--timeout`, {agent_stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"one turn of a bridge | `--timeout`, {bridge_stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"after SIGTERM | {agent_stage.EXIT_SECONDS:g} s |" in text
    assert f"may end a turn | {bridge_stage.PATIENCE_SECONDS:g} s |" in text
    assert f"until a bridge shows it | {partials.LIVE_SECONDS:g} s |" in text
    assert f"first {record.REPORT_HEAD_LINES} and the last {record.REPORT_TAIL_LINES} lines" in text
    assert f"{record.REPORT_LINE_CHARS} characters of a line" in text


if __name__ == "__main__":
    before, _, _ = REFERENCE.read_text(encoding="utf-8").partition(HEADING)
    REFERENCE.write_text(before + tables(), encoding="utf-8")
