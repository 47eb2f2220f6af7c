"""Sentences out of a stream, what is said of them, and how they are said while others are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_voice import FakeVoice
from trunkline.agents.graph.sentences import FIRST_CHARS, Sentence, Sentences, aloud
from trunkline.agents.graph.speaking import Mouth, merged
from trunkline.agents.graph.turn import AnswerSound, AnswerTiming, GraphTurn
from trunkline.core.faults import Fault
from trunkline.models.voice.speakable import MAX_CHARS


def cut(pieces: Iterable[str], least: int = 1) -> list[Sentence]:
    sentences = Sentences(least)
    found = [sentence for piece in pieces for sentence in sentences.feed(piece)]
    return [*found, *sentences.rest()]


def texts(text: str, least: int = 1) -> list[str]:
    return [sentence.text.strip() for sentence in cut([text], least)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One two. Three four! Five? Six\u2026 Seven.", ["One two.", "Three four!", "Five?", "Six\u2026", "Seven."]),
        ("all in small letters. as some do. yes.", ["all in small letters.", "as some do.", "yes."]),
        ('"Who goes there?" she said. "Me."', ['"Who goes there?"', "she said.", '"Me."']),
        ("Really?! Oh... Well.", ["Really?!", "Oh...", "Well."]),
        ("a line\nanother\n\nthe last", ["a line", "another", "the last"]),
        ("It costs 3.50 or 1,000.25 crowns. Pay.", ["It costs 3.50 or 1,000.25 crowns.", "Pay."]),
        ("See example.com/a.b for it. Go.", ["See example.com/a.b for it.", "Go."]),
        ("Dr. Grey met Mrs. Ash, e.g. at noon. Ha.", ["Dr. Grey met Mrs. Ash, e.g. at noon.", "Ha."]),
        ("J. R. Smith vs. the U.S. army. So it was.", ["J. R. Smith vs. the U.S. army.", "So it was."]),
        ("So do I. And you?", ["So do I.", "And you?"]),
        ("It was 1999. Then 2000.", ["It was 1999.", "Then 2000."]),
        ("1. Buy bread\n2. Eat it", ["1. Buy bread", "2. Eat it"]),
        ("\u4f60\u597d\u3002\u518d\u89c1\uff01", ["\u4f60\u597d\u3002", "\u518d\u89c1\uff01"]),
        ("", []),
    ],
)
def test_a_sentence_ends_where_a_reader_would_stop(text: str, sentences: list[str]) -> None:
    assert texts(text) == sentences


def test_a_sentence_is_there_as_soon_as_the_next_one_begins() -> None:
    sentences = Sentences(1)
    assert list(sentences.feed("It is five")) == []
    # Perhaps it goes on: 5.30.
    assert list(sentences.feed(".")) == []
    assert [each.text for each in sentences.feed(" Go")] == ["It is five. "]
    assert [each.text for each in sentences.rest()] == ["Go"]
    assert list(sentences.rest()) == []


def test_short_sentences_are_said_together_with_the_next() -> None:
    text = "Hi. Well met. How are you today? Fine."
    assert texts(text, 12) == ["Hi. Well met.", "How are you today?", "Fine."]
    assert texts(text, 10_000) == [text]


def test_a_long_sentence_is_parted_where_it_breathes_and_the_first_one_early() -> None:
    clause = "and then the river went around another hill, "
    parts = texts(clause * 20)
    assert all(part.endswith(",") for part in parts)
    assert len(parts[0]) <= FIRST_CHARS
    assert all(MAX_CHARS // 3 <= len(part) <= MAX_CHARS for part in parts[1:-1])
    assert [len(part) for part in texts("x" * 500)] == [FIRST_CHARS, MAX_CHARS, 500 - FIRST_CHARS - MAX_CHARS]


@given(st.text(alphabet='aB1 .!?\n,`*\u2026\u3002"', max_size=600), st.integers(1, 30), st.integers(1, 40))
def test_all_sentences_together_are_the_text_however_it_comes(text: str, step: int, least: int) -> None:
    whole = cut([text], least)
    assert "".join(each.text for each in whole) == text
    assert all(len(each.text) <= MAX_CHARS for each in whole)
    in_pieces = cut([text[at : at + step] for at in range(0, len(text), step)], least)
    assert "".join(each.text for each in in_pieces) == text


@pytest.mark.parametrize("unit", ["word ", ".", "x", "a. ", "`", "[", "\n", "*", "```", "(]"])
def test_a_text_of_any_kind_takes_little_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    before = process_time()
    assert "".join(each.text for each in cut([text], 12)) == text
    assert process_time() - before < 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("**Be** *very* __careful__, _please_.", "Be very careful, please."),
        ("## The plan\n", "The plan"),
        ("- bread\n* salt\n> so they say", "bread salt so they say"),
        ("Run `make all` now.", "Run make all now."),
        ("See [the map](http://example.com/m?x=1) and ![a hill](h.png).", "See the map and a hill."),
        ("2 * 3 is 6, and snake_case stays.", "2 * 3 is 6, and snake_case stays."),
        ("Hello \U0001f600\u2764\ufe0f there", "Hello there"),
        ('(**bold**) and "*so*"', '(bold) and "so"'),
        ("***", ""),
        ("---\n", ""),
        (" \n ", ""),
    ],
)
def test_marks_for_the_eye_are_not_said(text: str, said: str) -> None:
    assert aloud(text) == said


def test_code_is_not_said() -> None:
    text = "Here is how it goes:\n```python\nprint(1)\nfor x in y: pass\n```\nThat is all of it.\n"
    for step in (1, 7, len(text)):
        pieces = [text[at : at + step] for at in range(0, len(text), step)]
        said = [each.spoken for each in cut(pieces, 12) if each.spoken]
        assert said == ["Here is how it goes:", "That is all of it."]


# Saying them.


async def said(mouth: Mouth, *sentences: Sentence) -> list[AnswerSound | AnswerTiming | Sentence]:
    waiting: asyncio.Queue[Sentence | None] = asyncio.Queue()
    for sentence in (*sentences, None):
        waiting.put_nowait(sentence)
    return [event async for event in mouth.say_each(waiting)]


async def test_each_sentence_is_followed_by_itself_when_its_sound_is_complete() -> None:
    voice = FakeVoice(piece=3)
    one, mute, two = Sentence("One. ", "One."), Sentence("*** ", ""), Sentence("Two.", "Two.")
    events = await said(Mouth(voice, GraphTurn(""), speaker=3, speed=0.5), one, mute, two)
    assert voice.asked == [("One.", 3, 0.5), ("Two.", 3, 0.5)]
    sound: list[bytes] = [b""]
    order = []
    for event in events:
        if isinstance(event, AnswerSound):
            # Never half a sample, whatever the voice gives.
            assert event.pcm
            assert not len(event.pcm) % 2
            sound[-1] += event.pcm
        else:
            order.append(event)
            sound.append(b"")
    assert order == [one, mute, two]
    assert sound == [voice.sound(0), b"", voice.sound(1), b""]


async def test_a_turn_has_one_sample_rate() -> None:
    turn = GraphTurn("")
    await said(Mouth(FakeVoice(), turn, speaker=0, speed=1.0), Sentence("One.", "One."))
    assert turn.sample_rate == 16_000
    with pytest.raises(Fault, match="8000 Hz"):
        await said(Mouth(FakeVoice(sample_rate=8000), turn, speaker=0, speed=1.0), Sentence("Two.", "Two."))


class Source:
    """Gives numbers, and knows whether it was closed."""

    def __init__(self, numbers: Iterable[int], error: BaseException | None = None, wait: bool = False) -> None:
        self.given = 0
        self.closed = False
        self._numbers, self._error, self._wait = numbers, error, wait

    async def run(self) -> AsyncGenerator[int, None]:
        try:
            for number in self._numbers:
                self.given += 1
                yield number
            if self._wait:
                await asyncio.Event().wait()
            if self._error is not None:
                raise self._error
        finally:
            self.closed = True


async def test_what_several_sources_give_comes_in_the_order_of_each() -> None:
    one, two = Source(range(100)), Source(range(100, 200))
    found = [number async for number in merged(one.run(), two.run())]
    assert [number for number in found if number < 100] == list(range(100))
    assert [number for number in found if number >= 100] == list(range(100, 200))
    assert one.closed
    assert two.closed


class Odd(BaseException):
    """Nothing that anybody expects."""


@pytest.mark.parametrize("failure", [ValueError, asyncio.CancelledError, Odd])
async def test_the_failure_of_one_source_ends_all(failure: type[BaseException]) -> None:
    waits = Source([1], wait=True)
    events = merged(waits.run(), Source([2], failure("gone")).run())
    assert {await anext(events), await anext(events)} == {1, 2}
    with pytest.raises(failure):
        await anext(events)
    assert waits.closed


async def test_sources_are_one_step_ahead_of_the_reader_and_no_further() -> None:
    one, two = Source(range(100)), Source(range(100, 200))
    events = merged(one.run(), two.run())
    for read in range(1, 9):
        await anext(events)
        for _ in range(20):
            await asyncio.sleep(0)
        assert one.given + two.given == read + 1
    assert one.given == two.given + 1 or one.given == two.given - 1
    await events.aclose()
    assert one.closed
    assert two.closed
