"""What a model can do, by its name and by what a profile says of it."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.models import abilities
from trunkline.models.abilities import Abilities
from trunkline.models.mock import MockModel
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
    [
        *((model, ("low", "medium", "high")) for model in ("gpt-6.1-sol", "gpt-5-mini", "o3", "openai/gpt-oss:20b")),
        *((model, ()) for model in ("gpt-4o", "gpt-5-chat-latest", "o1-mini", "llama3.2:3b", "mistral-medium-latest")),
        ("my-own", ()),
    ],
)
def test_a_model_of_openai_s_kind_takes_a_word_on_how_hard_to_try_if_it_is_known_to(
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


@pytest.mark.parametrize(
    ("provider", "said", "images"),
    [
        ("mock", "unsupported", False), ("mock", "supported", True), ("mock", "unknown", True),
        ("local", "unsupported", False), ("local", "supported", False), ("openai", "supported", True),
    ],
)  # fmt: skip
def test_what_is_said_of_pictures_counts_where_there_can_be_any(provider: str, said: str, images: bool) -> None:
    assert made(provider, "any", image_input=said).images is images


def test_the_mock_is_shown_no_pictures_where_it_is_said_to_be_blind() -> None:
    settings = ModelSettings("mock", "mock")
    assert MockModel(settings).images
    assert not MockModel(settings.replace(compat={"image_input": "unsupported"})).images


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_profile_knows_better(provider: str) -> None:
    model = "claude-sonnet-5-5" if provider == "anthropic" else "gpt-6"
    model_as_told = made(provider, model, supports_thinking=False, supports_effort=False, image_input="unsupported")
    assert (model_as_told.thinks, model_as_told.efforts, model_as_told.images) == (False, (), False)
    other = made(provider, "gpt-4o", supports_thinking=True, supports_effort=True, effort_levels=["max"])
    assert (other.thinks, other.efforts) == (True, ("max",))
