"""The same bytes, understood by the code that `flatc` generates."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import require
from tests.wires.tryll.samples import ALL, FULL, named
from trunkline.base.values import Value
from trunkline.wires.tryll.codec import Framer, decode, encode
from trunkline.wires.tryll.codec.fast import PREFIXES, forget
from trunkline.wires.tryll.codec.reader import shortest
from trunkline.wires.tryll.codec.writer import write
from trunkline.wires.tryll.messages import AnswerText, Message, NodeEvent, NodeEventKeyValue, SendMessageRequest


@pytest.fixture
def foreign() -> Any:
    """What writes and reads frames with the generated code."""
    require(
        "flatbuffers", find_spec("flatbuffers") is not None, "pip install flatbuffers, which the extra `dev` brings"
    )
    return importlib.import_module("tests.wires.tryll.foreign")


def rounded(value: Any) -> Any:
    """The same with its floats as we read them."""
    if isinstance(value, float):
        return shortest(value)
    if isinstance(value, tuple):
        return tuple(map(rounded, value))
    if isinstance(value, Value):
        return type(value)(*(rounded(getattr(value, field)) for field in value.__fields__))
    return value


@pytest.mark.parametrize("message", ALL, ids=named)
def test_generated_code_reads_what_we_write(message: Message, foreign: Any) -> None:
    assert rounded(foreign.read(encode(message))) == message
    assert rounded(foreign.read(write(message))) == message


@pytest.mark.parametrize("message", ALL, ids=named)
def test_we_read_what_generated_code_writes(message: Message, foreign: Any) -> None:
    payload = foreign.build(message)
    assert decode(payload) == message
    assert decode(payload) == message, "once its arrangement is known"


@pytest.mark.parametrize("message", FULL, ids=named)
def test_we_read_what_a_builder_writes_that_counts_its_own_prefix(message: Message, foreign: Any) -> None:
    (payload,) = Framer().feed(foreign.build_with_prefix(message))
    assert decode(payload) == message
    assert decode(payload) == message


def test_fields_of_a_newer_peer_are_passed_over(foreign: Any) -> None:
    builder = foreign.flatbuffers.Builder(0)
    text = builder.CreateString("what we know")
    more = builder.CreateString("what we do not know yet")
    builder.StartObject(40)
    foreign.generated.SendMessageRequestAddRequestId(builder, 7)
    foreign.generated.SendMessageRequestAddText(builder, text)
    builder.PrependUOffsetTRelativeSlot(20, more, 0)
    builder.PrependUint64Slot(39, 1, 0)
    body = builder.EndObject()
    builder.StartObject(5)
    builder.PrependUint8Slot(0, 6, 0)
    builder.PrependUOffsetTRelativeSlot(1, body, 0)
    builder.PrependUint32Slot(4, 99, 0)
    builder.Finish(builder.EndObject())
    payload = bytes(builder.Output())
    for _ in range(2):
        assert decode(payload) == SendMessageRequest(request_id=7, text="what we know")


def test_each_arrangement_of_a_turn_is_learned_once_and_read_alike(foreign: Any) -> None:
    forget()
    texts = ("", "a", "ab", "abc", "abcd", "\N{GRINNING FACE}" * 100)
    flags = [(is_delta, is_final) for is_delta in (False, True) for is_final in (False, True)]
    answers = [AnswerText(7, 3, text, *each) for text in texts for each in flags]
    for _ in range(2):
        for answer in answers:
            assert decode(foreign.build(answer)) == answer
    # Absent flags make four arrangements; how the root is aligned, by the text's length, makes a few more.
    assert 4 <= len(PREFIXES) <= 16


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 40])
def test_an_event_can_have_any_number_of_pairs(count: int, foreign: Any) -> None:
    pairs = tuple(NodeEventKeyValue(f"key {number}", "value" * number) for number in range(count))
    event = NodeEvent(9, "node", "tool_call", pairs)
    assert foreign.read(encode(event)) == event
    for payload in (encode(event), foreign.build(event)):
        assert decode(payload) == event
        assert decode(payload) == event
