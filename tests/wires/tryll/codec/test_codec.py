"""Messages to frames and back, and a stream of bytes to frames."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wires.tryll.samples import ALL, named
from trunkline.core.faults import LocalProtocolError, RemoteProtocolError
from trunkline.wires.tryll.codec import (
    MAX_FRAME,
    Framer,
    FrameTooLarge,
    Malformed,
    UnknownKind,
    Unsendable,
    decode,
    encode,
    frame,
)
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import (
    Ack,
    AnswerText,
    AudioBufferFrame,
    ChangeAgentParamRequest,
    CreateAgentRequest,
    CreateStringStorageRequest,
    DownloadProgress,
    ErrorResponse,
    GenerateParams,
    GraphDescription,
    HumanMessageGuardrailParams,
    Message,
    NodeDescription,
    NodeEvent,
    NodeEventKeyValue,
    SamplingOverrides,
    SendMessageRequest,
    SessionReady,
    TurnComplete,
)

IDS = st.integers(0, 2**64 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
COUNTS = st.integers(-(2**31), 2**31 - 1)
HOT = st.one_of(
    st.builds(SendMessageRequest, IDS, IDS, TEXTS),
    st.builds(AnswerText, IDS, IDS, TEXTS, st.booleans(), st.booleans()),
    st.builds(TurnComplete, IDS, IDS, st.integers(0, 2), TEXTS, COUNTS, COUNTS, COUNTS),
    st.builds(
        NodeEvent, IDS, TEXTS, TEXTS, st.lists(st.builds(NodeEventKeyValue, TEXTS, TEXTS), max_size=20).map(tuple)
    ),
)  # fmt: skip


@pytest.mark.parametrize("message", ALL, ids=named)
def test_every_message_comes_back_as_it_went(message: Message) -> None:
    payload = encode(message)
    assert decode(payload) == message
    assert decode(payload) == message, "once its arrangement is known"
    assert decode(write(message)) == message


@given(HOT)
def test_the_frames_of_a_turn_come_back_whatever_they_hold(message: Message) -> None:
    assert decode(encode(message)) == message
    assert decode(write(message)) == message


#: Made by the runtime that comes with the compiler.
FOREIGN = {
    """
    28000000 0c000000 08000a00 09000400 08000000 0c000000 000a0600 0c000400 06000000 07000000 00000000
    """: Ack(7),
    """
    38000000 10000000 00000000 08000c00 0b000400 08000000 10000000 00000001 08001400 10000400 08000000 2a000000 00000000
    00000000 02000000
    """: SessionReady(2, 42),
    """
    40000000 0c000000 08000a00 09000400 08000000 14000000 00070e00 14000000 0c000800 00000700 0e000000 00000001 0c000000
    01000000 00000000 00000000 00000000
    """: AnswerText(0, 1, "", False, True),
    """
    48000000 10000000 00000000 08000a00 09000400 08000000 10000000 00190a00 14000c00 08000400 0a000000 10000000 bc0b0000
    09000000 00000000 0a000000 6167656e 74206275 73790000
    """: ErrorResponse(9, 3004, "agent busy"),
}


@pytest.mark.parametrize(
    ("hexadecimal", "message"), FOREIGN.items(), ids=[type(message).__name__ for message in FOREIGN.values()]
)
def test_frames_of_another_builder_are_understood(hexadecimal: str, message: Message) -> None:
    (payload,) = Framer().feed(bytes.fromhex(hexadecimal))
    assert decode(payload) == message
    assert decode(payload) == message


def test_no_text_and_an_empty_text_are_kept_apart_where_it_matters() -> None:
    for exit_to in (None, ""):
        message = ChangeAgentParamRequest(params=GenerateParams(default_exit=exit_to))
        assert decode(encode(message)) == message


def test_a_temperature_of_zero_is_not_an_absent_one() -> None:
    for temperature in (None, 0.0):
        params = GenerateParams(sampling=SamplingOverrides(temperature=temperature))
        assert decode(encode(ChangeAgentParamRequest(params=params))) == ChangeAgentParamRequest(params=params)


def test_a_node_without_parameters_can_be_read() -> None:
    message = CreateAgentRequest(graph=GraphDescription((NodeDescription("lonely"),), "lonely"))
    assert decode(encode(message)) == message


def test_halves_of_characters_are_replaced() -> None:
    assert decode(encode(AnswerText(text="a\ud83db"))) == AnswerText(text="a\N{REPLACEMENT CHARACTER}b")
    strings = CreateStringStorageRequest(strings=("\udc00",))
    assert decode(encode(strings)) == CreateStringStorageRequest(strings=("\N{REPLACEMENT CHARACTER}",))


@pytest.mark.parametrize(
    "message",
    [
        Ack(-1),
        AnswerText(2**64),
        TurnComplete(tokens_generated=2**31),
        NodeEvent(agent_id=-1),
        DownloadProgress(percent=1e300),
        AudioBufferFrame(pcm=b"odd"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_no_frame_can_carry_is_our_own_fault(message: Message) -> None:
    with pytest.raises(Unsendable, match=type(message).__name__) as caught:
        encode(message)
    assert isinstance(caught.value, LocalProtocolError)


def test_nothing_larger_than_a_frame_is_written() -> None:
    room = MAX_FRAME - len(encode(AnswerText()))
    assert len(encode(AnswerText(text="x" * room))) <= MAX_FRAME
    for message in (AnswerText(text="x" * MAX_FRAME), ErrorResponse(message="x" * MAX_FRAME)):
        with pytest.raises(Unsendable, match="does not fit into a frame"):
            encode(message)


def test_what_is_wrong_with_a_frame_has_a_number_and_the_id_of_its_request() -> None:
    guard = HumanMessageGuardrailParams(inline_strings=("pattern",))
    payload = encode(ChangeAgentParamRequest(request_id=77, params=guard))
    broken = payload.replace(b"pattern", b"patter\xff")
    with pytest.raises(Malformed, match="UTF-8") as malformed:
        decode(broken)
    assert isinstance(malformed.value, RemoteProtocolError)
    assert (malformed.value.code, malformed.value.request_id) == (5001, 77)

    root = struct.unpack_from("<I", payload)[0]
    tag = bytearray(encode(Ack(request_id=78)))
    tag[tag.index(10, root)] = 250
    with pytest.raises(UnknownKind, match="250") as unknown:
        decode(bytes(tag))
    assert (unknown.value.code, unknown.value.request_id) == (5002, 78)


def test_an_unknown_kind_of_node_is_told_apart_from_rubbish() -> None:
    payload = bytearray(encode(ChangeAgentParamRequest(request_id=5, params=GenerateParams())))
    (tag,) = (at for at in range(len(payload)) if payload[at] == 1 and _reads_as_unknown(payload, at))
    payload[tag] = 99
    with pytest.raises(UnknownKind, match="`NodeParams` with the tag 99") as caught:
        decode(bytes(payload))
    assert caught.value.request_id == 5


def _reads_as_unknown(payload: bytearray, at: int) -> bool:
    changed = bytearray(payload)
    changed[at] = 99
    try:
        decode(bytes(changed))
    except UnknownKind as error:
        return "NodeParams" in str(error)
    except Malformed:
        pass
    return False


# The stream.


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 50))
def test_frames_are_the_same_however_the_stream_is_cut(payloads: list[bytes], size: int) -> None:
    stream = b"".join(map(frame, payloads))
    framer = Framer()
    found = [each for at in range(0, len(stream), size) for each in framer.feed(stream[at : at + size])]
    assert found == payloads
    assert framer.held == 0


def test_half_a_frame_is_waited_for() -> None:
    framer = Framer()
    assert framer.feed(frame(b"whole") + frame(b"half a frame")[:9]) == [b"whole"]
    assert framer.held == 9
    assert framer.feed(b"") == []
    assert framer.feed(frame(b"half a frame")[9:]) == [b"half a frame"]


def test_a_frame_of_length_zero_is_a_frame_and_no_message() -> None:
    assert Framer().feed(bytes(4)) == [b""]
    with pytest.raises(Malformed, match="empty"):
        decode(b"")


def test_the_largest_frame_passes_and_the_next_larger_one_is_refused_by_its_length_alone() -> None:
    largest = bytes(MAX_FRAME)
    assert Framer().feed(frame(largest)) == [largest]
    framer = Framer()
    with pytest.raises(FrameTooLarge, match="1048577") as caught:
        framer.feed(frame(b"before") + struct.pack("<I", MAX_FRAME + 1))
    assert caught.value.code == 5003
    assert caught.value.frames == [b"before"]
    for more in (b"", b"more"):
        with pytest.raises(FrameTooLarge) as again:
            framer.feed(more)
        assert again.value.frames == []
    assert framer.held <= 8


def test_a_stream_that_drips_is_not_copied_again_and_again() -> None:
    framer, payload = Framer(), bytes(MAX_FRAME)
    stream = frame(payload)
    for at in range(0, 300_000, 2):
        assert framer.feed(stream[at : at + 2]) == []
    assert framer.feed(stream[300_000:]) == [payload]
