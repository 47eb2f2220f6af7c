"""AgentProc 0.1: lines and variables, and back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.session_ids import NO_SESSION_IDS, SESSION_IDS
from trunkline.core.faults import LocalProtocolError
from trunkline.wires.agentproc.codec import (
    MAX_LINE,
    MAX_SESSION_ID,
    SESSION_ID_RULE,
    LineReader,
    encode_body,
    encode_error,
    encode_partial,
    encode_session,
    is_session_id,
    own_id,
    portable_id,
    turn_environment,
    turn_of,
)
from trunkline.wires.agentproc.messages import Attachment, Body, Error, Ignored, Partial, Said, SessionId, TurnRequest


def read(data: bytes, prefix: str = "AGENT_SESSION:") -> list[Said]:
    reader = LineReader(prefix)
    return reader.feed(data) + reader.finish()


LINES: list[tuple[bytes, Said]] = [
    (b"hello", Body("hello")),
    (b"", Body("")),
    (b"  indented ", Body("  indented ")),
    (b"AGENT_SESSION:abc", SessionId("abc")),
    (b"AGENT_SESSION: \tabc \r", SessionId("abc")),
    (b'AGENT_PARTIAL:"hi"', Partial("hi")),
    (b'AGENT_PARTIAL: "hi" ', Partial("hi")),
    (b'AGENT_PARTIAL:"a\\nb \\u00e9 \\ud83d\\ude00"', Partial("a\nb é 😀")),
    (b"AGENT_PARTIAL:plain words", Partial("plain words")),
    (b"AGENT_PARTIAL:42", Partial("42")),
    (b"AGENT_PARTIAL:true", Partial("true")),
    (b"AGENT_PARTIAL:null", Partial("null")),
    (b"AGENT_PARTIAL:[1,2]", Partial("[1,2]")),
    (b'AGENT_PARTIAL:{"k":"v"}', Partial('{"k":"v"}')),
    (b'AGENT_PARTIAL:"a" junk', Partial('"a" junk')),
    (b'AGENT_PARTIAL:"open', Partial('"open')),
    (b'AGENT_PARTIAL:"a\tb"', Partial('"a\tb"')),
    (b"AGENT_PARTIAL:", Partial("")),
    (b'AGENT_PARTIAL:""', Partial("")),
    (b'AGENT_PARTIAL:"\\ud83d"', Partial("\ufffd")),
    (b'AGENT_ERROR:"rate limited"', Error("rate limited")),
    (b"AGENT_ERROR:no quotes", Error("no quotes")),
    (b"AGENT_ERROR:", Error("")),
    (b' AGENT_ERROR:"x"', Body(' AGENT_ERROR:"x"')),
    (b"agent_session:abc", Body("agent_session:abc")),
    (b"AGENT_SESSION", Body("AGENT_SESSION")),
    (b"AGENT_PARTIALS:x", Body("AGENT_PARTIALS:x")),
    (b"\xef\xbb\xbfAGENT_SESSION:abc", Body("\ufeffAGENT_SESSION:abc")),
    (b"bad \xff byte", Body("bad \ufffd byte")),
    (b'AGENT_PARTIAL:"\xff"', Partial("\ufffd")),
    ("u2028 \u2028 and \x0c stay".encode(), Body("u2028 \u2028 and \x0c stay")),
    (b"a\rb", Body("a\rb")),
    (b"nul \0 too", Body("nul \0 too")),
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_a_line_says(line: bytes, said: Said) -> None:
    assert read(line + b"\n") == [said]
    if line:
        assert read(line) == [said]


@pytest.mark.parametrize("value", SESSION_IDS)
def test_an_id_in_any_script_is_an_id(value: str) -> None:
    assert read(f"AGENT_SESSION:{value}\n".encode()) == [SessionId(value)]
    assert encode_session(value) == f"AGENT_SESSION:{value}\n".encode()


@pytest.mark.parametrize("value", NO_SESSION_IDS)
def test_an_id_that_cannot_be_one_is_ignored_with_the_rule(value: str) -> None:
    (said,) = read(f"AGENT_SESSION:{value}\n".encode())
    assert isinstance(said, Ignored)
    assert said.why.endswith(SESSION_ID_RULE)
    assert "white space, control characters, `:`, `/` and `\\`" in said.why


@pytest.mark.parametrize("value", ["", " "])
def test_a_session_line_without_an_id_is_ignored_with_a_warning(value: str) -> None:
    (said,) = read(f"AGENT_SESSION:{value}\n".encode())
    assert isinstance(said, Ignored)
    assert "without an id" in said.why


def test_an_id_that_is_not_utf_8_is_left_out_since_it_could_not_be_sent_back() -> None:
    (said,) = read(b"AGENT_SESSION:s\xe9ance\n")
    assert isinstance(said, Ignored)
    assert "not UTF-8" in said.why


def test_the_longest_id_is_an_id() -> None:
    assert is_session_id("x" * MAX_SESSION_ID)
    assert not is_session_id("x" * (MAX_SESSION_ID + 1))


def test_one_carriage_return_is_taken_off_a_line_and_no_more() -> None:
    assert read(b"a\r\r\n") == [Body("a\r")]


def test_another_session_prefix_replaces_the_usual_one_which_is_still_no_text() -> None:
    said = read(b"SID:abc\nAGENT_SESSION:other\ntext\n", prefix="SID:")
    assert said[0] == SessionId("abc")
    assert isinstance(said[1], Ignored)
    assert said[2] == Body("text")


@pytest.mark.parametrize("size", [MAX_LINE - 1, MAX_LINE])
def test_a_line_up_to_the_limit_is_read(size: int) -> None:
    (said,) = read(b"x" * size + b"\n")
    assert isinstance(said, Body)
    assert len(said.text) == size


def test_a_line_over_the_limit_is_left_out_with_a_warning_and_the_next_one_is_read() -> None:
    said = read(b"x" * (MAX_LINE + 1) + b"\nAGENT_SESSION:s\n")
    assert isinstance(said[0], Ignored)
    assert said[1:] == [SessionId("s")]


def test_a_reply_that_holds_events_of_0_4_is_kept_and_said_to_be_suspicious() -> None:
    line = '{"type":"result","text":"hi"}'
    said = read(f"{line}\n".encode())
    assert said[0] == Body(line)
    assert isinstance(said[1], Ignored)
    assert 'protocol: "0.4"' in said[1].why


def test_other_json_in_a_reply_is_not_suspicious() -> None:
    assert read(b'{"type":"report","text":"hi"}\n') == [Body('{"type":"report","text":"hi"}')]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(data: bytes, cuts: list[int]) -> None:
    whole = LineReader()
    expected = whole.feed(data) + whole.finish()
    reader = LineReader()
    said: list[Said] = []
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        said += reader.feed(data[start:end])
    assert said + reader.finish() == expected


# Writing


@given(st.text())
def test_what_a_partial_or_an_error_says_is_read_back(text: str) -> None:
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert read(encode_partial(text)) == [Partial(clean)]
    assert read(encode_error(text)) == [Error(clean)]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_a_body_is_never_taken_for_protocol(text: str) -> None:
    assert all(isinstance(said, Body | Ignored) for said in read(encode_body(text)))


def test_a_line_of_a_body_that_looks_like_protocol_gets_a_space_in_front() -> None:
    assert encode_body('one\nAGENT_ERROR:"x"\nAGENT_SESSION:y\ntwo') == (
        b'one\n AGENT_ERROR:"x"\n AGENT_SESSION:y\ntwo\n'
    )


def test_a_body_ends_with_one_line_feed() -> None:
    assert encode_body("a") == encode_body("a\n") == b"a\n"


def test_a_session_id_that_cannot_be_one_is_not_written() -> None:
    assert encode_session("abc") == b"AGENT_SESSION:abc\n"
    with pytest.raises(LocalProtocolError, match="a b"):
        encode_session("a b")


@given(st.text(min_size=1, max_size=50))
def test_any_id_of_ours_has_a_portable_form_and_comes_back(own: str) -> None:
    portable = portable_id(own)
    assert set(portable) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~=-")
    assert portable not in (".", "..")
    assert own_id(portable) == own


@pytest.mark.parametrize("foreign", ["a=b", "=ZZ", "=FF", "x=", "a=41"])
def test_an_id_that_we_did_not_make_stays_as_it_is(foreign: str) -> None:
    assert own_id(foreign) == foreign


# A turn


def test_a_turn_is_told_in_variables() -> None:
    assert turn_environment(TurnRequest("hi", "s1", "work", "ann", streaming=False)) == {
        "AGENT_MESSAGE": "hi",
        "AGENT_SESSION_ID": "s1",
        "AGENT_SESSION_NAME": "work",
        "AGENT_FROM_USER": "ann",
        "AGENT_STREAMING": "0",
        "AGENT_PROTOCOL_VERSION": "0.1",
    }


def test_the_variables_of_single_attachments_are_set_when_there_is_exactly_one_of_the_type() -> None:
    image, other, file = Attachment("image", "u1", "a"), Attachment("image", "u2"), Attachment("file", "u3")
    one = turn_environment(TurnRequest("hi", attachments=(image, file)))
    assert (one["AGENT_IMAGE_URL"], one["AGENT_FILE_URL"]) == ("u1", "u3")
    two = turn_environment(TurnRequest("hi", attachments=(image, other, file)))
    assert "AGENT_IMAGE_URL" not in two
    assert two["AGENT_FILE_URL"] == "u3"
    assert two["AGENT_ATTACHMENTS"] == (
        '[{"type":"image","url":"u1","name":"a"},{"type":"image","url":"u2","name":""},'
        '{"type":"file","url":"u3","name":""}]'
    )
    assert "AGENT_ATTACHMENTS" not in turn_environment(TurnRequest("hi"))


def test_a_turn_survives_its_variables() -> None:
    attachments = (Attachment("image", "u1", "n"), Attachment("video", "u2"))
    turn = TurnRequest("hi", "s1", "work", "ann", streaming=False, attachments=attachments)
    assert turn_of(turn_environment(turn)) == turn


def test_missing_variables_have_their_defaults() -> None:
    assert turn_of({}) == TurnRequest("")


@pytest.mark.parametrize("listed", ["", "nonsense", "{}", "7", '"x"'])
def test_without_a_list_of_attachments_the_single_ones_count(listed: str) -> None:
    found = turn_of({"AGENT_ATTACHMENTS": listed, "AGENT_IMAGE_URL": "u", "AGENT_FILE_URL": ""}).attachments
    assert found == (Attachment("image", "u"),)


def test_attachments_without_type_or_url_are_left_out() -> None:
    listed = '[{"type":"image"},{"url":"u"},7,{"type":"file","url":"u","name":4},{"type":"","url":"u"}]'
    assert turn_of({"AGENT_ATTACHMENTS": listed}).attachments == (Attachment("file", "u"),)
