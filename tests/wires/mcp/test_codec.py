"""Lines into messages, and what is said to those that are none."""

from __future__ import annotations

import pytest

from trunkline.wires.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from trunkline.wires.mcp.codec import BrokenMessage, LineDecoder, encode


def only(line: bytes) -> object:
    (found,) = LineDecoder(1000).feed(line + b"\n")
    return found


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
    ],
)
def test_messages_go_round(message: dict[str, object]) -> None:
    assert only(encode(message).rstrip(b"\n")) == message


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"[" * 400, PARSE_ERROR, None),
        (b'"' + b"x" * 1000 + b'"', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE_ERROR, None),
        (b"7", INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'{"id":1,"method":"ping"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', INVALID_PARAMS, 1),
    ],
)
def test_what_is_no_message_is_told_so(line: bytes, code: int, request_id: int | None) -> None:
    found = only(line)
    assert isinstance(found, BrokenMessage)
    assert (found.code, found.id) == (code, request_id)


@pytest.mark.parametrize(
    "answer", [b'"result":null', b'"result":[1]', b'"error":"no"', b'"error":{"code":"1"}', b'"error":null']
)
def test_an_answer_that_says_nothing_is_an_error_for_whoever_waits_for_it(answer: bytes) -> None:
    found = only(b'{"jsonrpc":"2.0","id":1,' + answer + b"}")
    assert isinstance(found, dict)
    assert found["id"] == 1
    assert found["error"]["code"] == INVALID_REQUEST


def test_an_answer_may_say_that_there_is_no_error_and_leave_out_the_version() -> None:
    assert only(b'{"id":1,"result":{"a":1},"error":null}') == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}


def test_empty_lines_are_nothing_and_the_last_line_needs_no_end() -> None:
    decoder = LineDecoder()
    assert decoder.feed(b'\n \r\n{"jsonrpc":"2.0",') == []
    assert decoder.feed(b'"method":"x"}') == []
    assert decoder.finish() == [{"jsonrpc": "2.0", "method": "x"}]
