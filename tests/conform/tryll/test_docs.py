"""The reference of all checks is what the code says. `python -m tests.conform.tryll.test_docs` writes it anew."""

from __future__ import annotations

from pathlib import Path

from trunkline.cli import conform_tryll
from trunkline.conform import record
from trunkline.conform.report import catalogue
from trunkline.conform.tryll import agents, framing, link, session, stage, turns
from trunkline.conform.tryll.catalogue import SUITE

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = DOCS / "reference" / "conformance-tryll.md"
HEADING = "## The checks\n\n"


def test_the_reference_lists_every_check() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text.partition(HEADING)[2] == catalogue(list(SUITE.checks.values())), (
        "run `python -m tests.conform.tryll.test_docs`"
    )


def test_the_reference_names_the_limits() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert f"next frame of it | `--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert conform_tryll.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
    assert f"has closed, too | {link.END_SECONDS:g} s |" in text
    assert f"was destroyed | for {turns.QUIET_SECONDS:g} s |" in text
    assert f"`tryll.frame.unread` | {framing.UNREAD_AGENTS} of {framing.UNREAD_CHARS:,} characters |" in text
    assert f"watched meanwhile | {framing.UNREAD_SECONDS:g} s |" in text
    assert f"break off | {framing.BROKEN_OFF} |" in text
    assert f"`tryll.agent.many` | {agents.MANY} |" in text
    assert f"messages and answers | {session.LONG_CHARS:,} characters |" in text
    assert f"first {record.REPORT_HEAD_LINES} and the last {record.REPORT_TAIL_LINES} lines" in text
    assert f"{record.REPORT_LINE_CHARS} characters" in text


def test_the_guide_names_every_group() -> None:
    text = (DOCS / "how-to" / "certify-a-tryll-server.md").read_text(encoding="utf-8")
    assert [group for group in {id.split(".")[1] for id in SUITE.checks} if f"`{group}`" not in text] == []


if __name__ == "__main__":
    before, heading, _ = REFERENCE.read_text(encoding="utf-8").partition(HEADING)
    REFERENCE.write_text(before + heading + catalogue(list(SUITE.checks.values())), encoding="utf-8")
