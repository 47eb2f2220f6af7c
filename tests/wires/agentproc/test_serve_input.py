"""How an agent process hears its turn, also from bridges that mean no good."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.agentproc import codec, serve_input
from trunkline.wires.agentproc.codec_ndjson import encode_turn
from trunkline.wires.agentproc.messages import Attachment, TurnRequest
from trunkline.wires.agentproc.serve_input import (
    dialect_of,
    environment_turn,
    first_line,
    local_path,
    odd_version,
    whole_input,
)


@contextmanager
def pipe(data: bytes, *, ended: bool = True) -> Iterator[int]:
    """The reading end of a pipe that holds this."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
        if ended:
            os.close(writing)
        yield reading
    finally:
        os.close(reading)
        if not ended:
            os.close(writing)


@pytest.mark.parametrize(
    ("environ", "dialect"),
    [
        ({}, "0.4"),
        ({"AGENT_SESSION_ID": "x"}, "0.4"),
        ({"AGENT_MESSAGE": ""}, "0.1"),
        ({"AGENT_PROTOCOL_VERSION": "9"}, "0.1"),
    ],
)
def test_a_bridge_that_sets_the_variables_of_a_turn_speaks_0_1(environ: dict[str, str], dialect: str) -> None:
    assert dialect_of(environ) == dialect


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    told = environment_turn({"AGENT_MESSAGE": os.fsdecode(b"caf\xe9 \xf0\x9f"), "AGENT_FROM_USER": "\ud83d"})
    assert told.message == "caf\ufffd \ufffd"
    assert told.from_user == "\ufffd"
    told.message.encode()


@given(st.dictionaries(st.sampled_from(codec.VARIABLES), st.text(st.characters()) | st.binary().map(os.fsdecode)))
def test_no_environment_is_too_strange(environ: dict[str, str]) -> None:
    told = environment_turn(environ)
    for text in (told.message, told.session_id, told.session_name, told.from_user):
        text.encode()


@pytest.mark.parametrize(
    "garbage", ["[", "{}", "[1, null, {}]", '[{"type":"image"}]', '[{"type":1,"url":2}]', "\udcff"]
)
def test_attachments_that_cannot_be_read_are_none(garbage: str) -> None:
    assert environment_turn({"AGENT_MESSAGE": "x", "AGENT_ATTACHMENTS": garbage}).attachments == ()


def test_garbage_in_the_list_leaves_the_single_attachment() -> None:
    environ = {"AGENT_MESSAGE": "x", "AGENT_ATTACHMENTS": "[", "AGENT_IMAGE_URL": "/i.png"}
    assert environment_turn(environ).attachments == (Attachment("image", "/i.png"),)


def test_standard_input_is_not_touched_where_a_variable_tells_the_message() -> None:
    def read() -> bytes:
        raise AssertionError("nobody may read")

    assert environment_turn({"AGENT_MESSAGE": ""}, read).message == ""


@pytest.mark.parametrize("data", [b"long \xff\nstory", encode_turn(TurnRequest("long \ufffd\nstory"))])
def test_a_message_too_long_for_a_variable_is_read_from_standard_input(data: bytes) -> None:
    with pipe(data) as fd:
        told = environment_turn({"AGENT_PROTOCOL_VERSION": "0.1"}, lambda: whole_input(fd))
    assert told.message == "long \ufffd\nstory"


def test_a_bridge_that_never_writes_is_an_error_unless_something_is_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_input, "PATIENCE_SECONDS", 0.01)
    environ = {"AGENT_PROTOCOL_VERSION": "0.1"}
    with pipe(b"", ended=False) as fd:
        with pytest.raises(RemoteProtocolError, match="There is no message"):
            environment_turn(environ, lambda: whole_input(fd))
        told = environment_turn(environ | {"AGENT_IMAGE_URL": "/i.png"}, lambda: whole_input(fd))
    assert (told.message, told.attachments) == ("", (Attachment("image", "/i.png"),))


@pytest.mark.parametrize("blocking", [True, False])
def test_a_message_that_has_begun_is_waited_for_to_its_end(monkeypatch: pytest.MonkeyPatch, blocking: bool) -> None:
    monkeypatch.setattr(serve_input, "PATIENCE_SECONDS", 0.01)
    reading, writing = os.pipe()
    os.set_blocking(reading, blocking)

    def go_on() -> None:
        os.write(writing, b" a message")
        os.close(writing)

    os.write(writing, b"half")
    later = threading.Timer(0.2, go_on)
    later.start()
    try:
        assert whole_input(reading) == b"half a message"
    finally:
        later.join()
        os.close(reading)


def test_a_message_that_is_too_long_is_an_error_and_not_cut() -> None:
    with pipe(b"x" * 100) as fd:
        assert whole_input(fd, max_bytes=100) == b"x" * 100
    with pipe(b"x" * 101) as fd:
        with pytest.raises(RemoteProtocolError, match="100 bytes"):
            whole_input(fd, max_bytes=100)


@pytest.mark.parametrize(("version", "is_odd"), [("0.1", False), ("0.1.0", False), ("", False), ("0.10", True)])
def test_another_version_of_the_protocol_is_remarked_on(version: str, is_odd: bool) -> None:
    remark = odd_version({"AGENT_PROTOCOL_VERSION": version})
    assert (remark is not None and repr(version) in remark) is is_odd


def test_the_first_line_is_given_with_what_came_behind_it() -> None:
    with pipe(b"\n \none\ntwo\nthr") as fd:
        assert first_line(fd) == (b"one", b"two\nthr")
        assert first_line(fd, b"two\nthr") == (b"two", b"thr")
        assert first_line(fd, b"thr") == (b"thr", b"")
        with pytest.raises(RemoteProtocolError, match="ended"):
            first_line(fd)


def test_a_first_line_without_an_end_is_given_up_at_the_limit() -> None:
    with pipe(b"x" * 101, ended=False) as fd:
        with pytest.raises(RemoteProtocolError, match="100 bytes"):
            first_line(fd, max_line=100)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a/b", "/a/b"),
        ("notes: today.txt", "notes: today.txt"),
        ("file:///a%20b/%C3%A9", "/a b/é"),
        ("file://localhost/a", "/a"),
        ("file:/a", "/a"),
        ("file:///a%FF", os.fsdecode(b"/a\xff")),
        ("file://host/a", None),
        ("file://", None),
        ("file:///a%00b", None),
        ("a\0b", None),
        ("https://example.org/a", None),
        ("data:text/plain,hello", None),
        ("", None),
    ],
)
def test_a_url_is_a_file_of_this_machine_or_it_is_not(url: str, path: str | None) -> None:
    assert local_path(url) == path
