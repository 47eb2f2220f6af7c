from __future__ import annotations

import pytest

from trunkline.models.voice import frames
from trunkline.models.voice.moonshine import read_words
from trunkline.models.voice.speakable import MAX_CHARS, MAX_WORD, pieces, seconds


def test_frames_come_out_as_they_went_in_however_they_are_cut() -> None:
    sent = frames.record(frames.SAY, id=1, text="h\ud800\u00e9") + frames.frame(frames.SOUND, b"") * 2
    sent += frames.frame(frames.SOUND, b"\0" * 1000)
    whole = list(frames.Frames().feed(sent))
    assert [kind for kind, _ in whole] == [frames.SAY, frames.SOUND, frames.SOUND, frames.SOUND]
    for size in (1, 3, 7, 400):
        cut = frames.Frames()
        assert [each for begin in range(0, len(sent), size) for each in cut.feed(sent[begin : begin + size])] == whole


def test_a_frame_that_is_too_long_is_refused_by_its_head() -> None:
    with pytest.raises(ValueError, match="bytes"):
        list(frames.Frames().feed((frames.MAX_BYTES + 1).to_bytes(4, "little") + b"a"))


def test_short_texts_are_one_piece_and_long_ones_are_split_where_one_breathes() -> None:
    assert list(pieces("  Hello\n\tthere.\0 ")) == ["Hello there."]
    sentence = "The traders come with salt, iron and stories from the coast."
    split = list(pieces(" ".join([sentence] * 10)))
    assert all(len(piece) <= MAX_CHARS and piece.endswith("coast.") for piece in split)
    assert " ".join(split) == " ".join([sentence] * 10)
    commas = list(pieces("word after word, " * 40))
    assert all(piece.endswith(",") for piece in commas[:-1])
    assert list(pieces("x" * 200)) == ["x" * 80 + " " + "x" * 80 + " " + "x" * 40]


@pytest.mark.parametrize(
    "text",
    ["very " * 45 + "long.", "WXYZ " * 48, "7,777,777 " * 24, "a%" * 120, "\u4e2d" * 240, "\u0645\u0631\u062d " * 60],
)
@pytest.mark.parametrize("speed", [0.1, 0.25, 0.5, 1.0, 3.0])
def test_no_piece_takes_longer_than_usual_speech_however_slowly_it_is_said(text: str, speed: float) -> None:
    split = list(pieces(text, speed))
    longest = seconds("x" * MAX_CHARS, 1.0)
    # One word may take longer, if it is said very slowly.
    assert max(seconds(piece, speed) for piece in split) <= (longest if speed >= 0.25 else 2.1 * longest)
    assert [each for each in "".join(split) if each.isalnum()] == [each for each in text if each.isalnum()]


def test_slow_speech_is_split_between_words_and_numbers_stay_whole() -> None:
    text = "I owe an uncharacteristically generous innkeeper 12,345 pieces of gold, and 7 of silver."
    words = text.split()
    for speed in (0.1, 0.2, 0.4):
        assert [word for piece in pieces(text, speed) for word in piece.split()] == words
    assert len(list(pieces(text, 0.1))) > len(list(pieces(text, 0.4))) > 1
    assert list(pieces(text, 1.0)) == [text]


def test_words_without_an_end_are_taken_apart() -> None:
    for text in ("a." * 1000, "\u4e2d" * 1000):
        assert all(len(word) <= MAX_WORD for piece in pieces(text) for word in piece.split())


@pytest.mark.parametrize("text", ["", " ", "...", "?!", "\ud800", "\0\x1b", "\N{SNOWMAN}"])
def test_what_cannot_be_said_is_no_piece(text: str) -> None:
    assert list(pieces(text)) == []


def test_the_words_of_moonshine_are_read_and_a_broken_file_is_refused() -> None:
    long = bytes(range(256)) * 2
    data = b"\x05<unk>" + b"\x00" + bytes([128 + 512 % 128, 512 // 128]) + long
    assert read_words(data) == [b"<unk>", b"", long]
    for broken in (b"\x05ab", b"\x81"):
        with pytest.raises(ValueError, match="word"):
            read_words(broken)
