"""What a model can do, by its name and by what a profile says of it."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.models import abilities
from trunkline.models.abilities import Abilities
from trunkline.models.providers import ModelSettings


def made(provider: str, model: str, **compat: Any) -> Abilities:
    return abilities.of(ModelSettings(provider, model, compat=compat))


@pytest.mark.parametrize(
    ("provider", "model", "thinks"),
    [
        ("anthropic", "claude-sonnet-5-5", True),
        ("anthropic", "claude-3-7-sonnet-20250219", True),
        ("anthropic", "claude-3-5-haiku-latest", False),
        ("bedrock", "us.anthropic.claude-3-haiku-20240307-v1:0", False),
        ("bedrock", "eu.anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("openai", "gpt-4o", False),
        ("openai", "deepseek/deepseek-r1", True),
        ("openai", "qwen3:8b", True),
        ("mock", "claude-sonnet-5-5", False),
        ("local", "qwen3-0.6b", True),
    ],
)
def test_a_model_thinks_or_does_not(provider: str, model: str, thinks: bool) -> None:
    assert made(provider, model).thinks is thinks


@pytest.mark.parametrize(
    ("model", "efforts"),
    [("gpt-6.1-sol", ("low", "medium", "high")), ("gpt-4o", ()), ("somebody-elses", ("low", "medium", "high"))],
)
def test_a_model_of_openai_s_kind_takes_a_word_on_how_hard_to_try_unless_it_is_known_not_to(
    model: str, efforts: tuple[str, ...]
) -> None:
    assert made("openai", model).efforts == efforts


def test_claude_takes_it_where_it_decides_by_itself_how_much_to_think() -> None:
    assert made("anthropic", "claude-sonnet-5-5").efforts == ("low", "medium", "high")
    assert made("anthropic", "claude-sonnet-4-20250514").efforts == ()


@pytest.mark.parametrize(
    ("provider", "model", "images"),
    [
        ("anthropic", "claude-opus-4-1", True),
        ("openai", "gpt-4o-mini", True),
        ("openai", "o3-mini", None),
        ("openai", "somebody-elses", None),
    ],
)
def test_a_model_sees_or_nobody_knows(provider: str, model: str, images: bool | None) -> None:
    assert made(provider, model).images is images


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_profile_knows_better(provider: str) -> None:
    model = "claude-sonnet-5-5" if provider == "anthropic" else "gpt-6"
    model_as_told = made(provider, model, supports_thinking=False, supports_effort=False, image_input="unsupported")
    assert (model_as_told.thinks, model_as_told.efforts, model_as_told.images) == (False, (), False)
    other = made(provider, "gpt-4o", supports_thinking=True, supports_effort=True, effort_levels=["max"])
    assert (other.thinks, other.efforts) == (True, ("max",))
