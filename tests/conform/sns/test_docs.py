"""The reference of all checks is what the code says. `python -m tests.conform.sns.test_docs` writes it anew."""

from __future__ import annotations

from pathlib import Path

from trunkline.cli import conform_sns
from trunkline.conform import record
from trunkline.conform.report import catalogue
from trunkline.conform.sns import exchange, nonces, stage
from trunkline.conform.sns.catalogue import SUITE

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "conformance-sns.md"
HEADING = "## The checks\n\n"


def test_the_reference_lists_every_check() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text.partition(HEADING)[2] == catalogue(list(SUITE.checks.values())), (
        "run `python -m tests.conform.sns.test_docs`"
    )


def test_the_reference_names_the_limits() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert f"one answer | `--timeout`, {exchange.TIMEOUT_SECONDS:g} s |" in text
    assert conform_sns.DEFAULT_TIMEOUT == exchange.TIMEOUT_SECONDS
    assert f"`sns.nonce.parallel` | {nonces.REPLAYS} |" in text
    assert f"from two minutes | {nonces.TTL_SLACK_SECONDS:g} s |" in text
    assert f"taken for the same | {stage.SAME_CLOCK_MS / 1000:g} s apart |" in text
    assert f"first {record.REPORT_HEAD_LINES} and the last {record.REPORT_TAIL_LINES} lines" in text
    assert f"{record.REPORT_LINE_CHARS} characters of a line" in text


if __name__ == "__main__":
    before, heading, _ = REFERENCE.read_text(encoding="utf-8").partition(HEADING)
    REFERENCE.write_text(before + heading + catalogue(list(SUITE.checks.values())), encoding="utf-8")
