"""Why a connection could not be made."""

from __future__ import annotations

import socket

import pytest

from trunkline.base.refusal import refusal


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9999)"), "Connection refused"),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 9, 0, 0), "
                "[Errno 111] Connect call failed ('127.0.0.1', 9)"
            ),
            "Connection refused",
        ),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_the_reason_is_told_without_numbers_and_addresses(error: OSError, words: str) -> None:
    assert refusal(error) == words
