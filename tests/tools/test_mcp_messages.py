from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from trunkline.tools.mcp.messages import decode, encode, mended


def test_messages_come_and_go_as_lines() -> None:
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": "é\n"})
    line = encode(request)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == request


def test_absent_members_are_not_sent_as_null() -> None:
    line = encode(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
    assert json.loads(line) == {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize(
    "line", [b"", b"  ", b"Listening on stdio", b"{", b"{}", b"[]", b"null", b'{"level": "info"}', b"\xff\xfe"]
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert decode(line) is None


def test_lone_surrogates_and_broken_utf8_do_not_lose_an_answer() -> None:
    for text in (rb'"\ud83d"', b'"\xff"'):
        message = decode(b'{"jsonrpc": "2.0", "id": 1, "result": {"text": ' + text + b"}}\r")
        assert isinstance(message, JSONRPCResponse)
        assert message.result == {"text": "�"}


def test_pairs_of_surrogates_are_characters() -> None:
    assert mended({"\ud800": ["\ud83d\ude00", "é", 1, None]}) == {"�": ["😀", "é", 1, None]}


@given(st.binary())
def test_nothing_that_a_server_prints_is_an_error(line: bytes) -> None:
    decode(line)
    decode(b"{" + line)
