from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

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
