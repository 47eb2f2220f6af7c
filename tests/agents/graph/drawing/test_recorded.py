"""Turns from files that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trunkline.agents.graph.drawing import recorded
from trunkline.agents.graph.drawing.recorded import RecordedNode, decision
from trunkline.core.faults import ConfigError


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": 7}', '{"nodes": [7]}', "{" * 1000])
def test_what_is_no_turn_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "turn.json").write_text(text)
    with pytest.raises(ConfigError, match=r"turn\.json"):
        recorded.load(str(tmp_path / "turn.json"))


def test_what_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        recorded.load(str(tmp_path))


def test_values_of_other_types_count_as_nothing() -> None:
    odd: dict[str, Any] = json.loads(
        '{"nodes": [{"name": 1, "ms": "x", "exit": null, "data": 7}, {"ms": 1e99, "data": {"a": 1, "b": "c"}}],'
        ' "status": [], "wall_ms": -1, "tokens_generated": true, "error": [], "interaction": {"a": 1}}'
    )
    turn = recorded.read(odd)
    assert turn.steps == (RecordedNode("1", "", "", 0.0, {}), RecordedNode("", "", "", 0.0, {"b": "c"}))
    assert (turn.status, turn.wall_ms, turn.tokens, turn.error, turn.message) == ("", 0.0, 0, "", "")


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("HumanMessageGuardrail", {"pattern": "2"}, "pattern 2"),
        ("HumanMessageGuardrail", {"pattern": ""}, ""),
        (
            "Retrieve",
            {"result_count": "2", "result[000].text": "The mill.", "result[000].distance": "0.2134"},
            "2 at 0.21: The mill.",
        ),
        # Three is how many were asked for, and says nothing about how many there are.
        ("Retrieve", {"result_count": "0", "raw_result_count": "3"}, "the nearest 3 are not near enough"),
        ("Retrieve", {"result_count": "0", "raw_result_count": "1"}, "the nearest is not near enough"),
        ("Retrieve", {"result_count": "0", "raw_result_count": "0"}, "there is nothing to find"),
        ("Retrieve", {}, ""),
        ("ToolCall", {"calls": "open, close"}, "open, close"),
        ("ClassifyIntent", {"result.intent": "buy", "raw_distance": "0.1563"}, "buy at 0.15"),
        ("ClassifyIntent", {"result.intent": "", "raw_distance": "0.7"}, "nothing near enough at 0.7"),
        ("ClassifyIntent", {}, ""),
        ("ToolCall", {"calls": ""}, "no tool"),
        ("ClassifyIntentLLM", {"result.intent": "buy", "top_prob": "0.912345"}, "buy (0.91)"),
        ("ClassifyIntentLLM", {"not_found_reason": "empty_message"}, "empty message"),
        ("IntentToInstruction", {"intent": "buy", "result_text": "Offer."}, "buy: Offer."),
        ("IntentToInstruction", {}, "no intent: nothing"),
        ("Generate", {"prompt": "x"}, ""),
        ("Remember", {"remembered": "My name is Ann."}, "My name is Ann."),
        ("Remember", {"not_remembered": "known already"}, "known already"),
        ("Remember", {}, ""),
        ("Director", {"speakers": "Anna, Bert", "ended_by": "max_lines (2)"}, "Anna, Bert, until max_lines (2)"),
        ("Director", {"speakers": "Anna"}, "Anna"),
        ("Director", {}, ""),
    ],
)
def test_what_each_node_decided_is_told_in_a_few_words(kind: str, data: dict[str, str], told: str) -> None:
    assert decision(RecordedNode("a", kind, "taken", 0.0, data)) == told
