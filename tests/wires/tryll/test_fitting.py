"""What does not fit into a frame."""

from __future__ import annotations

import json

import pytest

from trunkline.wires.tryll.codec import MAX_FRAME, Framer, Oversize, answer_frame, complete_frame, decode, encode, frame
from trunkline.wires.tryll.fitting import frames
from trunkline.wires.tryll.messages import (
    AnswerText,
    AudioBufferFrame,
    ErrorResponse,
    ListModelsResponse,
    Message,
    ModelInfo,
    NodeEvent,
    NodeEventKeyValue,
    TurnComplete,
    TurnStatus,
)


def sent(message: Message) -> list[Message]:
    """What a peer gets."""
    payloads = Framer().feed(b"".join(frames(message)))
    assert all(len(payload) <= MAX_FRAME for payload in payloads)
    return [decode(payload) for payload in payloads]


def test_what_fits_is_one_frame() -> None:
    assert frames(AnswerText(1, 2, "short")) == [frame(encode(AnswerText(1, 2, "short")))]


@pytest.mark.parametrize("character", ["x", "\N{GRINNING FACE}"])
def test_a_long_answer_becomes_deltas_and_only_the_last_is_final(character: str) -> None:
    text = character * 1_500_000
    found = sent(AnswerText(1, 2, text, is_delta=False, is_final=True))
    answers = [message for message in found if isinstance(message, AnswerText)]
    assert len(answers) == len(found) > 1
    assert "".join(answer.text for answer in answers) == text
    assert [answer.is_delta for answer in answers] == [False] + [True] * (len(found) - 1)
    assert [answer.is_final for answer in answers] == [False] * (len(found) - 1) + [True]
    assert {(answer.request_id, answer.agent_id) for answer in answers} == {(1, 2)}


def test_a_long_list_comes_in_several_and_all_but_the_last_say_so() -> None:
    models = tuple(ModelInfo(name=f"model {number}", local_path="x" * 500) for number in range(5000))
    found = [message for message in sent(ListModelsResponse(9, models)) if isinstance(message, ListModelsResponse)]
    assert tuple(model for message in found for model in message.models) == models
    assert [message.more for message in found] == [True] * (len(found) - 1) + [False]
    assert {message.request_id for message in found} == {9}


def test_diagnostics_that_do_not_fit_are_left_out() -> None:
    (found,) = sent(TurnComplete(1, 2, TurnStatus.ERROR, json.dumps({"prompt": "x" * MAX_FRAME}), 7))
    assert found == TurnComplete(1, 2, TurnStatus.ERROR, '{"truncated":true}', 7)


def test_other_texts_are_cut() -> None:
    (found,) = sent(ErrorResponse(1, 3003, "because " * 200_000))
    assert isinstance(found, ErrorResponse)
    assert found.code == 3003
    assert found.message.endswith("…")
    pairs = (NodeEventKeyValue("tool_name", "look"), NodeEventKeyValue("arguments_json", "x" * 1_500_000))
    (event,) = sent(NodeEvent(1, "node", "tool_call", pairs))
    assert isinstance(event, NodeEvent)
    assert event.kv_pairs[0] == pairs[0]
    assert event.kv_pairs[1].value.endswith("…")


def test_what_cannot_be_cut_is_a_defect() -> None:
    for message in (
        AudioBufferFrame(1, bytes(2 * MAX_FRAME)),
        NodeEvent(kv_pairs=(NodeEventKeyValue("k", "v"),) * 90_000),
    ):
        with pytest.raises(Oversize):
            frames(message)


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd", "grüß \N{GRINNING FACE}", "\ud800"])
def test_the_frames_that_a_server_writes_directly_are_those_of_the_messages(text: str) -> None:
    for is_delta, is_final in ((False, True), (True, False)):
        assert answer_frame(1, 2, text, is_delta, is_final) == frame(encode(AnswerText(1, 2, text, is_delta, is_final)))
    assert complete_frame(1, 2, TurnStatus.ERROR, text, 5, 6, 7) == frame(encode(TurnComplete(1, 2, 1, text, 5, 6, 7)))
