"""Settings for people to see: values without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.exchange.config_shown import SET, place_only, shown


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://me:word@hooks.example:8443/T1/key?sig=2", "https://hooks.example:8443/…"),
        ("nats://127.0.0.1:4222, nats://me:word@b.example:4222", "nats://127.0.0.1:4222, nats://b.example:4222"),
        ("postgresql://me:word@[::1]:5432/rows", "postgresql://[::1]:5432/…"),
        ("http://plain.example", "http://plain.example"),
        ("no address at all", SET),
        ("http://[broken", SET),
        ("http://a:word:more", SET),
    ],
)
def test_of_an_address_only_the_server_is_told(address: str, told: str) -> None:
    assert place_only(address) == told


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("wires", "runner", "agents", "a", "api_key"), "sk-1", SET),
        (("wires", "runner", "agents", "a", "securitySensitive", "x"), "words", SET),
        (("people", "ana", "token_sha256"), "ab" * 32, SET),
        (("agents", "a", "max_tokens"), 100, 100),
        (("exchange", "webhook"), "https://a.example/key", "https://a.example/…"),
        (("agents", "a", "allow"), ("Read", "Grep"), ["Read", "Grep"]),
    ],
)
def test_a_value_is_told_unless_it_is_a_secret(path: tuple[str, ...], value: Any, told: Any) -> None:
    assert shown(path, value) == told
