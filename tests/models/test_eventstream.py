"""Amazon's event stream: frames split anywhere, damaged, too large, and failures in their midst."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import require
from tests.models.aws_frames import chunk, exception, frame, raw_frame
from trunkline.core.faults import ConfigError, ProviderError
from trunkline.models.eventstream import EventStreamDecoder, StreamEvent
from trunkline.models.http_errors import KEPT_CHARS

STREAM = chunk({"n": 1}) + frame({":message-type": "event", ":event-type": "ping"}, b"") + chunk({"text": "grüße"})


@pytest.fixture(autouse=True)
def _with_botocore() -> None:
    require("botocore", find_spec("botocore") is not None, "pip install 'trunkline[bedrock]'")


def events_of(*pieces: bytes) -> list[StreamEvent]:
    decoder = EventStreamDecoder()
    found = [event for piece in pieces for event in decoder.feed(piece)]
    decoder.finish()
    return found


def test_a_frame_becomes_an_event_with_its_type_and_bytes() -> None:
    assert events_of(frame({":message-type": "event", ":event-type": "chunk"}, b"abc")) == [
        StreamEvent("chunk", b"abc")
    ]


def test_several_frames_in_one_piece_are_several_events() -> None:
    assert [event.type for event in events_of(STREAM)] == ["chunk", "ping", "chunk"]


def test_a_stream_split_at_every_byte_gives_the_same_events() -> None:
    assert events_of(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == events_of(STREAM)


def test_a_stream_split_once_anywhere_gives_the_same_events() -> None:
    for at in range(len(STREAM)):
        assert events_of(STREAM[:at], STREAM[at:]) == events_of(STREAM), at


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 40))
def test_any_payload_comes_out_as_it_went_in(payloads: list[bytes], size: int) -> None:
    stream = b"".join(frame({":message-type": "event", ":event-type": "chunk"}, payload) for payload in payloads)
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert [event.payload for event in events_of(*pieces)] == payloads


def test_a_byte_that_was_changed_is_noticed_wherever_it_is() -> None:
    whole = chunk({"n": 1})
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x01
        with pytest.raises(ProviderError) as caught:
            events_of(bytes(damaged))
        assert caught.value.retryable, at


def test_events_before_a_damaged_frame_are_given() -> None:
    damaged = bytearray(chunk({"n": 1}) * 2)
    damaged[-1] ^= 0x01
    events = EventStreamDecoder().feed(bytes(damaged))
    assert next(events).type == "chunk"
    with pytest.raises(ProviderError, match="damaged"):
        next(events)


def test_a_frame_that_is_too_large_is_refused_when_its_length_is_read() -> None:
    prelude = struct.pack("!II", 1 << 30, 0)
    with pytest.raises(ProviderError, match="damaged"):
        list(EventStreamDecoder().feed(prelude + struct.pack("!I", zlib.crc32(prelude))))


@pytest.mark.parametrize("length", [0, 1, 5, 12, 15])
def test_a_length_smaller_than_any_frame_is_refused(length: int) -> None:
    prelude = struct.pack("!II", length, 0)
    with pytest.raises(ProviderError):
        list(EventStreamDecoder().feed(prelude + struct.pack("!I", zlib.crc32(prelude)) + bytes(8)))


@pytest.mark.parametrize(
    "head", [b"\x01a\x63", b"\x01a", b"\x02\xff\xfe\x00", b"\x01a\x07\x00\x01\xff", b"\x01a\x00\x01a\x00"]
)
def test_headers_that_make_no_sense_are_refused_though_their_checksum_is_right(head: bytes) -> None:
    with pytest.raises(ProviderError, match="damaged"):
        list(EventStreamDecoder().feed(raw_frame(head, b"")))


def test_a_message_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ProviderError, match="no known kind"):
        events_of(frame({":message-type": "surprise"}, b""))


def test_a_stream_that_ends_within_a_frame_is_an_error_that_may_pass() -> None:
    with pytest.raises(ProviderError, match="middle of a message") as caught:
        events_of(STREAM[:-1])
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("name", "retryable"),
    [
        ("throttlingException", True),
        ("serviceUnavailableException", True),
        ("internalServerException", True),
        ("modelStreamErrorException", True),
        ("modelTimeoutException", True),
        ("validationException", False),
        ("accessDeniedException", False),
        ("resourceNotFoundException", False),
        ("somethingNewException", False),
    ],
)
def test_an_exception_in_the_stream_says_whether_it_may_pass(name: str, retryable: bool) -> None:
    with pytest.raises(ProviderError, match=f"`{name}`: because") as caught:
        events_of(exception(name, {"message": "because"}))
    assert caught.value.retryable is retryable


def test_what_the_models_own_server_said_is_repeated() -> None:
    body = {"message": "outer", "originalStatusCode": 529, "originalMessage": "Overloaded"}
    with pytest.raises(ProviderError, match="Overloaded"):
        events_of(exception("modelStreamErrorException", body))


@pytest.mark.parametrize("body", [b"plain words", b"[]", b"", json.dumps({"message": None}).encode()])
def test_an_exception_without_the_usual_body_is_still_named(body: bytes) -> None:
    with pytest.raises(ProviderError, match="validationException"):
        events_of(exception("validationException", body))


def test_an_error_message_is_raised_with_its_code_and_words() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "An internal error occurred"}
    with pytest.raises(ProviderError, match="`InternalError`: An internal error occurred") as caught:
        events_of(frame(headers, b""))
    assert caught.value.retryable


def test_an_endless_reason_is_cut() -> None:
    with pytest.raises(ProviderError) as caught:
        events_of(exception("validationException", {"message": "x" * 100_000}))
    assert len(str(caught.value)) < 2 * KEPT_CHARS


def test_without_botocore_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[bedrock\]'"):
        EventStreamDecoder()
