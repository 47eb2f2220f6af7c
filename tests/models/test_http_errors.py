from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from trunkline.base.posting import ConnectionFailed, Failure
from trunkline.models.http import HttpService
from trunkline.models.http_errors import (
    SHOWN_CHARS,
    NobodyListens,
    clipped,
    connection_fault,
    retry_after,
    status_fault,
    stream_fault,
)


def fault(status: int, body: Any = b"", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status_fault(status, {name.replace("_", "-"): v for name, v in headers.items()}, data, {401: "Check `KEY`."})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"type": "x", "message": "in an object"}}, "in an object"),
        ({"type": "error", "error": {"message": "with a type"}}, "with a type"),
        ({"error": "as a text"}, "as a text"),
        ({"message": "at the top"}, "at the top"),
        ({"Message": "of Amazon"}, "of Amazon"),
        ([{"error": {"message": "of Google"}}], "of Google"),
        ({"detail": [{"msg": "of a framework"}]}, "of a framework"),
        (b"plain\n  words", "plain words"),
        (b"<html><head><TITLE>502 Bad Gateway</TITLE></head></html>", "502 Bad Gateway"),
        (b"<!doctype html><p>", "a web page"),
        (b"", "no details"),
        (b"\xff\xfe", "��"),
    ],
)
def test_the_provider_s_own_words_are_found_wherever_it_puts_them(body: Any, words: str) -> None:
    assert fault(500, body).message == f"API error 500: {words}"


def test_long_words_are_cut() -> None:
    assert len(clipped(fault(500, b"x" * 100_000).message)) < SHOWN_CHARS + 50


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_retryable(status: int) -> None:
    assert fault(status).retryable is True


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 418, 422])
def test_what_will_not_pass_is_not_retryable(status: int) -> None:
    assert fault(status).retryable is False


def test_a_quota_that_is_used_up_does_not_come_back_by_asking_again() -> None:
    assert fault(429, {"error": {"code": "insufficient_quota", "message": "pay"}}).retryable is False


def test_the_provider_s_own_word_on_retrying_counts() -> None:
    assert fault(500, x_should_retry="false").retryable is False
    assert fault(409, x_should_retry="true").retryable is True


def test_a_hint_says_what_to_check() -> None:
    assert str(fault(401, {"error": {"message": "no"}})) == "API error 401: no. Check `KEY`."
    assert str(fault(401, {"error": {"message": "No!"}})) == "API error 401: No! Check `KEY`."


def test_a_redirect_is_an_error_that_names_the_other_address_without_its_secrets() -> None:
    text = str(fault(307, location="https://user:secret@other.example/v1?token=secret"))
    assert "other.example/v1" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_how_long_to_wait_may_be_a_date() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (retry_after({"retry-after": then}) or 0) <= 60


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"type": "overloaded_error", "message": "m"}, True),
        ({"type": "api_error", "message": "m"}, True),
        ({"type": "invalid_request_error", "message": "m"}, False),
        ({"type": "authentication_error", "message": "m"}, False),
        ({"code": 400, "message": "m"}, False),
        ({"code": 429, "message": "m"}, True),
        ({"code": 503, "message": "m"}, True),
        ("m", True),
    ],
)
def test_an_error_inside_of_a_stream_knows_whether_it_may_pass(error: Any, retryable: bool) -> None:
    found = stream_fault(error)
    assert (found.message, found.retryable) == ("API error: m", retryable)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("late", "`h.example` did not answer in time"),
        ("silent", "`h.example` went silent"),
        ("proxy", "the proxy refused: why"),
        ("refused", "cannot reach `h.example`: why"),
        ("unreachable", "cannot reach `h.example`: why"),
        ("lost", "why"),
    ],
)
def test_a_lost_connection_is_told_in_words_and_may_pass(failure: Failure, words: str) -> None:
    found = connection_fault(ConnectionFailed(failure, "h.example", "why"))
    assert (found.message, found.retryable) == (f"Connection error: {words}", True)


def test_a_lost_connection_may_say_nothing_about_itself() -> None:
    found = connection_fault(ConnectionFailed("lost", "h.example"))
    assert found.message == "Connection error: `h.example` closed the connection"


def test_what_cannot_be_sent_is_not_tried_again() -> None:
    assert connection_fault(ConnectionFailed("unsendable", "h.example", "why")).retryable is False


def test_a_certificate_that_is_not_trusted_says_what_to_set_and_is_not_tried_again() -> None:
    reason = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    found = connection_fault(ConnectionFailed("insecure", "h.example", reason))
    assert "SSL_CERT_FILE" in str(found)
    assert found.retryable is False


def test_a_server_without_tls_is_told_apart_from_none_and_is_not_tried_again() -> None:
    found = connection_fault(
        ConnectionFailed("insecure", "127.0.0.1:8080", "[SSL: WRONG_VERSION_NUMBER] wrong version")
    )
    assert found.message.startswith("Connection error: no secure connection to `127.0.0.1:8080` ([SSL: WRONG_VERSION")
    assert "`http:`" in str(found)
    assert found.retryable is False


@pytest.mark.parametrize(("failure", "nobody"), [("refused", True), ("unreachable", False)])
def test_only_who_refuses_on_this_machine_is_said_not_to_be_there(failure: Failure, nobody: bool) -> None:
    found = connection_fault(ConnectionFailed(failure, "127.0.0.1:8080", "Too many open files"))
    assert isinstance(found, NobodyListens) == nobody
    assert ("Too many open files" in found.message) != nobody


@pytest.mark.parametrize("before", [SHOWN_CHARS - 30, SHOWN_CHARS - 20, 0])
def test_words_are_cleaned_before_they_are_cut(before: int) -> None:
    secret = "sk-live-0123456789abcdef"
    service = HttpService(secure=True, secrets=[secret])
    for failed in (fault(500, b"." * before + secret.encode()), stream_fault({"message": "." * before + secret})):
        shown = str(service._redacted(failed))
        assert not any(secret[place : place + 6] in shown for place in range(len(secret) - 5))
