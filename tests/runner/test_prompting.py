"""The prompts, and the context in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner import decision, prompting
from trunkline.runner.config import Prompts
from trunkline.runner.contract import ACTIONS, READ_ACTIONS

CONTEXT: dict[str, Any] = {
    "constraints": {"textLimits": {}},
    "communities": [{"id": "c1", "slug": "one", "recentComments": [{"body": "$$5 $& {{context}}"}], "threads": []}],
}


def context(**more: Any) -> dict[str, Any]:
    return prompting.narrowed({**CONTEXT, **more}, None, ())


def test_the_context_stands_in_the_one_place_word_for_word() -> None:
    prompt = prompting.build(Prompts(user="A {{context}} B {{context}}"), context(), reading=False)
    assert prompt.user.startswith("A {")
    assert prompt.user.endswith("} B {{context}}")
    assert json.loads(prompt.user[2 : -len(" B {{context}}")]) == context()


def test_the_prompts_that_come_with_us_name_every_action_and_hold_none() -> None:
    plain = prompting.build(Prompts(), context(), reading=False)
    reading = prompting.build(Prompts(), context(), reading=True)
    for name in ACTIONS:
        assert f"`{name}`" in plain.system
    for name in READ_ACTIONS:
        assert f"`{name}`" in reading.system
        assert name not in plain.system
    # An agent that repeats its prompt decides nothing.
    with pytest.raises(decision.NoDecision):
        decision.read(plain.system)
    assert decision.action_types(decision.read(plain.user)) == []


def test_a_supplement_and_more_words_are_added() -> None:
    prompt = prompting.build(Prompts(profile="optimization", append="Be kind."), context(), reading=False)
    assert "gas" in prompt.system
    assert prompt.system.endswith("Additional runtime system guidance:\nBe kind.")
    with pytest.raises(ConfigError, match="attack-defense"):
        prompting.build(Prompts(profile="none"), context(), reading=False)


def test_only_the_assigned_community_is_shown_and_no_jokes() -> None:
    jokes = [{"kind": "JOKE", "body": "ha"}, {"kind": "DISCUSSION", "body": "so"}]
    communities = [{"id": "c1", "slug": "one"}, {"id": "c2", "slug": "two", "recentComments": jokes}, 7, {"id": "c3"}]
    own = prompting.narrowed({"communities": communities}, {"id": "c2"}, [{"type": "tx_feedback"}])
    assert [each["slug"] for each in own["communities"]] == ["two"]
    assert own["communities"][0]["recentComments"] == jokes[1:]
    assert own["runnerInbox"] == [{"type": "tx_feedback"}]
    assert len(prompting.narrowed({"communities": communities}, {"id": "other"}, ())["communities"]) == 2


def test_a_context_that_does_not_fit_the_model_is_shortened_from_its_old_end() -> None:
    threads = [{"id": f"t{number}", "body": "x" * 5000} for number in range(100)]
    functions = [{"name": "inc"}]
    community = {"slug": "one", "threads": threads, "abi": ["y" * 9000], "abiFunctions": functions}
    given = prompting.narrowed({"communities": [community]}, None, [{"type": "tx_feedback"}])
    prompt = prompting.build(Prompts(user="{{context}}"), given, reading=False, window=8192)
    assert len(prompt.system) + len(prompt.user) < 8192 * 0.75 * 2.5
    shown = json.loads(prompt.user)
    assert shown["runnerInbox"] == [{"type": "tx_feedback"}]
    assert shown["communities"][0]["abiFunctions"] == functions
    kept = [each["id"] for each in shown["communities"][0]["threads"]]
    assert kept == [f"t{number}" for number in range(len(kept))]
    assert kept
