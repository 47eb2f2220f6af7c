"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import DOCS, reference
from trunkline.cli import conform_tryll
from trunkline.conform.tryll import agents, framing, link, session, stage, turns
from trunkline.conform.tryll.suite import SUITE


def test_the_reference_names_the_limits() -> None:
    text = reference("tryll")
    assert f"its next frame | `--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert conform_tryll.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
    assert f"has also closed | {link.END_SECONDS:g} s |" in text
    assert f"a destroyed agent | {turns.QUIET_SECONDS:g} s |" in text
    assert f"`tryll.frame.unread` | {framing.UNREAD_AGENTS} of {framing.UNREAD_CHARS:,} characters |" in text
    assert f"watched meanwhile | {framing.UNREAD_SECONDS:g} s |" in text
    assert f"connections that break | {framing.BROKEN_OFF} |" in text
    assert f"`tryll.agent.many` | {agents.MANY} |" in text
    assert f"messages and answers | {session.LONG_CHARS:,} characters |" in text


def test_the_guide_names_every_group() -> None:
    text = (DOCS / "how-to" / "certify-a-tryll-server.md").read_text(encoding="utf-8")
    assert [group for group in {id.split(".")[1] for id in SUITE.checks} if f"`{group}`" not in text] == []


#: What is not in the protocol document: how it is usually read, what the Mock engine is here, and what was added.
_OURS = ("Details", "Mock engine", "Additions")


def test_only_what_the_protocol_document_demands_is_a_must() -> None:
    assert [each.id for each in SUITE.checks.values() if each.tier == "MUST" and each.section in _OURS] == []
