"""What looks like a secret is masked; what only speaks of one is not."""

from __future__ import annotations

import time

import pytest

from trunkline.base.secret_shapes import masked


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("the key is sk-ant-api03-abcdefghijklmnopqrst.", "the key is [redacted]."),
        ("ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"),
        ("github_pat_11ABCDEFG0123456789_abc", "[redacted]"),
        ("glpat-abcdefghij0123456789", "[redacted]"),
        ("xoxb-123456789012-abcdef", "[redacted]"),
        ("AWS: AKIAIOSFODNN7EXAMPLE!", "AWS: [redacted]!"),
        ("AIza" + "a" * 35, "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef", "[redacted]"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"),
        ("a -----BEGIN PRIVATE KEY----- abc", "a [redacted]"),
        ("postgres://ada:lovelace@db/x", "postgres://ada:[redacted]@db/x"),
        ("password: hunter2hunter2", "password: [redacted]"),
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[redacted]"}'),
        ("DB_PASSWORD=s3cr3t-word # staging", "DB_PASSWORD=[redacted] # staging"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, left: str) -> None:
    assert masked(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "the token is in $GITHUB_TOKEN2, never in the file",
        "token: $GITHUB_TOKEN_2",
        "api_key = {settings.key_number_1}",
        "password: ask Ada",
        "secret: somewhere safe",
        "max_tokens: 128000abc",
        "see https://example.org:8080/a@b and ssh://git@host:22/x",
        "sk-ip this task-list-with-many-words",
        "eyJ is how such a token begins",
    ],
)
def test_what_only_speaks_of_one_is_left(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "piece", ["a-", "password", "token: ", "-----BEGIN A PRIVATE KEY-----", "eyJa.", "://a:b", "sk-"]
)
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()
    masked(piece * (200_000 // len(piece)))
    assert time.process_time() - began < 5
