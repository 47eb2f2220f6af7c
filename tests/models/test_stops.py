from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest

from trunkline.models.engines import Piece
from trunkline.models.stops import StopFilter, stopped

TEXT = "One. Two. Three. END and more"


def shown(text: str, stops: tuple[str, ...], step: int) -> tuple[str, list[str]]:
    found = StopFilter(stops)
    pieces = []
    for at in range(0, len(text), step):
        pieces.append(found.feed(text[at : at + step]))
        if found.stopped:
            return "".join(pieces), pieces
    return "".join((*pieces, found.rest())), pieces


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("stops", "left"),
    [
        (("END",), "One. Two. Three. "),
        (("Three", "Two"), "One. "),
        ((". T",), "One"),
        (("ENDLESS", "no"), TEXT),
        (("e. E", "e. T"), "On"),
    ],
)
def test_an_answer_ends_in_front_of_the_first_sequence(stops: tuple[str, ...], left: str, step: int) -> None:
    assert shown(TEXT, stops, step)[0] == left


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_no_part_of_a_sequence_is_ever_shown(step: int) -> None:
    text, pieces = shown("so it goes <|stop|> and on", ("<|stop|>",), step)
    assert text == "so it goes "
    assert not any("<" in piece for piece in pieces)


def test_what_only_began_like_a_sequence_is_shown_in_the_end() -> None:
    found = StopFilter(("<end>",))
    assert [found.feed(piece) for piece in ("a <", "e", "x", " <en")] == ["a ", "", "<ex", " "]
    assert found.rest() == "<en"
    assert not found.stopped


async def test_the_engine_is_let_go_and_what_was_made_is_counted() -> None:
    left = []

    async def engine(pieces: Iterable[str]) -> AsyncGenerator[str, None]:
        try:
            for piece in pieces:
                yield piece
        finally:
            left.append(True)

    answer = [piece async for piece in stopped(engine([Piece("a", 1, 7, 2), "b<", "x>", "c"]), ("<x>",))]
    assert "".join(answer) == "ab"
    assert left == [True]
    assert [(each.tokens, each.prompt_tokens) for each in answer if isinstance(each, Piece)] == [(1, 7), (1, 0), (1, 0)]


def held_by_looking_everywhere(text: str, stops: tuple[str, ...]) -> str:
    """What is shown of a text in which no sequence is: the plain way."""
    for count in range(max(map(len, stops)) - 1, 0, -1):
        if any(len(stop) > count and stop[:count] == text[-count:] for stop in stops):
            return text[:-count]
    return text


def test_no_more_and_no_less_is_held_back_than_may_begin_a_sequence() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        letters = "ab.["
        stops = tuple("".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(chance.randint(1, 4)))
        text = "".join(chance.choices(letters, k=chance.randint(0, 12)))
        if not any(stop in text for stop in stops):
            assert StopFilter(stops).feed(text) == held_by_looking_everywhere(text, stops), (text, stops)


def test_a_piece_without_a_first_letter_is_not_compared_with_every_sequence() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()

        def startswith(self, *given: Any) -> bool:
            nonlocal compared
            compared += 1
            return super().startswith(*given)

        def __getitem__(self, at: Any) -> str:
            nonlocal compared
            compared += 1
            return super().__getitem__(at)

    found = StopFilter([Counted("xyz"[number % 3] * 256) for number in range(16)])
    compared = 0
    for _ in range(100):
        assert found.feed(" and so on") == " and so on"
    assert compared == 0
    assert found.feed("x" * 255) == ""
    assert compared <= 16


def test_without_sequences_all_is_shown() -> None:
    assert StopFilter(()).feed(TEXT) == TEXT
