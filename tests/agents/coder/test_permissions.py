"""Rules that are kept, and grants: what changes elsewhere counts, and both are shown and taken back on every wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.coding import calls, coding, of, says
from trunkline.agents.coder.kept_rules import KeptRules

pytestmark = pytest.mark.process

TOUCH = calls(("Bash", {"command": "touch a"}))


def test_a_rule_that_is_taken_back_elsewhere_does_not_count_in_the_next_turn(tmp_path: Path) -> None:
    kept = KeptRules(str(tmp_path))
    kept.add("Bash(touch a)")
    with coding(tmp_path, TOUCH, says("Done."), TOUCH, says("Done.")) as agent:
        assert not of(agent.ask("Go."), "tool_request")
        kept.remove("Bash(touch a)")
        assert of(agent.ask("Again.", "m2"), "tool_request")


def test_one_that_is_added_elsewhere_counts(tmp_path: Path) -> None:
    kept = KeptRules(str(tmp_path))
    with coding(tmp_path, TOUCH, says("Done."), flags=("--no-session", "--mode", "yolo")) as agent:
        kept.add("Bash(touch a)", "deny")
        agent.ask("Go.")
        assert "`Bash(touch a)` denies it" in agent.asked.results[0]


def test_a_file_that_cannot_be_read_any_more_leaves_the_rules_as_they_were(tmp_path: Path) -> None:
    kept = KeptRules(str(tmp_path))
    kept.add("Bash(touch a)", "deny")
    with coding(tmp_path, TOUCH, says("Done."), flags=("--no-session", "--mode", "yolo")) as agent:
        Path(kept.file).write_text("{")
        lines = agent.ask("Go.")
        assert "still count" in told(lines)
        assert "`Bash(touch a)` denies it" in agent.asked.results[0]


def told(lines: list[dict[str, object]]) -> str:
    return "\n".join(str(line["message"]) for line in of(lines, "info"))


def test_grants_are_shown_and_taken_back(tmp_path: Path) -> None:
    with coding(tmp_path, TOUCH, says("Done."), TOUCH, says("Done.")) as agent:
        assert told(agent.ask("/grants")) == "Nothing was granted in this session."
        agent.message("Go.")
        agent.approve(agent.request(), "always")
        agent.until("stream_end")
        assert "1  " in told(agent.ask("/grants"))
        assert "There are no permission rules here." in told(agent.ask("/permissions"))
        assert "Taken back: " in told(agent.ask("/grants revoke 1"))
        assert of(agent.ask("Again."), "tool_request")


@pytest.mark.parametrize(
    "text", ["/grants revoke 1", "/grants revoke", "/grants give 1", "/permissions add Bash", "/permissions remove"]
)
def test_what_is_not_understood_is_said(tmp_path: Path, text: str) -> None:
    with coding(tmp_path) as agent:
        (error,) = of(agent.ask(text), "error")
        assert "was not understood" in error["error"]["message"]


def test_rules_are_shown_and_removed(tmp_path: Path) -> None:
    kept = KeptRules(str(tmp_path))
    kept.add("Bash(touch a)")
    kept.add("Bash(rm:*)", "deny")
    with coding(tmp_path, TOUCH, says("Done.")) as agent:
        shown = told(agent.ask("/permissions"))
        assert shown.index("deny Bash(rm:*)  (") < shown.index("allow Bash(touch a)  (")
        assert told(agent.ask("/permissions remove Bash(touch a)")) == "Removed: `Bash(touch a)`."
        assert of(agent.ask("Go."), "tool_request")
        (error,) = of(agent.ask("/permissions remove Bash(touch a)"), "error")
        assert "There is no such rule of yours" in error["error"]["message"]
    assert kept.read().deny == ("Bash(rm:*)",)
