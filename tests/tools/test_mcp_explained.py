"""Why a server failed, in words that may be the server's own: cleaned before they are cut."""

from __future__ import annotations

import pytest

from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.http import HttpTransport
from trunkline.tools.mcp.stdio import _CLEANED_BYTES, _LAST_WORDS_CHARS, _LOGGED_CHARS, StdioTransport
from trunkline.tools.mcp.transport import _SHORT_CHARS, in_short

SECRET = "sk-live-0123456789abcdef"
REDACTOR = Redactor([SECRET])


def parts_of_it(text: str) -> bool:
    return any(SECRET[place : place + 6] in text for place in range(len(SECRET) - 5))


@pytest.mark.parametrize("behind", [_LAST_WORDS_CHARS - 10, _LAST_WORDS_CHARS - 1, 0])
def test_the_last_words_of_a_program_hold_no_half_of_a_secret(behind: int) -> None:
    transport = StdioTransport(AddMcpServer("x", "stdio", command="x"), "/", {}, REDACTOR)
    transport._stderr.feed(f"x {SECRET}{' ' * behind}".rstrip().encode() + b"." * behind)
    transport._exit_code = 1
    assert "last words" in transport.explain(None)
    assert not parts_of_it(transport.explain(None))


def test_what_was_lost_at_the_beginning_takes_the_rest_of_its_word_along() -> None:
    transport = StdioTransport(AddMcpServer("x", "stdio", command="x"), "/", {}, REDACTOR)
    transport._stderr.feed(b"x" * 8000 + SECRET.encode() + b"." * 8180)
    transport._exit_code = 1
    assert not parts_of_it(transport.explain(None))


@pytest.mark.parametrize("before", [_LOGGED_CHARS - 10, _LOGGED_CHARS - 1])
def test_a_line_for_the_log_holds_no_half_of_a_secret(before: int) -> None:
    transport = StdioTransport(AddMcpServer("x", "stdio", command="x"), "/", {}, REDACTOR)
    line = transport._excerpt(b"." * before + SECRET.encode() + b"." * _CLEANED_BYTES)
    assert not parts_of_it(line)
    assert len(line) == _LOGGED_CHARS


def test_a_line_full_of_secrets_holds_no_half_of_one_where_it_was_cut_for_the_memory() -> None:
    """Masks are short: what was cut at the far end comes into sight."""
    key = "k" + "0123456789abcdef" * 60
    transport = StdioTransport(AddMcpServer("x", "stdio", command="x"), "/", {}, Redactor([key]))
    assert "0123" not in transport._excerpt(key.encode() * 100)


@pytest.mark.parametrize("before", [_SHORT_CHARS - 10, 0])
def test_an_error_that_quotes_what_it_did_not_understand_is_cleaned_first(before: int) -> None:
    assert not parts_of_it(in_short(ValueError("." * before + SECRET), REDACTOR.text))


@pytest.mark.parametrize("before", [_SHORT_CHARS - 20, _SHORT_CHARS - 40, 0])
def test_an_address_with_a_token_is_taken_out_before_an_error_is_cut(before: int) -> None:
    url = f"https://h.example/{SECRET}/mcp"
    transport = HttpTransport(AddMcpServer("x", "sse", url=url), Redactor())
    said = transport.explain(OSError("." * before + url))
    assert said.startswith("cannot be reached at https://h.example: ")
    assert not parts_of_it(said)
