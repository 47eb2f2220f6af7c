"""An envelope as one JSON line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.core.event_strategies import envelopes
from trunkline.core import records
from trunkline.core.events import EVENTS, Envelope, Extension, Notice, TextDelta, ThinkingDelta, TurnEnded
from trunkline.core.usage import Usage

LINE = b'{"seq":7,"turn":2,"at":1763179200.125,"event":"TextDelta","data":{"text":"Hello"}}'


def test_the_form_of_a_line_is_as_documented() -> None:
    envelope = Envelope("s", 7, 2, 1763179200.125, TextDelta("Hello"))
    assert records.encode(envelope) == LINE
    assert records.decode("s", LINE) == envelope


@given(envelopes("s"))
def test_every_event_survives_the_way_to_its_line_and_back(found: list[Envelope]) -> None:
    for envelope in found:
        line = records.encode(envelope)
        assert b"\n" not in line
        assert line.startswith(b'{"seq":%d,' % envelope.seq)
        assert records.decode("s", line) == envelope


@pytest.mark.parametrize("kind", [TextDelta, ThinkingDelta])
@pytest.mark.parametrize("text", ["", "plain", '"\\', "\0\n\u2028", "é\U0001f600", "\ud800 \udfff"])
def test_the_short_way_for_text_writes_what_the_long_way_would(
    kind: type[TextDelta] | type[ThinkingDelta], text: str
) -> None:
    line = records.encode(Envelope("s", 1, 1, 1.5, kind(text)))
    assert json.loads(line) == {"seq": 1, "turn": 1, "at": 1.5, "event": kind.__name__, "data": {"text": text}}


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    assert len({kind.__name__ for kind in EVENTS}) == len(EVENTS)


def test_times_are_kept_to_the_millisecond() -> None:
    for event in (TextDelta("x"), Notice("x")):
        assert records.decode("s", records.encode(Envelope("s", 1, 1, 1.23456, event))).at == 1.235


@pytest.mark.parametrize("at", [1795954759.9975, 1796048066.4405, 1795507854.7885])
def test_a_time_between_two_milliseconds_is_the_same_one_before_and_after(at: float) -> None:
    for event in (TextDelta("x"), Notice("x")):
        kept = records.decode("s", records.encode(Envelope("s", 1, 1, at, event))).at
        assert round(kept * 1000) == round(at * 1000)


def test_usage_that_is_not_known_stays_unknown() -> None:
    for usage in (None, Usage(), Usage(input_tokens=0), Usage(1, 2, 3, 4)):
        line = records.encode(Envelope("s", 1, 1, 1.0, TurnEnded("success", usage)))
        assert records.decode("s", line).event == TurnEnded("success", usage)


def test_an_event_of_a_newer_version_is_read_as_an_extension() -> None:
    line = LINE.replace(b"TextDelta", b"Telepathy").replace(b'"turn"', b'"colour":"red","turn"')
    assert records.decode("s", line).event == Extension("unknown.Telepathy", {"text": "Hello"})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        LINE[:-1],
        LINE + b"}",
        LINE.replace(b'"seq":7,', b""),
        LINE.replace(b'"seq":7', b'"seq":null'),
        LINE.replace(b'"at":1763179200.125', b'"at":[]'),
        LINE.replace(b'"TextDelta"', b"[]"),
        LINE.replace(b'"TextDelta"', b"{}"),
        LINE.replace(b'"Hello"', b"7"),
        LINE.replace(b'{"text":"Hello"}', b"null"),
        LINE.replace(b"Hello", b"\xff"),
    ],
)
def test_what_is_no_record_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        records.decode("s", line)


SHARED = b'{"seq":9,"turn":2,"at":1.500,"event":"TextDelta","data":{"text":"Hello, you","parts":[5,2,3]}}'


def test_deltas_that_share_a_line_come_back_one_by_one() -> None:
    deltas = [Envelope("s", seq, 2, 1.5, TextDelta(text)) for seq, text in ((7, "Hello"), (8, ", "), (9, "you"))]
    assert records.encode_deltas(deltas) == [SHARED]
    assert list(records.decode_all("s", SHARED)) == deltas
    assert records.decode("s", SHARED) == Envelope("s", 9, 2, 1.5, TextDelta("Hello, you"))


@pytest.mark.parametrize(
    "parts",
    [b"[]", b"[10,-1,1]", b"[5,2,2]", b"[5,2,4]", b"[5.0,2,3]", b"[true,6,3]", b"{}", b"5", b'["x"]', b"null",
     b"[1,1,1,1,1,1,1,1,1,1]"],
)  # fmt: skip
def test_parts_that_are_not_those_of_the_text_are_an_error(parts: bytes) -> None:
    with pytest.raises(ValueError, match="parts"):
        records.decode_all("s", SHARED.replace(b"[5,2,3]", parts))


def test_a_member_of_that_name_means_nothing_elsewhere() -> None:
    line = b'{"seq":9,"turn":2,"at":1.5,"event":"Notice","data":{"message":"m","parts":[5]}}'
    assert list(records.decode_all("s", line)) == [Envelope("s", 9, 2, 1.5, Notice("m"))]
