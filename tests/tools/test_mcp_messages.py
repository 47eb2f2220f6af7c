from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from trunkline.tools.mcp.messages import UnreadableAnswer, decode, encode, mended


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


DEEP = b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "result": %s}' % DEEP,
        b'{"id":7,"jsonrpc":"2.0","result":%s}' % DEEP,
        b'{"result": %s, "id": 7, "jsonrpc": "2.0"}\r' % DEEP,
        b'{"error": %s, "jsonrpc": "2.0", "id": 7}' % DEEP,
        b'{"jsonrpc": "2.0", "result": %s, "id": 7}' % DEEP,
        b' {"jsonrpc": "2.0", "id": 7, "result": {"content": [',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"a": Infinity}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": "no object"}',
        b'{"jsonrpc": "2.0", "id": 7, "error": "no object"}',
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_of_its_call(line: bytes) -> None:
    message = decode(line)
    assert isinstance(message, JSONRPCError)
    assert message.id == 7
    assert message.error.message.startswith("The server has answered, but the answer cannot be read: ")
    renamed = decode(line.replace(b": 7", b': "seven"').replace(b":7", b':"seven"'))
    assert isinstance(renamed, JSONRPCError)
    assert renamed.id == "seven"


def test_an_answer_that_does_not_say_to_what_is_told_apart_from_noise() -> None:
    assert decode(b'{"jsonrpc": "2.0", "result": %s}' % DEEP) == UnreadableAnswer("nested deeper than 200 levels")


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": %s}' % DEEP,
        b'{"jsonrpc": "2.0", "method": "notifications/x", "params": %s}' % DEEP,
        b'{"error": "the disk is full", "id": 7}',
        b'{"error": "the disk is full"',
        b'{"level": "error", "id": 7, "jsonrpc": "2.0"}',
    ],
)
def test_questions_and_logs_are_no_answers(line: bytes) -> None:
    assert decode(line) is None


def test_pairs_of_surrogates_are_characters() -> None:
    assert mended({"\ud800": ["\ud83d\ude00", "é", 1, None]}) == {"�": ["😀", "é", 1, None]}


@given(st.binary())
def test_nothing_that_a_server_prints_is_an_error(line: bytes) -> None:
    decode(line)
    decode(b"{" + line)
