"""The reference of all checks is what the code says."""

from __future__ import annotations

from pathlib import Path

from trunkline.cli import conform
from trunkline.conform import record
from trunkline.conform.jsonstream import ending, stage, stopping
from trunkline.conform.jsonstream.catalogue import SUITE
from trunkline.conform.report import catalogue

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "conformance-jsonstream.md"
HEADING = "## The checks\n\n"


def test_the_reference_lists_every_check() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text.partition(HEADING)[2] == catalogue(list(SUITE.checks.values())), (
        "run `python -m tests.conform.test_docs`"
    )


def test_the_reference_names_the_limits() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert f"`--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert conform.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
    assert f"an exit | {stage.PATIENCE_SECONDS:g} s |" in text
    assert f"`js.stop.prompt` | {stopping.STOP_SECONDS:g} s |" in text
    assert f"`js.sigterm.status` | {ending.EXIT_SECONDS:g} s |" in text
    assert f"listens for | {stage.QUIET_SECONDS:g} s |" in text
    assert f"first {record.REPORT_HEAD_LINES} and the last {record.REPORT_TAIL_LINES} lines" in text
    assert f"{record.REPORT_LINE_CHARS} characters of a line" in text


if __name__ == "__main__":
    before, heading, _ = REFERENCE.read_text(encoding="utf-8").partition(HEADING)
    REFERENCE.write_text(before + heading + catalogue(list(SUITE.checks.values())), encoding="utf-8")
