"""A model for an agent whose user named none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from trunkline.agents.with_model import made
from trunkline.core.faults import ConfigError, NoModel
from trunkline.models.discover import ModelChoice
from trunkline.models.providers import ModelSettings

FOUND = ModelChoice(
    ModelSettings("openai", "found-here", base_url="http://127.0.0.1:9/v1", api_key="k"), "it is a test"
)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """The environments that were looked into."""
    seen: list[Mapping[str, str]] = []

    async def discover(environ: Mapping[str, str], **_where: object) -> ModelChoice:
        seen.append(environ)
        return FOUND

    monkeypatch.setattr("trunkline.models.discover.discover", discover)
    return seen


def needy(options: Mapping[str, Any]) -> dict[str, Any]:
    if not options.get("provider"):
        raise NoModel("Which?")
    return dict(options)


async def test_who_needs_none_is_made_at_once(looked: list[Mapping[str, str]]) -> None:
    options = {"provider": "anthropic"}
    assert await made(needy, options, {}) == (options, None)
    assert await made(str, {}, {}) == ("{}", None)
    assert looked == []


async def test_who_lacks_one_gets_what_is_found_and_what_was_said_stays(looked: list[Mapping[str, str]]) -> None:
    options: dict[str, Any] = {"model": "mine", "base_url": None, "effort": "low"}
    agent, found = await made(needy, options, {"A": "1"})
    assert found is not None
    assert found.told == "The model is `found-here`: it is a test."
    assert agent == options == {
        "provider": "openai", "model": "mine", "base_url": "http://127.0.0.1:9/v1", "api_key": "k", "effort": "low",
    }  # fmt: skip
    assert looked == [{"A": "1"}]


async def test_what_else_is_wrong_is_told(looked: list[Mapping[str, str]]) -> None:
    def broken(options: Mapping[str, Any]) -> None:
        raise ConfigError("No such agent.")

    with pytest.raises(ConfigError, match="No such agent"):
        await made(broken, {}, {})
    assert looked == []
