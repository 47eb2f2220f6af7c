from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.models.anthropic import AnthropicModel
from trunkline.models.bedrock import BedrockModel
from trunkline.models.http_model import HttpModel
from trunkline.models.messages import Message, Text
from trunkline.models.model import Request
from trunkline.models.openai import OpenAIModel
from trunkline.models.providers import ModelSettings
from trunkline.models.vertex import VertexModel

KINDS: list[Any] = [
    (AnthropicModel, {"provider": "anthropic", "model": "claude-sonnet-4", "api_key": "k"}, 64_000),
    (
        BedrockModel,
        {"provider": "bedrock", "model": "us.anthropic.claude-opus-4-20250514-v1:0", "region": "eu-west-1"}
        | {"access_key_id": "a", "secret_access_key": "b"},
        32_000,
    ),
    (VertexModel, {"provider": "vertex", "model": "claude-sonnet-4@20250514", "project": "p"}, 64_000),
    (OpenAIModel, {"provider": "openai", "model": "gpt-4o", "api_key": "k"}, None),
]


def made(kind: type[Any], settings: dict[str, Any], **more: Any) -> HttpModel:
    model = kind(ModelSettings(**settings, **more))
    assert isinstance(model, HttpModel)
    return model


def sent(model: HttpModel, max_tokens: int | None = None) -> int | None:
    """The longest answer that a request asks for."""
    body = json.loads(model.body(Request([Message("user", (Text("q"),))], max_tokens=max_tokens)))
    found: int | None = body.get("max_tokens", body.get("max_completion_tokens"))
    return found


@pytest.mark.parametrize(("kind", "settings", "longest"), KINDS)
def test_the_longest_answer_is_what_the_format_has_to_say(
    kind: type[Any], settings: dict[str, Any], longest: int | None
) -> None:
    model = made(kind, settings)
    assert model.longest_answer == sent(model) == longest


@pytest.mark.parametrize(("kind", "settings", "longest"), KINDS)
def test_settings_and_then_the_profile_decide_on_the_longest_answer(
    kind: type[Any], settings: dict[str, Any], longest: int | None
) -> None:
    compat = {"default_max_tokens": 500}
    profiled, configured = made(kind, settings, compat=compat), made(kind, settings, compat=compat, max_tokens=700)
    assert profiled.longest_answer == sent(profiled) == 500
    assert configured.longest_answer == sent(configured) == 700


@pytest.mark.parametrize(("kind", "settings", "longest"), KINDS)
@pytest.mark.parametrize("asked", [1, 999_999])
def test_a_request_that_says_how_long_is_taken_at_its_word(
    kind: type[Any], settings: dict[str, Any], longest: int | None, asked: int
) -> None:
    assert sent(made(kind, settings, max_tokens=700), asked) == asked
