"""No byte of a frame is believed before it is checked, and no frame costs more than it should."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from struct import pack, unpack_from

import pytest

from tests.wires.tryll import hostile
from tests.wires.tryll.samples import FULL, named
from trunkline.wires.tryll.codec import MAX_FRAME, FrameError, Malformed, decode, encode
from trunkline.wires.tryll.codec import fast as codec_fast
from trunkline.wires.tryll.codec import templates as codec_templates
from trunkline.wires.tryll.codec.reader import MAX_PLANS, TableReader
from trunkline.wires.tryll.codec.shapes import shape_of
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import (
    BODIES,
    Ack,
    AnswerText,
    AudioBufferFrame,
    ChangeAgentParamRequest,
    CreateStringStorageRequest,
    ErrorResponse,
    GenerateParams,
    ListModelsResponse,
    Message,
    NodeEvent,
    NodeEventKeyValue,
    SendMessageRequest,
)

MEMORY = 64 << 20


def changed(payload: bytes, at: int, form: str, value: int) -> bytes:
    """The payload with one number in it replaced."""
    data = bytearray(payload)
    new = pack(form, value)
    data[at : at + len(new)] = new
    return bytes(data)


@pytest.mark.parametrize("message", FULL, ids=named)
@pytest.mark.parametrize("make", [encode, write])
def test_a_frame_that_is_cut_anywhere_is_no_message(message: Message, make: Callable[[Message], bytes]) -> None:
    payload = make(message)
    assert decode(payload) == message
    # Padding at the end may be missing; up to three bytes.
    for size in range(len(payload) - 3):
        with pytest.raises(Malformed):
            decode(payload[:size])


@pytest.mark.parametrize("message", FULL[:27], ids=named)
def test_whatever_one_byte_is_changed_to_nothing_but_a_fault_comes_of_it(message: Message) -> None:
    payload = bytearray(encode(message))
    for at in range(min(len(payload), 160)):
        original = payload[at]
        for value in (0, 1, 4, 127, 128, 255):
            payload[at] = value
            try:
                found = decode(bytes(payload))
            except FrameError:
                continue
            assert isinstance(found, Message)
        payload[at] = original


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "empty"),
        (bytes(4), "too short"),
        (bytes(64), "an offset points nowhere"),
        (b"\xff" * 64, "an offset points nowhere"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "an offset points nowhere"),
        (pack("<I", 13) + bytes(64), "an offset points nowhere"),
        (pack("<IHHi", 8, 4, 4, 4), "no body"),
        (pack("<IHHHHiIB3x", 12, 8, 12, 8, 4, 8, 8, 0) + bytes(8), "no body"),
        (pack("<IHHHHiIB3x", 12, 8, 12, 8, 0, 8, 8, 10) + bytes(8), "no body"),
        (pack("<IHHHHiIB3x", 12, 8, 8, 8, 4, 8, 8, 10) + bytes(8), "root table"),
        (pack("<IHHHHiIB3x", 12, 8, 12, 8, 4, 9, 8, 10) + bytes(8), "vtable"),
        (pack("<IHHHHiIB3x", 12, 8, 12, 8, 4, -90, 8, 10) + bytes(8), "vtable"),
        (pack("<IHHHHiIB3x", 12, 7, 12, 8, 4, 8, 8, 10) + bytes(8), "vtable's length"),
        (pack("<IHHHHiIB3x", 12, 2, 12, 8, 4, 8, 8, 10) + bytes(8), "vtable's length"),
        (pack("<IHHHHiIB3x", 12, 8000, 12, 8, 4, 8, 8, 10) + bytes(8), "vtable's length"),
    ],
)
def test_rubbish_is_named(payload: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        decode(payload)


#: `Ack`: the root at 12, its vtable at 4; the body's vtable at 28, its body at 36.
ACK = write(Ack(7))


def ack_body() -> int:
    return int(TableReader(ACK).locate()[1])


@pytest.mark.parametrize(
    ("offset", "why"),
    [(1, "outside its table"), (5, "askew"), (8, "outside its table"), (60_000, "outside its table")],
)
def test_a_field_lies_inside_its_table_and_where_its_width_allows(offset: int, why: str) -> None:
    vtable = ack_body() - unpack_from("<i", ACK, ack_body())[0]
    with pytest.raises(Malformed, match="outside its table, across another field, or askew"):
        decode(changed(ACK, vtable + 4, "<H", offset))


def test_fields_do_not_overlap() -> None:
    payload = write(ErrorResponse(1, 2, "three", 4, 5))
    body = TableReader(payload).locate()[1]
    vtable = body - unpack_from("<i", payload, body)[0]
    second = unpack_from("<H", payload, vtable + 4)[0]
    with pytest.raises(Malformed, match="across another field"):
        decode(changed(payload, vtable + 6, "<H", second))


def test_a_table_is_no_larger_than_the_frame() -> None:
    vtable = ack_body() - unpack_from("<i", ACK, ack_body())[0]
    for size in (3, 0):
        with pytest.raises(Malformed, match="too short"):
            decode(changed(ACK, vtable + 2, "<H", size))
    with pytest.raises(Malformed, match="does not fit"):
        decode(changed(ACK, vtable + 2, "<H", 400))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("distance", "form", "value", "why"),
    [
        (-4, "<I", 2**32 - 1, "no end"),
        (-4, "<I", 4, "no end"),
        (-4, "<I", 8, "no end"),
        (0, "<B", 0xC3, "UTF-8"),
        (0, "<I", 0xA0EDA0ED, "UTF-8"),
        (5, "<B", 1, "no end"),
    ],
)
def test_a_string_ends_inside_the_frame_and_is_utf8(fast: bool, distance: int, form: str, value: int, why: str) -> None:
    message: Message = SendMessageRequest(1, 2, "hello") if fast else ErrorResponse(1, 2, "hello")
    payload = encode(message)
    assert decode(payload) == message
    with pytest.raises(Malformed, match=why):
        decode(changed(payload, payload.index(b"hello") + distance, form, value))


@pytest.mark.parametrize("count", [2**32 - 1, 2**30, 3, 2**31])
def test_a_vector_fits_into_the_frame(count: int) -> None:
    payload = write(CreateStringStorageRequest(strings=("a", "b")))
    at = payload.index(pack("<I", 2))
    with pytest.raises(Malformed):
        decode(changed(payload, at, "<I", count))


def test_samples_fit_into_the_frame() -> None:
    payload = hostile.body_with_vector(AudioBufferFrame, "pcm", 0, b"")
    with pytest.raises(Malformed, match="vector does not fit"):
        decode(changed(payload, len(payload) - 4, "<I", 1))


def test_a_union_needs_its_value() -> None:
    payload = write(ChangeAgentParamRequest(params=GenerateParams()))
    body = TableReader(payload).locate()[1]
    vtable = body - unpack_from("<i", payload, body)[0]
    with pytest.raises(Malformed, match="a tag and no value"):
        decode(changed(payload, vtable + 4 + 2 * 4, "<H", 0))
    without = decode(changed(payload, vtable + 4 + 2 * 3, "<H", 0))
    assert without == ChangeAgentParamRequest(), "a value without a tag is not looked at"


# What it costs.


@pytest.mark.parametrize(
    ("make", "refused"),
    [
        (lambda: hostile.same_string(500_000, 100_000), True),
        (lambda: hostile.same_string(3, 250_000), True),
        (hostile.same_wide_string, True),
        (hostile.same_table, True),
        (hostile.many_vtables, True),
        (hostile.tables_in_tables, True),
        (lambda: hostile.event_of_one_text(900_000, 16), True),
        (lambda: hostile.event_of_one_text(900_000, 5000), True),
        (lambda: hostile.same_string(1000, 100), True),
        (lambda: hostile.same_string(1000, 60), False),
        (lambda: hostile.event_of_one_text(1000, 16), False),
    ],
    ids=[
        "a long string", "a short string", "a wide string", "a table", "vtables", "tables in tables", "an event",
        "a long event", "a short frame", "a little", "a little event",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_however_offsets_alias_a_frame_costs_little(make: Callable[[], bytes], refused: bool) -> None:
    decode(encode(NodeEvent(1, "n", "t", (NodeEventKeyValue("k", "v"),))))  # so that its arrangement is known
    payload = make()
    assert len(payload) <= MAX_FRAME
    tracemalloc.start()
    try:
        if refused:
            with pytest.raises(Malformed, match=r"the same (things|text) too often"):
                decode(payload)
        else:
            decode(payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY


def test_strings_that_are_the_same_one_are_one_in_memory() -> None:
    found = decode(hostile.same_string(1000, 60))
    assert isinstance(found, CreateStringStorageRequest)
    assert found.strings == ("x" * 1000,) * 60
    assert len(set(map(id, found.strings))) == 1


def test_a_hostile_frame_is_refused_before_it_takes_long() -> None:
    for payload, seconds in ((hostile.same_table(), 2), (hostile.many_vtables(), 2), (hostile.tables_in_tables(), 0.2)):
        started = time.process_time()
        with pytest.raises(Malformed):
            decode(payload)
        assert time.process_time() - started < seconds


def test_a_frame_full_of_honest_strings_passes() -> None:
    message = CreateStringStorageRequest(strings=tuple(f"{number % 4096:03x}" for number in range(80_000)))
    assert decode(encode(message)) == message


# What is remembered.


def test_what_is_remembered_of_peers_is_bounded() -> None:
    kinds: tuple[type[Message], ...] = (ListModelsResponse, SendMessageRequest)
    for kind in kinds:
        for size in range(300):
            payload = arranged(kind, size)
            assert isinstance(decode(payload), kind)
        assert len(shape_of(kind).plans) <= MAX_PLANS
    assert len(codec_fast.PREFIXES) <= codec_fast.MAX_PREFIXES
    assert all(len(front) <= codec_fast.MAX_FRONT for front in codec_fast.PREFIXES)


def arranged(kind: type[Message], size: int) -> bytes:
    """A message without fields, whose table has a size of its own."""
    tag = BODIES.index(kind) + 1
    return pack("<IHHHHiIB3xHHi", 12, 8, 12, 8, 4, 8, 12, tag, 4, 4 + size, 4) + bytes(size)


def test_a_front_that_is_known_does_not_vouch_for_what_follows_it() -> None:
    payload = encode(AnswerText(1, 2, "known", True, True))
    assert decode(payload) == AnswerText(1, 2, "known", True, True)
    front = next(size for size in map(len, codec_fast.PREFIXES) if payload[:size] in codec_fast.PREFIXES)
    for size in range(front, len(payload) - 3):
        with pytest.raises(Malformed):
            decode(payload[:size])
    with pytest.raises(Malformed, match="outside the frame"):
        decode(changed(payload, front, "<I", 2**32 - 4))


def test_the_pairs_of_a_known_front_are_verified_as_any_other_table() -> None:
    event = NodeEvent(1, "n", "t", (NodeEventKeyValue("k", "v"), NodeEventKeyValue("l", "w")))
    payload = encode(event)
    assert decode(payload) == event
    pair = payload.index(pack("<HHHHi", 8, 12, 4, 8, 8)) + 8
    for vtable in range(-4, len(payload) + 4):
        moved = changed(payload, pair, "<i", pair - vtable)
        assert outcome(partial(decode, moved)) == outcome(TableReader(moved).message)
    with pytest.raises(Malformed):
        decode(changed(payload, pair, "<i", pair))
    swapped = changed(changed(payload, pair - 4, "<H", 8), pair - 2, "<H", 4)
    expected = NodeEvent(1, "n", "t", (NodeEventKeyValue("v", "k"), NodeEventKeyValue("w", "l")))
    assert decode(swapped) == TableReader(swapped).message() == expected


def outcome(read: Callable[[], Message]) -> str:
    """What comes of it."""
    try:
        return repr(read())
    except FrameError as error:
        return repr(error)


def test_long_names_and_many_events_are_not_remembered() -> None:
    before = len(codec_templates._EVENT_PLANS)
    long = NodeEvent(1, "n" * 100_000, "t")
    assert decode(encode(long)) == long
    assert len(codec_templates._EVENT_PLANS) == before
    for number in range(codec_templates.MAX_EVENTS + 10):
        encode(NodeEvent(1, f"node {number}", "t"))
    assert len(codec_templates._EVENT_PLANS) <= codec_templates.MAX_EVENTS
