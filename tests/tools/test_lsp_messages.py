"""What language servers send, read with care."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.tools.lsp.messages import (
    LONGEST_HEAD,
    LONGEST_MESSAGE,
    MESSAGE_CHARS,
    MessageReader,
    ServerNonsense,
    diagnostics,
    encoded,
)


def test_messages_are_read_however_they_are_cut() -> None:
    data = encoded({"method": "é"}) + b"content-type: x\r\nCONTENT-LENGTH: 2\r\n\r\n{}" + encoded({"id": 1})
    reader = MessageReader()
    found = [message for byte in data for message in reader.feed(bytes([byte]))]
    assert found == MessageReader().feed(data) == [{"jsonrpc": "2.0", "method": "é"}, {}, {"jsonrpc": "2.0", "id": 1}]


@pytest.mark.parametrize(
    "data",
    [
        b"x" * (LONGEST_HEAD + 1),
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (LONGEST_MESSAGE + 1),
        b"Content-Length: 1\r\n\r\n{",
    ],
)
def test_what_is_no_message_is_nonsense(data: bytes) -> None:
    with pytest.raises(ServerNonsense):
        MessageReader().feed(data)


def at(line: int, **more: Any) -> dict[str, Any]:
    return {"range": {"start": {"line": line, "character": 4}}, "severity": 1, "message": "m", **more}


def test_errors_and_warnings_are_told_from_the_top_in_one_line_each() -> None:
    found = diagnostics([at(9, severity=2, code=7), at(0, message="a\n b"), at(3, severity=3), at(4, severity=None)])
    assert [each.told for each in found] == ["1:5 error: a b", "5:5 error: m", "10:5 warning: m (7)"]


@pytest.mark.parametrize(
    "items",
    [
        *(None, {}, [None], [{}], [{"message": "m"}]),
        *([at(0, message=None)], [at(0, range=[])], [at(0, severity=[])], [at(-5)], [at(10**400)]),
    ],
)
def test_diagnostics_of_another_form_are_none(items: Any) -> None:
    assert diagnostics(items) == ()


def test_what_one_says_is_bounded() -> None:
    (found,) = diagnostics([at(0, message="x" * 5000, code="y" * 5000)])
    assert len(found.told) < MESSAGE_CHARS + 100
