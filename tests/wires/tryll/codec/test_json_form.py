"""Messages as JSON: the same as in frames, whoever reads or writes them, and nothing that a frame could not hold."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from tests.support import flatc
from tests.wires.tryll.samples import ALL, GREATEST, named
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME, FrameError, Malformed, Oversize, UnknownKind, json_form
from trunkline.wires.tryll.codec import decode as decode_frame
from trunkline.wires.tryll.codec import encode as encode_frame
from trunkline.wires.tryll.codec.enumerations import FIELDS, NAMES
from trunkline.wires.tryll.codec.json_form import MAX_VALUES, TYPE, decode, encode
from trunkline.wires.tryll.codec.shapes import UNIONS, shape_named, shape_of
from trunkline.wires.tryll.fitting import payloads

PLAIN = re.sub(r"//.*", "", flatc.SCHEMA.read_text(encoding="utf-8"))


def read(**members: Any) -> m.Message:
    return decode(json.dumps(members).encode())


def wrong(text: bytes | str) -> FrameError:
    with pytest.raises(FrameError) as caught:
        decode(text if isinstance(text, bytes) else text.encode())
    return caught.value


# Both ways.


@pytest.mark.parametrize("message", ALL, ids=named)
def test_a_message_is_the_same_in_both_forms(message: m.Message) -> None:
    text = encode(message)
    assert decode(text) == decode_frame(encode_frame(message)) == message
    assert b"\n" not in text
    assert json.loads(text)[TYPE] == type(message).__name__
    # A text for people, with the schema's fields in their order.
    names = [field.name for field in shape_of(type(message)).fields if getattr(message, field.name) is not None]
    assert list(json.loads(text)) == [TYPE, *names]


@pytest.mark.parametrize("message", ALL, ids=named)
def test_an_object_is_the_same_message_with_all_its_fields_or_with_few(message: m.Message) -> None:
    whole, brief = json_form.full(message), json_form.brief(message)
    assert list(whole) == [TYPE, *(field.name for field in shape_of(type(message)).fields)]
    assert {name for name, value in whole.items() if value is not None} >= brief.keys()
    for found in (whole, brief):
        assert json.loads(json.dumps(found)) == found
        assert decode(json.dumps(found).encode()) == message


def test_what_is_not_null_is_written_and_what_is_absent_or_null_is_the_default() -> None:
    assert encode(m.AnswerText(1, 2)) == (
        b'{"type":"AnswerText","request_id":1,"agent_id":2,"text":"","is_delta":false,"is_final":false}'
    )
    params = m.GenerateParams(system_prompt="Be brief.")
    written = json.loads(encode(m.ChangeAgentParamRequest(1, 2, "say", params)))["params"]
    assert written == {
        "type": "GenerateParams",
        "system_prompt": "Be brief.",
        "placement": "BeforeUserAsSystem",
        "stream": False,
    }
    assert read(type="BeginUtteranceRequest") == m.BeginUtteranceRequest()
    assert read(type="BeginUtteranceRequest", auto_finish_on_silence=None) == m.BeginUtteranceRequest()
    assert read(type="CreateAgentRequest", graph=None) == m.CreateAgentRequest()


def test_enumerations_are_names_and_may_be_numbers() -> None:
    assert json.loads(encode(m.TurnComplete(status=m.TurnStatus.CANCELLED)))["status"] == "Cancelled"
    # One that is newer than we are.
    assert json.loads(encode(m.TurnComplete(status=77)))["status"] == 77
    for given in ("OnnxGenAI", 2, 2.0):
        assert read(type="ConfigureSessionRequest", stt_engine=given) == m.ConfigureSessionRequest(stt_engine=2)
    assert read(type="ConfigureSessionRequest", stt_engine=200) == m.ConfigureSessionRequest(stt_engine=200)
    error = wrong('{"type":"ConfigureSessionRequest","request_id":4,"stt_engine":"onnxgenai"}')
    assert isinstance(error, Malformed)
    assert error.request_id == 4
    assert "`stt_engine` is not one of Mock, LlamaCpp, OnnxGenAI" in str(error)


def test_the_enumerations_are_those_of_the_schema() -> None:
    declared = {
        name: tuple(re.findall(r"(\w+) =", body))
        for name, body in re.findall(r"enum (\w+) : ubyte \{(.*?)\}", PLAIN, re.DOTALL)
    }
    assert {name: declared[name] for name in NAMES} == NAMES
    found: dict[type, dict[str, str]] = {}
    for table, body in re.findall(r"table (\w+) \{(.*?)\}", PLAIN, re.DOTALL):
        for field, kind in re.findall(r"(\w+):(?:Tryll\.)?(\w+)", body):
            if kind in declared:
                found.setdefault(shape_named(table).type, {})[field] = kind
    assert found == FIELDS


def test_no_member_of_a_union_has_a_field_of_the_name_that_tells_what_it_is() -> None:
    for members in UNIONS.values():
        for kind in members:
            assert TYPE not in kind.__fields__


def test_numbers_may_come_from_those_who_have_only_some_kinds_of_them() -> None:
    widest = GREATEST["Q"]
    assert isinstance(widest, int)
    for given, taken in ((7, 7), (7.0, 7), ("7", 7), (str(widest), widest), (widest, widest), (2.0**53, 2**53)):
        assert read(type="Ack", request_id=given) == m.Ack(taken)
    texts = ("-1", "7.0", "", "٧", "0x7", "1" * 21)
    wrong_ones: tuple[object, ...] = (-1, widest + 1, 7.5, 2.0**64, -(2.0**60), *texts, True, [], {})
    for wrong_one in wrong_ones:
        assert "is not a whole number from 0 to 18446744073709551615" in str(
            wrong(json.dumps({"type": "Ack", "request_id": wrong_one}))
        )
    for rounded in ("9007199254740994.0", "1e18", "18446744073709549568.0"):
        said = str(wrong(f'{{"type":"Ack","request_id":{rounded}}}'))
        assert said.startswith("`request_id` is greater than 9007199254740992 and has a point or an exponent")
    # Only wide numbers need to be texts.
    assert "`max_steps_per_turn`" in str(wrong('{"type":"CreateAgentRequest","max_steps_per_turn":"3"}'))
    for field, given in (("channels", 65536), ("sample_rate", -1), ("sample_rate", 2**32)):
        assert f"`{field}` is not a whole number" in str(
            wrong(json.dumps({"type": "CreateVoiceInputRequest", field: given}))
        )


def test_a_float_is_what_a_frame_would_make_of_it() -> None:
    for given in (0.15, 1, 1e-46, 3.4028235e38):
        message = read(type="CreateVoiceInputRequest", vad_threshold=given)
        assert message == decode_frame(encode_frame(m.CreateVoiceInputRequest(vad_threshold=given)))
    for text in (b"3.5e38", b"-3.5e38", b"1e308", b"1" + b"0" * 400, b'"0.5"', b"true"):
        assert isinstance(wrong(b'{"type":"CreateVoiceInputRequest","vad_threshold":' + text + b"}"), Malformed)


def test_sound_is_base64() -> None:
    pcm = bytes(range(256))
    text = encode(m.TtsAudioFrame(3, pcm))
    assert json.loads(text)["pcm"] == base64.b64encode(pcm).decode()
    assert decode(text) == m.TtsAudioFrame(3, pcm)
    for given in ("AAA", "AA==", "AAE=\n", "AA-_", "ÄÄÄÄ", 5, [0, 0]):
        assert "`pcm` " in str(wrong(json.dumps({"type": "AudioBufferFrame", "pcm": given})))


def test_halves_of_characters_are_replaced_as_in_a_frame() -> None:
    message = decode(b'{"type":"SendMessageRequest","text":"a\\ud800b\\ud83d\\ude00"}')
    assert message == m.SendMessageRequest(text="a\N{REPLACEMENT CHARACTER}b\N{GRINNING FACE}")
    assert message == decode_frame(encode_frame(message))


# What is no message.


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"1", b"null", b'"text"', b"\xff", b'{"type":"Ack"} {}', b'{"type":"Ack","request_id":NaN}',
        b'{"type":"Ack","type":"Ack"}', b'{"type":"SendMessageRequest","text":"\xff"}', b'{"type":"Ack",}',
        b'{"type":"Ack","request_id":' + b"9" * 5000 + b"}", b'{"type":"SendMessageRequest","text":"\x00"}',
    ],
)  # fmt: skip
def test_what_is_no_object_in_json_is_no_message(text: bytes) -> None:
    assert isinstance(wrong(text), Malformed)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"request_id":5}', "has no `type`"),
        ('{"type":null,"request_id":5}', "has no `type`"),
        ('{"type":7,"request_id":5}', "`type` is not a text"),
        ('{"type":"HealthRequest","request_id":5,"colour":1}', "`colour` is nothing that a `HealthRequest` has"),
        ('{"type":"SendMessageRequest","request_id":5,"text":7}', "`text` is not a text"),
        ('{"type":"CreateAgentRequest","request_id":5,"enable_diagnostics":1}', "`enable_diagnostics` is neither true"),
        ('{"type":"CreateAgentRequest","request_id":5,"graph":[]}', "`graph` is not an object"),
        ('{"type":"CreateAgentRequest","request_id":5,"graph":{"nodes":{}}}', "`graph.nodes` is not a list"),
        (
            '{"type":"CreateAgentRequest","request_id":5,"graph":{"nodes":[{},{"params":{"type":"ToolCallParams","tools":[{"parameters":[{"kind":1}]}]}}]}}',
            "`graph.nodes[1].params.tools[0].parameters[0].kind` is nothing that a `ToolParamDefinition` has",
        ),
        ('{"type":"CreateAgentRequest","request_id":5,"graph":{"nodes":[{"params":{}}]}}', "`graph.nodes[0].params` "),
        ('{"type":"CreateStringStorageRequest","request_id":5,"strings":["a",null]}', "`strings[1]` is not a text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place_and_with_the_request(text: str, told: str) -> None:
    error = wrong(text)
    assert isinstance(error, Malformed)
    assert told in str(error)
    assert error.request_id == 5


def test_what_nobody_knows_is_told_as_such() -> None:
    for text, told in (
        ('{"type":"TeleportRequest","request_id":6}', "there is no message `TeleportRequest`"),
        ('{"type":"ack","request_id":6}', "there is no message `ack`"),
        (
            '{"type":"ChangeAgentParamRequest","request_id":6,"params":{"type":"PaintParams"}}',
            "there is no node with `PaintParams`",
        ),
    ):
        error = wrong(text)
        assert isinstance(error, UnknownKind)
        assert told in str(error)
        assert error.request_id == 6


def test_a_name_that_nobody_knows_is_repeated_in_part_and_visibly() -> None:
    told = str(wrong(json.dumps({"type": "Ack", "\x1b[31m\n" + "x" * 100_000: 1})))
    assert len(told) < 200
    assert "\n" not in told
    assert "\x1b" not in told
    assert len(str(wrong(json.dumps({"type": "y" * 100_000})))) < 200


def test_the_request_is_only_told_where_the_message_has_one() -> None:
    assert wrong('{"type":"NodeEvent","request_id":9}').request_id == 0
    assert wrong('{"type":"HealthRequest","request_id":-9}').request_id == 0
    assert wrong('{"type":"Nonsense","request_id":"9"}').request_id == 9


# Limits.


def test_a_message_has_so_many_members_and_items_and_no_more() -> None:
    def many(count: int) -> bytes:
        return b'{"type":"CreateStringStorageRequest","strings":[' + b",".join([b'""'] * count) + b"]}"

    fits = MAX_VALUES - 3
    message = decode(many(fits))
    assert isinstance(message, m.CreateStringStorageRequest)
    assert len(message.strings) == fits
    assert f"more than {MAX_VALUES} members and items" in str(wrong(many(MAX_VALUES + 1)))
    # In whatever they are: what holds nothing is something, too.
    assert isinstance(
        wrong(b'{"type":"NodeEvent","kv_pairs":[' + b",".join([b"{}"] * (MAX_VALUES // 2 + 1)) + b"]}"), Malformed
    )


def test_what_is_nested_too_deep_is_refused_before_it_is_parsed() -> None:
    for depth in (json_form.MAX_DEPTH, json_form.MAX_DEPTH + 1, 200_000):
        assert isinstance(wrong(b'{"type":"Ack","x":' + b"[" * depth), Malformed)
    assert "nested deeper than 16 levels" in str(wrong(b'{"type":"Ack","x":' + b"[" * 16 + b"]" * 16 + b"}"))


def test_no_text_is_longer_than_a_frame() -> None:
    bare = len(encode(m.AnswerText()))
    assert len(encode(m.AnswerText(text="x" * (MAX_FRAME - bare)))) == MAX_FRAME
    with pytest.raises(Oversize):
        encode(m.AnswerText(text="x" * (MAX_FRAME - bare + 1)))


@pytest.mark.parametrize("character", ["x", "\x01", '"', "\N{GRINNING FACE}"])
def test_what_fits_into_a_frame_and_not_into_a_text_comes_in_several(character: str) -> None:
    text = character * (240_000 if character == "\x01" else 262_000)
    assert len(encode_frame(m.AnswerText(1, 2, text))) <= MAX_FRAME
    parts = [decode(each) for each in payloads(m.AnswerText(1, 2, text, False, True), encode)]
    answers = [part for part in parts if isinstance(part, m.AnswerText)]
    assert "".join(answer.text for answer in answers) == text
    assert [answer.is_delta for answer in answers] == [False] + [True] * (len(parts) - 1)
    assert [answer.is_final for answer in answers] == [False] * (len(parts) - 1) + [True]
    (said,) = payloads(m.ErrorResponse(1, 3003, "\x01" * 262_000), encode)
    assert len(said) <= MAX_FRAME
