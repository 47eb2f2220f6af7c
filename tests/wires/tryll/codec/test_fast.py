"""The short cuts for the frames of a turn: what comes of them is what comes of the long way."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack, unpack_from

import pytest

from trunkline.wires.tryll.codec import Malformed, answer_frame, complete_frame, decode, encode, frame
from trunkline.wires.tryll.codec.fast import PREFIXES, forget
from trunkline.wires.tryll.codec.reader import TableReader
from trunkline.wires.tryll.codec.templates import SHORT
from trunkline.wires.tryll.messages import AnswerText, Message, SendMessageRequest, TurnComplete, TurnStatus

MESSAGES: tuple[Message, ...] = (
    SendMessageRequest(7, 3, "text"),
    AnswerText(7, 3, "text", True, False),
    TurnComplete(7, 3, TurnStatus.ERROR, "text", 1, 2, 3),
)


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    forget()
    yield
    forget()


def moved(payload: bytes, by: int) -> bytes:
    """The same message, its text so many bytes further behind."""
    _, body = TableReader(payload).locate()
    # The offset of the text is the first field in our frames.
    (offset,) = unpack_from("<I", payload, body + 4)
    start = body + 4 + offset
    return payload[: body + 4] + pack("<I", offset + by) + payload[body + 8 : start] + bytes(by) + payload[start:]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("order", [(0, 4, 8, 0), (4, 0, 4), (400, 0, 8)], ids=str)
def test_a_text_is_found_wherever_it_was_the_last_time(message: Message, order: tuple[int, ...]) -> None:
    for by in order:
        assert decode(moved(encode(message), by)) == message
    assert len(PREFIXES) == 1


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("by", [0, 8])
def test_a_known_front_does_not_make_a_bad_text_good(message: Message, by: int) -> None:
    good = encode(message)
    payload = moved(good, by)
    assert decode(good) == message
    end = payload.rindex(b"text") + 4
    for bad, reason in (
        (payload[:end] + b"x" + payload[end + 1 :], "has no end"),
        (payload[:end], "has no end"),
        (payload[: end - 4] + b"te\xff\xfe" + payload[end:], "not UTF-8"),
        (payload[: end - 8] + pack("<I", 2**32 - 1) + payload[end - 4 :], "outside the frame"),
    ):
        with pytest.raises(Malformed, match=reason) as short:
            decode(bad)
        with pytest.raises(Malformed) as long:
            TableReader(bad).message()
        assert str(short.value) == str(long.value)


def test_a_known_frame_is_not_read_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    for message in MESSAGES:
        decode(encode(message))
    monkeypatch.setattr(TableReader, "message", lambda self: None)
    # Whichever came before it: the fronts have several lengths.
    for message in (*MESSAGES, *reversed(MESSAGES), *MESSAGES):
        assert decode(encode(message)) == message


def test_what_was_forgotten_goes_the_long_way_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decode(encode(MESSAGES[0]))
    forget()
    monkeypatch.setattr(TableReader, "message", lambda self: None)
    assert decode(encode(MESSAGES[0])) is None


@pytest.mark.parametrize("size", [*range(9), SHORT - 2, SHORT - 1, SHORT, SHORT + 1, 5000])
@pytest.mark.parametrize("letter", ["x", "ä", "\ud800"], ids=["one byte", "two bytes", "half a character"])
def test_a_whole_frame_is_the_same_as_one_that_is_put_together(size: int, letter: str) -> None:
    text = letter * size
    assert answer_frame(1, 2, text, True) == frame(encode(AnswerText(1, 2, text, True)))
    assert complete_frame(1, 2, 1, text, 5, 6, 7) == frame(encode(TurnComplete(1, 2, 1, text, 5, 6, 7)))
