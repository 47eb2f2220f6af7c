"""What models can read and write, whatever their sellers call them."""

from __future__ import annotations

import pytest

from trunkline.models.limits import context_window, max_tokens, plain_name


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4@20250514",
        "Claude-Sonnet-4@default",
        "anthropic/claude-sonnet-4",
        "anthropic.claude-sonnet-4-20250514-v1:0",
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "us-gov.anthropic.claude-sonnet-4-20250514-v1:0:200k",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0",
    ],
)
def test_one_model_has_one_plain_name(name: str) -> None:
    assert plain_name(name) == "claude-sonnet-4"
    assert context_window(name) == 200_000
    assert max_tokens(name) == 64_000


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic.claude-haiku-5-5", "claude-haiku-5-5"),
        ("qwen2.5-coder:1.5b", "qwen2.5-coder:1.5b"),
    ],
)
def test_dates_versions_and_paths_are_no_part_of_a_name(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("claude-3-opus-20240229", 200_000),
        ("claude-haiku-4-5-20251001", 200_000),
        ("claude-opus-4-1-20250805", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-sonnet-5-5", 1_000_000),
        ("gpt-4", 8_192),
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-5-mini", 400_000),
        ("gpt-6.1-sol", 1_050_000),
        ("o3-mini", 200_000),
        ("gemini-2.5-flash", 1_048_576),
        ("deepseek-chat", 128_000),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 8_192),
        ("smollm2-135m", 8_192),
        ("qwen2.5-coder:1.5b", 8_192),
        ("llama3.2:latest", 8_192),
        ("some-weights.gguf", 8_192),
        ("llama-3.3-70b-versatile", 128_000),
        ("nobody-has-heard-of-it", 128_000),
    ],
)
def test_the_context_window_of(name: str, window: int) -> None:
    assert context_window(name) == window


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-opus-4-5-20251101", 64_000),
        ("claude-sonnet-4-5", 64_000),
        ("claude-haiku-4-5", 64_000),
        ("claude-sonnet-4-6", 128_000),
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-3-haiku-20240307", 4_096),
        ("claude-of-the-future", 128_000),
        ("gpt-4o", 16_384),
        ("nobody-has-heard-of-it", 8_192),
    ],
)
def test_the_longest_answer_of(name: str, tokens: int) -> None:
    assert max_tokens(name) == tokens
