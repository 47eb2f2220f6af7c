from __future__ import annotations

import pytest

from trunkline.core.faults import ConfigError
from trunkline.models.endpoint import endpoint, health_endpoint, host_of, is_own_machine, without_secrets

CHAT, MESSAGES = "/chat/completions", "/messages"


@pytest.mark.parametrize(
    ("base", "api_path", "url"),
    [
        ("https://api.openai.com", None, "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", None, "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1", None, "https://api.openai.com/v1/chat/completions"),
        (" https://api.openai.com/v1// ", None, "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:11434", None, "http://127.0.0.1:11434/v1/chat/completions"),
        ("https://h/openai", None, "https://h/openai/v1/chat/completions"),
        ("https://h/api/paas/v4", None, "https://h/api/paas/v4/chat/completions"),
        ("https://h/v1beta/openai/", None, "https://h/v1beta/openai/chat/completions"),
        ("https://h/v1/account/gateway/openai", None, "https://h/v1/account/gateway/openai/chat/completions"),
        ("https://h/v1/chat/completions", None, "https://h/v1/chat/completions"),
        ("https://h/v1/chat/completions/", None, "https://h/v1/chat/completions"),
        ("https://h", "/chat/completions", "https://h/chat/completions"),
        ("https://h/v4", "/chat/completions", "https://h/v4/chat/completions"),
        ("https://h/v1", "/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h", "v4/chat/completions", "https://h/v4/chat/completions"),
        ("https://h/v1?api-version=2", None, "https://h/v1/chat/completions?api-version=2"),
        ("https://h/vision", None, "https://h/vision/v1/chat/completions"),
        ("http://[::1]:8080", None, "http://[::1]:8080/v1/chat/completions"),
        ("http://[::1]/v1", None, "http://[::1]/v1/chat/completions"),
        ("http://u:p@h:80", None, "http://u:p@h:80/v1/chat/completions"),
    ],
)
def test_where_completions_are_asked_for(base: str, api_path: str | None, url: str) -> None:
    assert endpoint(base, CHAT, api_path=api_path, deep=True) == url


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/v1/account/gateway/anthropic", "https://h/v1/account/gateway/anthropic/v1/messages"),
        ("https://h/v1/messages", "https://h/v1/messages"),
    ],
)
def test_where_messages_are_asked_for(base: str, url: str) -> None:
    assert endpoint(base, MESSAGES) == url


@pytest.mark.parametrize(
    "base",
    ["", "api.openai.com", "localhost:8080", "ftp://h", "https://", "http:///v1", "https:h", "http://h:99999",
     "http://h:port/v1", "http://[::1", "http://[::1]x:y", "http://a:b:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_words(base: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid URL"):
        endpoint(base, CHAT)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://API.openai.com/v1", "api.openai.com"),
        ("https://api.openai.com.evil.example", "api.openai.com.evil.example"),
        ("http://u:p@h.example:80/x", "h.example"),
        ("http://[::1]:8080/v1", "::1"),
        ("https://h?x=1", "h"),
    ],
)
def test_the_host_of_an_address(url: str, host: str) -> None:
    assert host_of(url) == host


def test_an_address_is_shown_without_its_secrets() -> None:
    assert without_secrets("https://u:p@h.example/v1?key=k") == "https://h.example/v1"
    assert without_secrets("u:p@h") == "h"
    with pytest.raises(ConfigError) as caught:
        endpoint("htp://user:secret@h", CHAT)
    assert "secret" not in str(caught.value)


def test_only_this_machine_is_our_own() -> None:
    assert all(map(is_own_machine, ("http://localhost:1", "http://127.0.0.1", "http://[::1]:80", "http://a.localhost")))
    assert not any(map(is_own_machine, ("http://10.0.0.1", "https://api.openai.com", "http://127.evil@h.example")))


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://gpu:8000/v1", "http://gpu:8000/health"),
        ("http://gpu:8000", "http://gpu:8000/health"),
        ("https://h/openai/v1/?api-version=2", "https://h/openai/health?api-version=2"),
        ("https://h/openai", "https://h/openai/health"),
        ("http://v1", "http://v1/health"),
    ],
)
def test_a_server_says_whether_it_works_beside_the_version(base: str, url: str) -> None:
    assert health_endpoint(base) == url
