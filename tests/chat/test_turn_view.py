"""One turn as a chat sees it: what an agent says without end is bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from trunkline.chat.delivery.store import Note
from trunkline.chat.platform import Inbound
from trunkline.chat.turn_view import MOST_FAILURE_CHARS, MOST_FAILURES, MOST_PICTURES, TurnView
from trunkline.core.events import Envelope, Event, Failed, TextDelta, ToolFinished, TurnEnded


class Taken:
    """An answer that keeps what it is told."""

    def __init__(self) -> None:
        self.text = ""

    def feed(self, text: str) -> None:
        self.text += text

    def cut(self) -> None:
        pass


def shown(*events: Event) -> TurnView:
    taken = Taken()
    nobody: Any = SimpleNamespace(ask=lambda asked: None, over=lambda id, why: None)
    channel: Any = SimpleNamespace(answer=lambda note: taken)
    view = TurnView(channel, nobody, Note(1, "p", Inbound("1", "c", "me", "hi")), "normal")
    view.show([Envelope("s", seq, 1, 0.0, event) for seq, event in enumerate(events)])
    return view


async def test_an_error_of_megabytes_is_cut_and_says_by_how_much() -> None:
    end = shown(Failed("agent", "e" * (MOST_FAILURE_CHARS + 7)), TurnEnded("error")).conclude()
    assert len(end) < MOST_FAILURE_CHARS + 100
    assert "... (7 more characters)" in end


async def test_of_many_errors_the_first_are_told_and_the_rest_counted() -> None:
    end = shown(*[Failed("agent", f"no {n}") for n in range(MOST_FAILURES + 500)], TurnEnded("error")).conclude()
    assert end.count("**Error**") == MOST_FAILURES
    assert "(500 more errors are not shown)" in end


async def test_what_is_kept_of_an_answer_is_bounded_and_what_is_shown_is_not() -> None:
    view = shown(*[TextDelta("x" * 100_000)] * 5)
    assert 200_000 <= len(view.text) <= 300_000


async def test_of_many_pictures_of_tools_the_first_are_kept() -> None:
    taken = [ToolFinished(f"c{n}", "Shot", "success", f"picture {n}", "image") for n in range(MOST_PICTURES + 5)]
    assert shown(*taken).pictures == [f"picture {n}" for n in range(MOST_PICTURES)]
