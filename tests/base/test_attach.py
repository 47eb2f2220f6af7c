"""The words between an attached program and the exchange."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.base import attach
from trunkline.base.attach import AttachAnswer, AttachEnding, AttachHeader, BadAttachment, FrameReader


def test_headers_and_answers_come_back_as_they_were_sent() -> None:
    header = AttachHeader("agentproc", "a", dialect="0.4", turn={"message": "x\ny"})
    assert attach.decode_header(attach.encode(header)) == header
    answer = AttachAnswer("s", "a")
    assert attach.decode_answer(attach.encode(answer)) == answer


@given(st.lists(st.binary(max_size=50)), st.integers(1, 9))
def test_frames_come_apart_however_they_were_cut(pieces: list[bytes], size: int) -> None:
    sent = b"".join(map(attach.frames, pieces)) + attach.last_frame(AttachEnding(3, "why"))
    reader = FrameReader()
    found = b"".join(reader.feed(sent[start : start + size]) for start in range(0, len(sent), size))
    assert found == b"".join(pieces)
    assert reader.finish() == AttachEnding(3, "why")


def test_what_is_too_long_for_a_frame_goes_into_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "MAX_FRAME", 3)
    assert FrameReader().feed(attach.frames(b"12345678")) == b"12345678"


@given(st.binary(max_size=200))
def test_whatever_comes_is_understood_or_an_error(data: bytes) -> None:
    for decode in (attach.decode_header, attach.decode_answer, FrameReader().feed):
        try:
            decode(data)
        except BadAttachment:
            continue


def test_a_connection_that_ends_without_the_last_frame_was_broken() -> None:
    reader = FrameReader()
    reader.feed(attach.frames(b"abc"))
    assert reader.finish() is None
