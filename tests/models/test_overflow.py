"""Whether the conversation is too long, told in the words of those who say it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.core.faults import TooLong
from trunkline.models.eventstream import failure
from trunkline.models.http_errors import status_fault, stream_fault
from trunkline.models.overflow import HINT


def anthropic(kind: str, message: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}}


def openai(message: str, code: Any = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": "messages", "code": code}}


GEMINI = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."

TOO_LONG: list[tuple[int, Any]] = [
    (400, anthropic("invalid_request_error", "prompt is too long: 201234 tokens > 200000 maximum")),
    (400, anthropic("invalid_request_error", "Prompt is too long")),
    (
        400,
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
            "`max_tokens` and try again",
        ),
    ),
    (413, anthropic("request_too_large", "Request exceeds the maximum size")),
    (413, b"<html><head><title>413 Request Entity Too Large</title></head></html>"),
    (413, b""),
    (
        400,
        openai(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. "
            "Please reduce the length of the messages.",
            "context_length_exceeded",
        ),
    ),
    (400, openai("Your input exceeds the context window of this model. Please adjust your input and try again.")),
    (400, openai("Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760")),
    (400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded")),
    # A code of which the words say nothing.
    (400, openai("Bad request.", "context_length_exceeded")),
    (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 "
            "in the messages, 1000 in the completion).",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9000,
                "n_ctx": 4096,
            }
        },
    ),
    (500, {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
    (400, {"error": "the input length exceeds the context length"}),
    (400, {"error": "Trying to keep the first 9000 tokens when context length is exceeded"}),
    (400, [{"error": {"code": 400, "message": GEMINI, "status": "INVALID_ARGUMENT"}}]),
    (400, {"message": "Input is too long for requested model."}),
    (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}),
    (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens"}),
    (400, openai("Your request exceeded model token limit: 262144 (requested: 300000)")),
    (400, openai("prompt token count of 100000 exceeds the limit of 64000", "model_max_prompt_tokens_exceeded")),
    (
        400,
        openai("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 3051),
    ),
]

OTHERS: list[tuple[int, Any]] = [
    (401, anthropic("authentication_error", "invalid x-api-key")),
    (401, {"message": "prompt is too long"}),
    (403, anthropic("permission_error", "Your key may not use the long context window: limit exceeded")),
    (
        429,
        anthropic(
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce "
            "the prompt length or the maximum tokens requested.",
        ),
    ),
    (429, anthropic("rate_limit_error", "Extra usage is required for long context requests.")),
    (
        429,
        openai(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. "
            "The input or output tokens must be reduced in order to run successfully.",
            "rate_limit_exceeded",
            "tokens",
        ),
    ),
    (429, {"message": "Too many tokens, please wait before trying again."}),
    (400, {"message": "Too many tokens per day, please wait before trying again."}),
    (429, openai("You exceeded your current quota", "insufficient_quota")),
    (
        400,
        anthropic(
            "invalid_request_error",
            "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4",
        ),
    ),
    (400, openai("max_tokens is too large: 100000. This model supports at most 16384 completion tokens")),
    (400, anthropic("invalid_request_error", "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum")),
    (400, anthropic("invalid_request_error", "tools.0.custom.name: String should have at most 128 characters")),
    (400, openai("Invalid 'tools[0].function.description': string too long. Expected a string with length 1024")),
    (404, openai("The model `context-length-maximum` does not exist", "model_not_found")),
    (529, anthropic("overloaded_error", "Overloaded")),
    (500, b"<html><title>502 Bad Gateway</title>"),
]


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_conversation_that_is_too_long_is_told_apart(status: int, body: Any) -> None:
    found = _fault(status, body)
    assert isinstance(found, TooLong)
    assert found.retryable is False
    assert str(found).endswith(HINT)


@pytest.mark.parametrize(("status", "body"), OTHERS)
def test_other_failures_are_not_taken_for_it(status: int, body: Any) -> None:
    assert not isinstance(_fault(status, body), TooLong)


def _fault(status: int, body: Any) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status_fault(status, {}, data, {401: "Check `KEY`."})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"type": "invalid_request_error", "message": "prompt is too long: 2 tokens > 1 maximum"}, True),
        ({"type": "request_too_large", "message": "no"}, True),
        ({"code": "context_length_exceeded", "message": "no"}, True),
        ({"code": 400, "message": "This endpoint's maximum context length is 131072 tokens."}, True),
        ("The context length is exceeded", True),
        ({"type": "rate_limit_error", "message": "too many tokens"}, False),
        ({"code": 429, "message": "too many tokens"}, False),
        ({"type": "overloaded_error", "message": "Overloaded"}, False),
        ({"code": [413], "message": {"a": 1}}, False),
    ],
)
def test_inside_of_a_stream_it_is_told_apart_as_well(error: Any, expected: bool) -> None:
    assert isinstance(stream_fault(error), TooLong) is expected


@pytest.mark.parametrize(
    ("name", "reason", "expected"),
    [
        ("validationException", "Input is too long for requested model.", True),
        ("ValidationException", "prompt is too long: 201234 tokens > 200000 maximum", True),
        ("modelStreamErrorException", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", True),
        ("throttlingException", "Too many tokens, please wait before trying again.", False),
        ("throttlingException", "Too many tokens", False),
        ("validationException", "messages: roles must alternate", False),
    ],
)
def test_bedrock_s_streams_say_it_in_their_own_way(name: str, reason: str, expected: bool) -> None:
    assert isinstance(failure(name, reason), TooLong) is expected
